/* Classes and splits of pictures, from their names. */
#include "agent/data/listing.h"

#include "agent/data/levels.h"
#include "agent/data/notes.h"
#include "agent/data/split_name.h"
#include "base/alloc.h"
#include "base/status.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_CLASSES (1 << 20)

/* Files that are read as pictures; also in messages. */
#define READABLE ".jpg, .jpeg, .jpe, .jfif, .png"

static bool ends_in_one_of(const char *name, const char *ends)
{
    const char *dot = strrchr(name, '.');
    for (const char *end = ends; dot != NULL && *end != '\0'; end += strspn(end, ", ")) {
        size_t length = strcspn(end, ",");
        if (strlen(dot) == length && strncasecmp(dot, end, length) == 0)
            return true;
        end += length;
    }
    return false;
}

hpct_data_named hpct_data_picture_named(const char *name)
{
    static const char others[] = ".webp, .bmp, .gif, .tif, .tiff, .avif, .heic, .heif, .jp2, .jxl, "
                                 ".ppm, .pgm, .pbm, .tga, .dcm";
    if (ends_in_one_of(name, READABLE))
        return HPCT_DATA_NAMED_PICTURE;
    if (ends_in_one_of(name, others))
        return HPCT_DATA_NAMED_OTHER;
    return ends_in_one_of(name, ".txt, .xml, .json, .csv, .cls") ? HPCT_DATA_NAMED_NOTHING
                                                                 : HPCT_DATA_NAMED_UNKNOWN;
}

bool hpct_data_is_hidden(const char *name)
{
    static const char *const names[] = {"__MACOSX", "@eaDir", "lost+found", "$RECYCLE.BIN",
                                        "System Volume Information"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return name[0] == '.';
}

hpct_status hpct_data_listing_add(hpct_data_listing *listing, const char *name, size_t at,
                                  size_t bytes)
{
    if (strlen(name) > UINT16_MAX)
        return hpct_fail(HPCT_ERR_DATA, "%.100s...: the name is too long", name);
    HPCT_TRY(hpct_alloc_room(&listing->entries, &listing->room, listing->count + 1,
                             sizeof *listing->entries));
    char *copy = strdup(name);
    if (copy == NULL)
        return hpct_fail_memory(strlen(name));
    listing->entries[listing->count++] = (hpct_data_entry){.name = copy, .at = at, .bytes = bytes};
    return HPCT_OK;
}

hpct_status hpct_data_listing_add_other(hpct_data_listing *listing, const char *name)
{
    const char *slash = strrchr(name, '/');
    char *folder = slash != NULL ? strndup(name, (size_t) (slash - name) + 1) : NULL;
    hpct_status status = HPCT_OK;
    if (listing->others++ == 0)
        listing->other = strdup(name);
    if (listing->other == NULL || (slash != NULL && folder == NULL))
        status = hpct_fail_memory(0);
    else if (folder != NULL)
        status = hpct_data_listing_add(listing, folder, 0, 0);
    free(folder);
    return status;
}

void hpct_data_listing_free(hpct_data_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->entries[i].name);
    for (int i = 0; i < listing->num_classes; i++)
        free(listing->classes[i]);
    free(listing->entries);
    free(listing->classes);
    free(listing->other);
    free(listing->split);
    free(listing->notes);
    *listing = (hpct_data_listing){0};
}

static bool is_folder(const hpct_data_entry *entry)
{
    return entry->name[0] == '\0' || entry->name[strlen(entry->name) - 1] == '/';
}

void hpct_data_listing_drop_folders(hpct_data_listing *listing)
{
    size_t kept = 0;
    for (size_t i = 0; i < listing->count; i++) {
        if (is_folder(&listing->entries[i]))
            free(listing->entries[i].name);
        else
            listing->entries[kept++] = listing->entries[i];
    }
    listing->count = kept;
}

/* By name; equal names in their original order. */
static int compare_names(const void *left, const void *right)
{
    const hpct_data_entry *a = *(hpct_data_entry *const *) left,
                          *b = *(hpct_data_entry *const *) right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a > b) - (a < b);
}

