/* Names of pictures and folders, a line each: what is a split, what a class. */
#include "agent/data/listing.h"
#include "agent/data/unlabelled.h"
#include "tests/fuzz/fuzz.h"

/* The names as a listing. */
static hpct_data_listing list(const uint8_t *data, size_t size)
{
    hpct_data_listing listing = {0};
    for (size_t at = 0, end; at < size; at = end + 1) {
        end = at;
        while (end < size && data[end] != '\n' && data[end] != '\0')
            end++;
        char *name = strndup((const char *) data + at, end - at);
        must(name != NULL);
        if (name[0] != '/' && strstr(name, "//") == NULL) /* as no archive's names are taken */
            hpct_data_listing_add(&listing, name, 0, 0);
        free(name);
    }
    return listing;
}

static void check_classes(const hpct_data_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        const hpct_data_entry *entry = &listing->entries[i];
        const char *class_name = entry->name + entry->class_name;
        if (entry->label < 0 || entry->label >= listing->num_classes)
            abort();
        const char *text = listing->classes[entry->label];
        size_t length = strcspn(text, "\\"); /* \xf1, say, is what is no UTF-8 */
        if (text[0] == '\0' || strncmp(class_name, text, length) != 0 ||
            (text[length] == '\0' && class_name[length] != '/'))
            abort();
    }
}

/* Pictures without classes are sorted, and none has a label. */
static void check_unlabelled(const hpct_data_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++) {
        if (listing->entries[i].label != 0 ||
            (i > 0 && strcmp(listing->entries[i - 1].name, listing->entries[i].name) > 0))
            abort();
    }
    if (listing->count == 0 || listing->num_classes > 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int split = HPCT_TRAIN; split <= HPCT_VALIDATION; split++) {
        hpct_data_listing listing = list(data, size);
        if (hpct_data_listing_choose(&listing, (hpct_split) split, "input") == HPCT_OK)
            check_classes(&listing);
        hpct_data_listing_free(&listing);
        listing = list(data, size);
        if (hpct_data_unlabelled_choose(&listing, (hpct_split) split, "input") == HPCT_OK)
            check_unlabelled(&listing);
        hpct_data_listing_free(&listing);
    }
    return 0;
}
