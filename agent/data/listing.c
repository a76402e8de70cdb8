/* Class and split from names. */
#include "agent/data/listing.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_CLASSES (1 << 20)

bool hpct_is_picture_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && (strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0 ||
                           strcasecmp(dot, ".png") == 0);
}

hpct_status hpct_listing_add(hpct_listing *listing, const char *name, size_t at, size_t bytes)
{
    if (listing->count == listing->room) {
        size_t room = listing->room > 0 ? 2 * listing->room : 1024;
        hpct_entry *grown = realloc(listing->entries, room * sizeof *grown);
        if (grown == NULL)
            return hpct_fail_memory(room * sizeof *grown);
        listing->entries = grown;
        listing->room = room;
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return hpct_fail_memory(strlen(name));
    listing->entries[listing->count++] = (hpct_entry){.name = copy, .at = at, .bytes = bytes};
    return HPCT_OK;
}

void hpct_listing_free(hpct_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->entries[i].name);
    for (int i = 0; i < listing->num_classes; i++)
        free(listing->classes[i]);
    free(listing->entries);
    free(listing->classes);
    *listing = (hpct_listing){0};
}

/* The beginning of the component that ends before `end`. */
static size_t component_before(const char *name, size_t end)
{
    while (end > 0 && name[end - 1] != '/')
        end--;
    return end;
}

/* The split that the component [begin, end) names, or -1. */
static int split_named(const char *name, size_t begin, size_t end)
{
    static const struct {
        const char *name;
        int split;
    } known[] = {
        {"train", HPCT_TRAIN}, {"test", HPCT_TEST}, {"val", HPCT_TEST}, {"validation", HPCT_TEST}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].name) == end - begin &&
            strncmp(name + begin, known[i].name, end - begin) == 0)
            return known[i].split;
    }
    return -1;
}

/* Finds the class in entry->name and keeps the split (-1: none is named) in entry->label. */
static hpct_status take_apart(hpct_entry *entry, const char *path)
{
    const char *name = entry->name;
    size_t file = component_before(name, strlen(name));
    size_t class_name = file > 0 ? component_before(name, file - 1) : 0;
    if (file == 0 || file - class_name > UINT16_MAX || class_name > UINT32_MAX)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: the picture %s lies in no folder that would name its class", path,
                         name);
    entry->class_name = (uint32_t) class_name;
    entry->label = -1;
    if (class_name > 0)
        entry->label = split_named(name, component_before(name, class_name - 1), class_name - 1);
    return HPCT_OK;
}

static size_t class_length(const hpct_entry *entry)
{
    return strcspn(entry->name + entry->class_name, "/");
}

/* As strcmp does with the class names. */
static int compare_classes(const hpct_entry *a, const hpct_entry *b)
{
    size_t m = class_length(a), n = class_length(b);
    int order = memcmp(a->name + a->class_name, b->name + b->class_name, m < n ? m : n);
    return order != 0 ? order : (m > n) - (m < n);
}

static int compare_entries(const void *left, const void *right)
{
    const hpct_entry *a = left, *b = right;
    int order = compare_classes(a, b);
    return order != 0 ? order : strcmp(a->name, b->name);
}

static size_t count_classes(const hpct_listing *listing)
{
    size_t count = 0;
    for (size_t i = 0; i < listing->count; i++)
        count += i == 0 || compare_classes(&listing->entries[i - 1], &listing->entries[i]) != 0;
    return count;
}

/* Of sorted entries; entry->label, the split so far, is moved to splits[]. */
static hpct_status number_classes(hpct_listing *listing, const char *path)
{
    size_t count = count_classes(listing);
    if (count > MAX_CLASSES)
        return hpct_fail(HPCT_ERR_DATA, "%s: %zu classes are too many", path, count);
    listing->classes = calloc(count + 1, sizeof *listing->classes);
    if (listing->classes == NULL)
        return hpct_fail_memory(count * sizeof *listing->classes);
    for (size_t i = 0; i < listing->count; i++) {
        hpct_entry *entry = &listing->entries[i];
        if (i == 0 || compare_classes(entry - 1, entry) != 0) {
            char *name = strndup(entry->name + entry->class_name, class_length(entry));
            if (name == NULL)
                return hpct_fail_memory(0);
            listing->classes[listing->num_classes++] = name;
        }
        entry->label = listing->num_classes - 1;
    }
    return HPCT_OK;
}

/* Keeps those entries whose split, as their label says so far, is wanted, and moves them up. The
 * classes of those that go are kept by number_classes. */
static size_t keep_split(hpct_listing *listing, const int8_t *splits, int wanted)
{
    size_t kept = 0;
    for (size_t i = 0; i < listing->count; i++) {
        if (splits[i] != wanted)
            free(listing->entries[i].name);
        else
            listing->entries[kept++] = listing->entries[i];
    }
    listing->count = kept;
    return kept;
}

hpct_status hpct_listing_choose(hpct_listing *listing, hpct_split split, const char *path)
{
    bool named = false;
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < listing->count && status == HPCT_OK; i++) {
        status = take_apart(&listing->entries[i], path);
        named = named || listing->entries[i].label >= 0;
    }
    int8_t *splits = malloc(listing->count + 1);
    if (splits == NULL)
        return hpct_fail_memory(listing->count + 1);
    if (status == HPCT_OK) {
        qsort(listing->entries, listing->count, sizeof *listing->entries, compare_entries);
        for (size_t i = 0; i < listing->count; i++)
            splits[i] = (int8_t) listing->entries[i].label;
        status = number_classes(listing, path);
    }
    if (status == HPCT_OK && keep_split(listing, splits, named ? (int) split : -1) == 0)
        status = hpct_fail(HPCT_ERR_NO_INPUT, "%s: there are no %s pictures in it", path,
                           split == HPCT_TRAIN ? "training" : "test");
    free(splits);
    return status;
}
