/* Searches from the top: skips folders that contain only one folder; then comes the level of
 * splits, if a folder has a usual name of one, then that of classes; everything deeper belongs to
 * the class. An ambiguous level is an error. */
#include "agent/data/levels.h"

#include "agent/data/notes.h"
#include "agent/data/split_name.h"
#include "base/alloc.h"
#include "base/status.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A folder of a level, and its contents. */
typedef struct group {
    size_t begin, end; /* range of entries */
    const char *name;
    size_t length;
    size_t pictures, direct; /* all pictures; those not in a subfolder */
    bool folders;            /* has subfolders */
    int word, within;        /* results of hpct_data_split_word and hpct_data_split_within */
} group;

typedef struct level {
    size_t begin, end, prefix; /* range of entries, and the length of their common prefix */
    group *groups;
    size_t count, room;
    size_t loose; /* pictures outside of folders */
} level;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hpct_data_entry *) a)->name, ((const hpct_data_entry *) b)->name);
}

static bool is_folder(const char *name)
{
    return name[0] == '\0' || name[strlen(name) - 1] == '/';
}

static hpct_status add_group(level *l, const hpct_data_listing *listing, group g)
{
    HPCT_TRY(hpct_alloc_room(&l->groups, &l->room, l->count + 1, sizeof *l->groups));
    for (size_t i = g.begin; i < g.end; i++) {
        const char *rest = listing->entries[i].name + l->prefix + g.length + 1;
        bool picture = !is_folder(listing->entries[i].name), deeper = strchr(rest, '/') != NULL;
        g.pictures += picture;
        g.direct += picture && !deeper;
        g.folders = g.folders || deeper;
    }
    g.word = hpct_data_split_word(g.name, g.length);
    g.within = hpct_data_split_within(g.name, g.length);
    l->groups[l->count++] = g;
    return HPCT_OK;
}

/* Fills l's groups from begin, end and prefix. */
static hpct_status read_level(level *l, const hpct_data_listing *listing)
{
    hpct_status status = HPCT_OK;
    l->count = l->loose = 0;
    for (size_t i = l->begin, end; i < l->end && status == HPCT_OK; i = end) {
        const char *name = listing->entries[i].name + l->prefix;
        group g = {.begin = i, .name = name, .length = strcspn(name, "/")};
        end = i + 1;
        if (name[g.length] == '\0') {
            l->loose += name[0] != '\0';
            continue;
        }
        while (end < l->end &&
               strncmp(listing->entries[end].name + l->prefix, name, g.length + 1) == 0)
            end++;
        g.end = end;
        status = add_group(l, listing, g);
    }
    return status;
}

/* The only folder with pictures, if these are all in subfolders; or NULL. */
static const group *find_single(const level *l)
{
    const group *found = NULL;
    for (size_t i = 0; i < l->count; i++) {
        if (l->groups[i].pictures > 0 && found != NULL)
            return NULL;
        if (l->groups[i].pictures > 0)
            found = &l->groups[i];
    }
    return found != NULL && found->direct == 0 ? found : NULL;
}

/* Number of folders with pictures. */
static size_t count_full(const level *l)
{
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        count += l->groups[i].pictures > 0;
    return count;
}

static hpct_status go_down(level *l, const hpct_data_listing *listing, const group *to)
{
    l->begin = to->begin;
    l->end = to->end;
    l->prefix += to->length + 1;
    return read_level(l, listing);
}

/* Skips levels where only one folder has pictures, until one that names a split; if every level has
 * only one, the first is the level of classes. */
static hpct_status pass_singles(level *l, const hpct_data_listing *listing, int within)
{
    const level start = *l;
    const group *single;
    HPCT_TRY(read_level(l, listing));
    while ((single = find_single(l)) != NULL &&
           (single->within == HPCT_DATA_NO_SPLIT || single->within == within))
        HPCT_TRY(go_down(l, listing, single));
    if (count_full(l) != 1 || find_single(l) != NULL)
        return HPCT_OK;
    l->begin = start.begin;
    l->end = start.end;
    l->prefix = start.prefix;
    return read_level(l, listing);
}

/* ---- classes ---- */