hpct_status hpct_data_listing_keep_last(hpct_data_listing *listing, size_t first)
{
    size_t count = listing->count - first, again = 0;
    hpct_data_entry *entries = listing->entries + first,
                    **sorted = malloc((count + 1) * sizeof *sorted);
    char *name = NULL;
    hpct_status status = HPCT_OK;
    if (sorted == NULL)
        return hpct_fail_memory((count + 1) * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &entries[i];
    qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t i = 0; i + 1 < count; i++) {
        if (is_folder(sorted[i]) || strcmp(sorted[i]->name, sorted[i + 1]->name) != 0)
            continue;
        if (again++ == 0)
            name = sorted[i]->name;
        else
            free(sorted[i]->name);
        sorted[i]->name = NULL;
    }
    free(sorted);
    listing->count = first;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].name != NULL)
            listing->entries[listing->count++] = entries[i];
    }
    if (again > 0)
        status =
            hpct_data_note(&listing->notes,
                           "%zu picture%s whose name comes again in the same archive %s left out "
                           "for the later one (the first: %s)",
                           again, again == 1 ? "" : "s", again == 1 ? "is" : "are", name);
    free(name);
    return status;
}

/* ---- classes ---- */

static size_t class_length(const hpct_data_entry *entry)
{
    return strcspn(entry->name + entry->class_name, "/");
}

/* Same order as strcmp of the class names. */
static int compare_classes(const hpct_data_entry *a, const hpct_data_entry *b)
{
    size_t m = class_length(a), n = class_length(b);
    int order = memcmp(a->name + a->class_name, b->name + b->class_name, m < n ? m : n);
    return order != 0 ? order : (m > n) - (m < n);
}

static int compare_entries(const void *left, const void *right)
{
    const hpct_data_entry *a = left, *b = right;
    int order = compare_classes(a, b);
    return order != 0 ? order : strcmp(a->name, b->name);
}

/* Index after the last entry of the class that begins at `begin`. */
static size_t end_of_class(const hpct_data_listing *listing, size_t begin)
{
    size_t end = begin + 1;
    while (end < listing->count &&
           compare_classes(&listing->entries[begin], &listing->entries[end]) == 0)
        end++;
    return end;
}

/* A class in the training split, or without splits. */
typedef struct in_split {
    bool training;
    size_t pictures;
} in_split;

static in_split look_at(const hpct_data_listing *listing, size_t begin, size_t end,
                        const int8_t *splits)
{
    in_split in = {0};
    for (size_t i = begin; i < end; i++) {
        bool training = splits[i] == HPCT_TRAIN || splits[i] == HPCT_DATA_NO_SPLIT;
        in.training = in.training || training;
        in.pictures += training && !is_folder(&listing->entries[i]);
    }
    return in;
}

bool hpct_data_name_is_utf8(const char *text, size_t length)
{
    json_t *string = json_stringn(text, length);
    json_decref(string);
    return string != NULL;
}

char *hpct_data_name_text(const char *name, size_t length)
{
    char *text = malloc(4 * length + 1), *to = text;
    bool whole = hpct_data_name_is_utf8(name, length);
    for (size_t i = 0, used; text != NULL && i < length; i += used) {
        used = whole ? length : 1;
        while (used < 4 && i + used < length && !hpct_data_name_is_utf8(name + i, used))
            used++;
        if (hpct_data_name_is_utf8(name + i, used)) {
            memcpy(to, name + i, used);
            to += used;
        } else {
            used = 1;
            to += sprintf(to, "\\x%02x", (unsigned char) name[i]);
        }
    }
    if (text != NULL)
        *to = '\0';
    return text;
}

static hpct_status number_class(hpct_data_listing *listing, size_t begin, size_t end)
{
    hpct_data_entry *first = &listing->entries[begin];
    char *name = hpct_data_name_text(first->name + first->class_name, class_length(first));
    if (name == NULL)
        return hpct_fail_memory(0);
    for (size_t i = begin; i < end; i++)
        listing->entries[i].label = listing->num_classes;
    listing->classes[listing->num_classes++] = name;
    return HPCT_OK;
}

