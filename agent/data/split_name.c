/* Usual names of splits, and names that are not classes. */
#include "agent/data/split_name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *word;
    hpct_split split;
} words[] = {
    {"train", HPCT_TRAIN},           {"training", HPCT_TRAIN},   {"test", HPCT_TEST},
    {"testing", HPCT_TEST},          {"eval", HPCT_TEST},        {"evaluation", HPCT_TEST},
    {"val", HPCT_VALIDATION},        {"valid", HPCT_VALIDATION}, {"dev", HPCT_VALIDATION},
    {"validation", HPCT_VALIDATION},
};

/* Drops "set" at the end: "training_set", "TestSet". */
static size_t without_set(const char *name, size_t length)
{
    if (length < 4 || strncasecmp(name + length - 3, "set", 3) != 0)
        return length;
    length -= 3;
    return strchr("-_ ", name[length - 1]) != NULL ? length - 1 : length;
}

int hpct_data_split_word(const char *name, size_t length)
{
    length = without_set(name, length);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].word) == length && strncasecmp(words[i].word, name, length) == 0)
            return (int) words[i].split;
    }
    return HPCT_DATA_NO_SPLIT;
}

int hpct_data_split_within(const char *name, size_t length)
{
    int found = HPCT_DATA_NO_SPLIT;
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && isalpha((unsigned char) name[end]))
            end++;
        int split = hpct_data_split_word(name + at, end - at);
        if (split != HPCT_DATA_NO_SPLIT && found != HPCT_DATA_NO_SPLIT && split != found)
            return HPCT_DATA_MANY_SPLITS;
        if (split != HPCT_DATA_NO_SPLIT)
            found = split;
        at = end + 1;
    }
    return found;
}

const char *hpct_data_split_text(hpct_split split)
{
    return split == HPCT_TRAIN ? "training" : split == HPCT_TEST ? "test" : "validation";
}

static bool is_one_of(const char *name, size_t length, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(list[i]) == length && strncasecmp(list[i], name, length) == 0)
            return true;
    }
    return false;
}

bool hpct_data_names_part(const char *name, size_t length)
{
    static const char *const alone[] = {"images",
                                        "image",
                                        "imgs",
                                        "img",
                                        "pictures",
                                        "photos",
                                        "masks",
                                        "jpegimages",
                                        "annotations",
                                        "labels",
                                        "trimaps",
                                        "SegmentationClass",
                                        "SegmentationObject"};
    static const char *const numbered[] = {"images", "image", "imgs",  "img",   "part",
                                           "fold",   "batch", "chunk", "shard", "split"};
    bool digits = false, word = is_one_of(name, length, alone, sizeof alone / sizeof alone[0]);
    if (word)
        return true;
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && isalpha((unsigned char) name[end]))
            end++;
        word = word || is_one_of(name + at, end - at, numbered, sizeof numbered / sizeof *numbered);
        digits = digits || (end < length && isdigit((unsigned char) name[end]));
        at = end + 1;
    }
    return word && digits;
}