/* Years and dates are not classes. */
static bool is_date(const char *name, size_t length)
{
    size_t digits = 0;
    for (size_t i = 0; i < length; i++) {
        if (isdigit((unsigned char) name[i]))
            digits++;
        else if (strchr("-_.", name[i]) == NULL)
            return false;
    }
    return digits >= 4;
}

/* Number of folder names that two levels have in common, without dates. */
static size_t count_common(const level *a, const level *b)
{
    size_t count = 0;
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        const group *x = &a->groups[i], *y = &b->groups[j];
        size_t shorter = x->length < y->length ? x->length : y->length;
        int order = strncmp(x->name, y->name, shorter + 1); /* with the '/', as names are sorted */
        if (order == 0)
            count += !is_date(x->name, x->length);
        i += order <= 0;
        j += order >= 0;
    }
    return count;
}

/* The folders in a folder, or in its only subfolder with pictures. */
static hpct_status read_below(level *out, const hpct_data_listing *listing, const level *l,
                              const group *g)
{
    *out = (level){.begin = g->begin, .end = g->end, .prefix = l->prefix + g->length + 1};
    return pass_singles(out, listing, HPCT_DATA_NO_SPLIT);
}

static hpct_status fail_unknown(const char *path, const level *l, const group *unknown)
{
    int prefix = (int) l->prefix;
    const char *before = unknown->name - l->prefix;
    return hpct_fail(
        HPCT_ERR_DATA,
        "%s: the folder %.*s stands above folders of pictures, but its name is not a word "
        "for a split (train, test, validation): give the folders that hold the "
        "classes (of an archive unpack them), as --data %s/%.*sNAME --validation-data %s/%.*sNAME",
        path, (int) (l->prefix + unknown->length), before, path, prefix, before, path, prefix,
        before);
}

static bool is_deep(const group *g)
{
    return g->pictures > 0 && g->direct == 0;
}

/* seg_train/cat/x.jpg is a split with an unknown name; but "test tube" may be one class of many. */
static hpct_status check_hints(const level *l, const char *path)
{
    const group *hint = NULL;
    size_t others = 0;
    for (size_t i = 0; i < l->count; i++) {
        const group *g = &l->groups[i];
        if (g->within == HPCT_DATA_NO_SPLIT)
            others += g->pictures > 0;
        else if (is_deep(g) && hint == NULL)
            hint = g;
    }
    return hint != NULL && others < 3 ? fail_unknown(path, l, hint) : HPCT_OK;
}

static hpct_status fail_same(const char *path, const level *l, const group *a, const group *b)
{
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: %.*s/ and %.*s/ hold the same folders: it cannot be told which are the "
                     "classes. If %.*s is a split, give its folder alone (--data %s/%.*s%.*s); if "
                     "it is a class, put its pictures into it, without folders",
                     path, (int) a->length, a->name, (int) b->length, b->name, (int) a->length,
                     a->name, path, (int) l->prefix, a->name - l->prefix, (int) a->length, a->name);
}

/* Folders with the same subfolders are either splits, or classes with the same parts: an error. */
static hpct_status check_not_splits(const hpct_data_listing *listing, const level *l,
                                    const char *path)
{
    const group *a = NULL;
    level before = {0};
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < l->count && status == HPCT_OK; i++) {
        const group *b = &l->groups[i];
        level here;
        if (!is_deep(b))
            continue;
        status = read_below(&here, listing, l, b);
        if (status == HPCT_OK && count_common(&before, &here) > 1)
            status = fail_same(path, l, a, b);
        free(before.groups);
        before = here;
        a = b;
    }
    free(before.groups);
    return status;
}

/* Whether all folders with pictures are named as parts, so that none can be a class. */
static bool is_of_parts(const level *l)
{
    size_t parts = 0;
    for (size_t i = 0; i < l->count; i++)
        parts += l->groups[i].pictures > 0 &&
                 hpct_data_names_part(l->groups[i].name, l->groups[i].length);
    return parts > 0 && parts == count_full(l);
}

/* train/x.jpg beside test/y.jpg are splits, not two classes; but "test tube" and "train station"
 * may be two classes of many. */