static hpct_status note_classes(hpct_data_listing *listing, bool named, int strangers,
                                size_t stranger, int empty, size_t first_empty)
{
    const hpct_data_entry *s = &listing->entries[stranger], *e = &listing->entries[first_empty];
    hpct_status status = HPCT_OK;
    if (empty > 0)
        status = hpct_data_note(
            &listing->notes, "%d of the %d classes %s no pictures%s (the first: %.*s)", empty,
            listing->num_classes, empty == 1 ? "has" : "have", named ? " to train on" : "",
            (int) class_length(e), e->name + e->class_name);
    if (status == HPCT_OK && strangers > 0)
        status =
            hpct_data_note(&listing->notes,
                           "%d class%s of other splits %s no folder in the training split (the "
                           "first: %.*s)",
                           strangers, strangers == 1 ? "" : "es", strangers == 1 ? "has" : "have",
                           (int) class_length(s), s->name + s->class_name);
    return status;
}

/* Numbers the classes of sorted entries; splits[] has the split of each entry. *num_known: number
 * of classes of the training split. */
static hpct_status number_classes(hpct_data_listing *listing, const int8_t *splits,
                                  const char *path, int *num_known)
{
    hpct_status status = HPCT_OK;
    size_t count = 0, known = 0, stranger = 0, first_empty = 0;
    int empty = 0;
    bool named = listing->count > 0 && splits[0] != HPCT_DATA_NO_SPLIT;
    for (size_t i = 0; i < listing->count; i = end_of_class(listing, i), count++) {
        in_split in = look_at(listing, i, end_of_class(listing, i), splits);
        if (!in.training && known == count)
            stranger = i; /* the first one without training pictures */
        known += in.training;
        if (in.training && in.pictures == 0 && empty++ == 0)
            first_empty = i;
    }
    if (count > MAX_CLASSES)
        return hpct_fail(HPCT_ERR_DATA, "%s: %zu classes are too many", path, count);
    listing->classes = calloc(count + 1, sizeof *listing->classes);
    if (listing->classes == NULL)
        return hpct_fail_memory(count * sizeof *listing->classes);
    for (int training = 1; training >= 0; training--) {
        for (size_t i = 0, end; i < listing->count && status == HPCT_OK; i = end) {
            end = end_of_class(listing, i);
            if (look_at(listing, i, end, splits).training == (training == 1))
                status = number_class(listing, i, end);
        }
    }
    *num_known = (int) known;
    int strangers = known > 0 ? (int) (count - known) : 0;
    return status == HPCT_OK ? note_classes(listing, named, strangers, stranger, empty, first_empty)
                             : status;
}

/* ---- the split ---- */

/* Removes entries outside of class folders; notes how many pictures that are. */
static hpct_status drop_loose(hpct_data_listing *listing)
{
    size_t kept = 0, loose = 0;
    char *first = NULL;
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < listing->count; i++) {
        hpct_data_entry *entry = &listing->entries[i];
        if (entry->label != HPCT_DATA_LOOSE) {
            listing->entries[kept++] = *entry;
            continue;
        }
        bool counts = !is_folder(entry);
        loose += counts;
        if (counts && first == NULL)
            first = entry->name;
        else
            free(entry->name);
    }
    listing->count = kept;
    if (loose > 0)
        status = hpct_data_note(&listing->notes,
                                "%zu picture%s in no class's folder %s left out (the first: %s)",
                                loose, loose == 1 ? "" : "s", loose == 1 ? "is" : "are", first);
    free(first);
    return status;
}

/* The split to read: if there are no validation pictures, those of the test split are used, and the
 * reverse. */
static int find_split(const hpct_data_listing *listing, const int8_t *splits, hpct_split wanted)
{
    bool has[3] = {false}, named = false;
    for (size_t i = 0; i < listing->count; i++) {
        bool picture = !is_folder(&listing->entries[i]);
        named = named || splits[i] != HPCT_DATA_NO_SPLIT;
        if (picture && splits[i] != HPCT_DATA_NO_SPLIT)
            has[splits[i]] = true;
    }
    if (!named)
        return HPCT_DATA_NO_SPLIT;
    if (wanted == HPCT_TRAIN || has[wanted])
        return (int) wanted;
    return wanted == HPCT_TEST ? HPCT_VALIDATION : HPCT_TEST;
}