static hpct_status check_classes(const level *l, int within, const char *path)
{
    size_t words = 0, hints = 0, all = 0;
    const group *hint = NULL;
    bool several = false; /* names of different splits */
    for (size_t i = 0; i < l->count; i++) {
        const group *g = &l->groups[i];
        if (g->pictures == 0)
            continue;
        all++;
        words += g->word != HPCT_DATA_NO_SPLIT;
        hints += g->within != HPCT_DATA_NO_SPLIT;
        several = several ||
                  (hint != NULL && g->within != HPCT_DATA_NO_SPLIT && g->within != hint->within);
        hint = hint == NULL && g->within != HPCT_DATA_NO_SPLIT ? g : hint;
    }
    if (words > 1 || (several && all - hints < 3) ||
        (hint != NULL && hints == all && within == HPCT_DATA_NO_SPLIT))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: the pictures in %.*s/ lie in no folder that would name their class",
                         path, (int) hint->length, hint->name);
    if (is_of_parts(l) || (all == 0 && l->loose > 0))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: its pictures lie in no folder that would name their class", path);
    return HPCT_OK;
}

/* Whether a class has more than one folder of pictures, without dates. */
static hpct_status has_folders(const hpct_data_listing *listing, const level *l, const group *g,
                               bool *several)
{
    level inside = {.begin = g->begin, .end = g->end, .prefix = l->prefix + g->length + 1};
    hpct_status status = g->folders ? read_level(&inside, listing) : HPCT_OK;
    size_t count = 0;
    for (size_t i = 0; i < inside.count; i++)
        count += inside.groups[i].pictures > 0 &&
                 !is_date(inside.groups[i].name, inside.groups[i].length);
    free(inside.groups);
    *several = count > 1;
    return status;
}

/* Notes subfolders of classes: cat/indoors and cat/outdoors are one class; but COVID/images and
 * COVID/masks, or a/airfield and a/alley, may not be meant so. */
static hpct_status note_folders(hpct_data_listing *listing, const level *l)
{
    hpct_status status = HPCT_OK;
    const group *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < l->count && status == HPCT_OK; i++) {
        bool several = false;
        status = has_folders(listing, l, &l->groups[i], &several);
        first = first == NULL && several ? &l->groups[i] : first;
        count += several;
    }
    if (status == HPCT_OK && count > 0)
        status = hpct_data_note(&listing->notes,
                                "%zu of the %zu classes %s several folders, whose pictures are all "
                                "taken for the one class (the first: %.*s)",
                                count, l->count, count == 1 ? "has" : "have", (int) first->length,
                                first->name);
    return status;
}

/* Takes the folders of the level as the classes of this split. */
static hpct_status set_classes(hpct_data_listing *listing, const level *l, int split)
{
    for (size_t i = 0; i < l->count; i++) {
        for (size_t j = l->groups[i].begin; j < l->groups[i].end; j++) {
            listing->entries[j].class_name = (uint32_t) l->prefix;
            listing->entries[j].label = split;
        }
    }
    return split == HPCT_TRAIN || split == HPCT_DATA_NO_SPLIT ? note_folders(listing, l) : HPCT_OK;
}

/* A folder that contains the same folders as its parent is another copy, or a split: an error. */
static hpct_status check_repeated(const hpct_data_listing *listing, const level *l,
                                  const char *path)
{
    for (size_t i = 0; i < l->count; i++) {
        const group *g = &l->groups[i];
        level below;
        if (!is_deep(g))
            continue;
        hpct_status status = read_below(&below, listing, l, g);
        size_t common = count_common(l, &below);
        free(below.groups);
        if (status != HPCT_OK)
            return status;
        if (common > 1)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: the folder %.*s holds the same folders as stand beside it: move "
                             "it away, or give it alone",
                             path, (int) (l->prefix + g->length), g->name - l->prefix);
    }
    return HPCT_OK;
}

/* ---- splits ---- */

static bool is_split(const group *g)
{
    return g->word != HPCT_DATA_NO_SPLIT && g->folders;
}

static hpct_status check_splits(const level *l, const char *path)
{
    const group *seen[3] = {NULL};
    for (size_t i = 0; i < l->count; i++) {
        const group *g = &l->groups[i];
        if (g->word == HPCT_DATA_NO_SPLIT && g->pictures > g->direct)
            return fail_unknown(path, l, g);
        if (!is_split(g))
            continue;
        const group *other = seen[g->word];
        if (other != NULL)
            return hpct_fail(
                HPCT_ERR_DATA,
                "%s: both %.*s/ and %.*s/ are words for the %s split: give the one that "
                "is meant (--data %s/%.*s%.*s)",
                path, (int) other->length, other->name, (int) g->length, g->name,
                hpct_data_split_text((hpct_split) g->word), path, (int) l->prefix,
                other->name - l->prefix, (int) other->length, other->name);
        seen[g->word] = g;
    }
    return HPCT_OK;
}

/* train/data/CLASS, or a single class "data" with subfolders, which is useless for training: an
 * error. */
static hpct_status check_single(const hpct_data_listing *listing, const level *l,
                                const group *single, const char *path)
{
    level inside;
    hpct_status status = read_below(&inside, listing, l, single);
    size_t count = count_full(&inside);
    free(inside.groups);
    if (status != HPCT_OK || count < 2)
        return status;
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: %.*s holds %zu folders of pictures and stands alone: it cannot be told "
                     "whether it is the class or they are the classes: move them up, or put all "
                     "its pictures into it",
                     path, (int) (l->prefix + single->length), single->name - l->prefix, count);
}

/* Some archives unpack to train/train/CLASS. */
static hpct_status set_split(hpct_data_listing *listing, const level *l, const group *g,
                             const char *path)
{
    level below = {.begin = g->begin, .end = g->end, .prefix = l->prefix + g->length + 1};
    hpct_status status = read_level(&below, listing);
    const group *single;
    while (status == HPCT_OK && (single = find_single(&below)) != NULL && single->word == g->word)
        status = go_down(&below, listing, single);
    if (status == HPCT_OK && g->word == HPCT_TRAIN && single != NULL)
        status = check_single(listing, &below, single, path);
    if (status == HPCT_OK)
        status = check_repeated(listing, &below, path);
    if (status == HPCT_OK && !is_of_parts(&below))
        status = set_classes(listing, &below, g->word);
    free(below.groups);
    return status;
}

static hpct_status set_splits(hpct_data_listing *listing, const level *l, const char *path)
{
    hpct_status status = check_splits(l, path);
    for (size_t i = 0; i < l->count && status == HPCT_OK; i++) {
        if (is_split(&l->groups[i]))
            status = set_split(listing, l, &l->groups[i], path);
    }
    return status;
}

/* ---- splits and classes ---- */

/* The split named by the last component of the path (of an archive without its extension). */
static int split_of_path(const char *path)
{
    size_t end = strlen(path), begin;
    while (end > 0 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';)
        begin--;
    return hpct_data_split_word(path + begin, strcspn(path + begin, "./"));
}

hpct_status hpct_data_levels_find(hpct_data_listing *listing, const char *path)
{
    level top = {.end = listing->count};
    int within = split_of_path(path);
    bool splits = false;
    qsort(listing->entries, listing->count, sizeof *listing->entries, by_name);
    for (size_t i = 0; i < listing->count; i++)
        listing->entries[i].label = HPCT_DATA_LOOSE;
    hpct_status status = pass_singles(&top, listing, within);
    for (size_t i = 0; i < top.count; i++)
        splits = splits || is_split(&top.groups[i]);
    if (status == HPCT_OK && splits) {
        status = set_splits(listing, &top, path);
        goto end;
    }
    if (status == HPCT_OK && within == HPCT_DATA_NO_SPLIT)
        status = check_hints(&top, path);
    if (status == HPCT_OK && within == HPCT_DATA_NO_SPLIT)
        status = check_not_splits(listing, &top, path);
    if (status == HPCT_OK)
        status = check_classes(&top, within, path);
    if (status == HPCT_OK)
        status = check_repeated(listing, &top, path);
    if (status == HPCT_OK)
        status = set_classes(listing, &top, HPCT_DATA_NO_SPLIT);

end:
    free(top.groups);
    return status;
}