/* Keeps the split's pictures only. */
static void keep_split(hpct_data_listing *listing, const int8_t *splits, int wanted)
{
    size_t kept = 0;
    for (size_t i = 0; i < listing->count; i++) {
        if (splits[i] != wanted || is_folder(&listing->entries[i]))
            free(listing->entries[i].name);
        else
            listing->entries[kept++] = listing->entries[i];
    }
    listing->count = kept;
}

static hpct_status fail_empty(hpct_data_listing *listing, hpct_split split, bool named,
                              const char *path)
{
    char more[512] = "";
    listing->lacking = named && listing->others == 0;
    if (listing->others > 0)
        snprintf(more, sizeof more,
                 " that can be read: %zu not ending in " READABLE " (the first: %s)",
                 listing->others, listing->other);
    else if (listing->notes != NULL)
        snprintf(more, sizeof more, ": %.*s", (int) strcspn(listing->notes, "\n"), listing->notes);
    return hpct_fail(HPCT_ERR_NO_INPUT, "%s: there are no %s%spictures in it%s", path,
                     named ? hpct_data_split_text(split) : "", named ? " " : "", more);
}

/* The training split's class names determine the labels; a split that has none of them is an
 * error. */
static hpct_status check_known(const hpct_data_listing *listing, int known, const char *path)
{
    for (size_t i = 0; i < listing->count; i++) {
        if (known == 0 || listing->entries[i].label < known)
            return HPCT_OK;
    }
    const hpct_data_entry *entry = &listing->entries[0];
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: the folders of %s (the first: %.*s) are not classes of the training "
                     "pictures (%s ...): move its pictures into folders of those names",
                     path, listing->split, (int) class_length(entry),
                     entry->name + entry->class_name, listing->classes[0]);
}

hpct_status hpct_data_listing_note_others(hpct_data_listing *listing)
{
    if (listing->others == 0)
        return HPCT_OK;
    return hpct_data_note(&listing->notes,
                          "%zu picture%s not ending in " READABLE " %s left out (the first: %s)",
                          listing->others, listing->others == 1 ? "" : "s",
                          listing->others == 1 ? "is" : "are", listing->other);
}

/* Sets the folder of the split, from the first picture's name. */
static hpct_status set_split_name(hpct_data_listing *listing)
{
    const hpct_data_entry *entry = &listing->entries[0];
    size_t length = entry->class_name;
    listing->split = strndup(entry->name, length > 0 ? length - 1 : 0);
    return listing->split != NULL ? HPCT_OK : hpct_fail_memory(length);
}

hpct_status hpct_data_listing_choose(hpct_data_listing *listing, hpct_split split, const char *path)
{
    int known = 0;
    if (listing->count == 0)
        return fail_empty(listing, split, false, path);
    HPCT_TRY(hpct_data_levels_find(listing, path));
    HPCT_TRY(drop_loose(listing));
    int8_t *splits = malloc(listing->count + 1);
    if (splits == NULL)
        return hpct_fail_memory(listing->count + 1);
    qsort(listing->entries, listing->count, sizeof *listing->entries, compare_entries);
    for (size_t i = 0; i < listing->count; i++)
        splits[i] = (int8_t) listing->entries[i].label;
    int chosen = find_split(listing, splits, split);
    hpct_status status = number_classes(listing, splits, path, &known);
    keep_split(listing, splits, chosen);
    while (chosen == HPCT_TRAIN && listing->num_classes > known)
        free(listing->classes[--listing->num_classes]);
    free(splits);
    if (status == HPCT_OK && listing->count == 0)
        status = fail_empty(listing, split, chosen != HPCT_DATA_NO_SPLIT, path);
    if (status == HPCT_OK)
        status = set_split_name(listing);
    if (status == HPCT_OK)
        status = check_known(listing, known, path);
    return status == HPCT_OK ? hpct_data_listing_note_others(listing) : status;
}
