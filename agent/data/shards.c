/* Archives as a data set: one, or a folder of them (shards), of which a split is read by name. */
#include "agent/data/archive.h"
#include "agent/data/dataset.h"
#include "agent/data/encoded.h"
#include "agent/data/folder.h"
#include "agent/data/notes.h"
#include "agent/data/split_name.h"
#include "agent/data/tar.h"
#include "agent/data/unlabelled.h"
#include "base/alloc.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Such as train-0.tar and train-0.tar.gz. */
static bool are_copies(const char *a, const char *b)
{
    size_t length = strlen(a) - hpct_data_archive_extension(a);
    return length == strlen(b) - hpct_data_archive_extension(b) && memcmp(a, b, length) == 0;
}

static int is_shard(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && hpct_data_is_archive_name(entry->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_names(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static bool claims(const char *path, bool is_folder)
{
    struct dirent **names = NULL;
    if (!is_folder)
        return hpct_data_is_archive_name(path);
    int count = scandir(path, &names, is_shard, NULL);
    free_names(names, count);
    return count > 0;
}

/* Names of the archives (shards) in a folder. */
typedef struct shards {
    struct dirent **names;
    int count, of[3], unnamed; /* `of`: by split; `unnamed`: without one */
} shards;

static int split_of(const struct dirent *entry)
{
    return hpct_data_split_within(entry->d_name, strlen(entry->d_name));
}

static hpct_status list_shards(shards *s, const char *folder)
{
    s->count = scandir(folder, &s->names, is_shard, by_name);
    if (s->count < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", folder, strerror(errno));
    if (hpct_data_folder_has_pictures(folder))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: there are both archives (%s) and folders with pictures in it: give "
                         "one of them",
                         folder, s->names[0]->d_name);
    for (int i = 0; i < s->count; i++) {
        int split = split_of(s->names[i]);
        if (i > 0 && are_copies(s->names[i - 1]->d_name, s->names[i]->d_name))
            return hpct_fail(HPCT_ERR_DATA, "%s: %s and %s have one name: move one of them away",
                             folder, s->names[i - 1]->d_name, s->names[i]->d_name);
        if (split == HPCT_DATA_MANY_SPLITS)
            return hpct_fail(HPCT_ERR_DATA, "%s/%s: its name has words for two splits", folder,
                             s->names[i]->d_name);
        s->unnamed += split == HPCT_DATA_NO_SPLIT;
        if (split != HPCT_DATA_NO_SPLIT)
            s->of[split]++;
    }
    return HPCT_OK;
}

/* The split to read; HPCT_DATA_NO_SPLIT: all shards, as no name has a split. */
static hpct_status choose_shards(const shards *s, hpct_dataset *dataset, hpct_split wanted,
                                 int *chosen)
{
    *chosen = HPCT_DATA_NO_SPLIT;
    if (s->unnamed == s->count)
        return HPCT_OK;
    *chosen = (int) wanted;
    if (wanted != HPCT_TRAIN && s->of[wanted] == 0)
        *chosen = wanted == HPCT_TEST ? HPCT_VALIDATION : HPCT_TEST;
    dataset->lacking = s->of[*chosen] == 0;
    if (dataset->lacking)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s: there are no %s shards in it", dataset->path,
                         hpct_data_split_text(wanted));
    if (s->unnamed == 0)
        return HPCT_OK;
    for (int i = 0; i < s->count; i++) {
        if (split_of(s->names[i]) == HPCT_DATA_NO_SPLIT)
            return hpct_data_note(
                &dataset->notes,
                "%d archive%s whose name says no split %s left out (the first: %s)", s->unnamed,
                s->unnamed == 1 ? "" : "s", s->unnamed == 1 ? "is" : "are", s->names[i]->d_name);
    }
    return HPCT_OK;
}

/* Sets the source: "FOLDER/FIRST to LAST". */
static hpct_status name_shards(hpct_dataset *dataset, const char *first, const char *last)
{
    bool one = strcmp(first, last) == 0;
    return hpct_alloc_text(&dataset->source, "%s/%s%s%s", dataset->path, first, one ? "" : " to ",
                           one ? "" : last);
}

static hpct_status read_chosen(hpct_data_tar *tar, const shards *s, hpct_dataset *dataset,
                               int chosen)
{
    static const char *const prefixes[] = {
        [HPCT_TRAIN] = "train/", [HPCT_TEST] = "test/", [HPCT_VALIDATION] = "val/"};
    const char *first = NULL, *last = NULL;
    hpct_status status = HPCT_OK;
    tar->prefix =
        chosen != HPCT_DATA_NO_SPLIT && !dataset->options.unlabelled ? prefixes[chosen] : NULL;
    for (int i = 0; i < s->count && status == HPCT_OK; i++) {
        char *path = NULL;
        if (split_of(s->names[i]) != chosen)
            continue;
        last = s->names[i]->d_name;
        first = first == NULL ? last : first;
        HPCT_TRY(hpct_alloc_text(&path, "%s/%s", dataset->path, last));
        status = hpct_data_tar_read_file(tar, path);
        free(path);
    }
    if (status == HPCT_OK && first != NULL && !tar->names_only)
        status = name_shards(dataset, first, last);
    return status;
}

/* Reads the split's shards, named train, test or val; all of them if no name has a split. */
static hpct_status read_shards(hpct_data_tar *tar, hpct_dataset *dataset, hpct_split split)
{
    shards s = {0};
    int chosen = HPCT_DATA_NO_SPLIT;
    hpct_status status = list_shards(&s, dataset->path);
    if (status == HPCT_OK)
        status = choose_shards(&s, dataset, split, &chosen);
    if (status == HPCT_OK)
        status = read_chosen(tar, &s, dataset, chosen);
    if (status == HPCT_OK && !tar->web_dataset && !dataset->options.unlabelled &&
        chosen > HPCT_TRAIN && s.of[HPCT_TRAIN] > 0) {
        tar->names_only = true; /* the training split's names number the classes */
        status = read_chosen(tar, &s, dataset, HPCT_TRAIN);
    }
    free_names(s.names, s.count);
    return status;
}

static hpct_status note_links(hpct_data_tar *tar)
{
    if (tar->links == 0)
        return HPCT_OK;
    return hpct_data_note(
        &tar->pictures.notes,
        "%zu link%s in archives %s left out: put the files themselves into them (tar "
        "--dereference --hard-dereference) (the first: %s)",
        tar->links, tar->links == 1 ? "" : "s", tar->links == 1 ? "is" : "are", tar->link);
}

/* Chooses the split's pictures, by the rules of the kind of archive. */
static hpct_status choose(hpct_data_tar *tar, hpct_dataset *dataset, hpct_split split)
{
    const char *path = dataset->path;
    if (tar->web_dataset) {
        hpct_data_listing_drop_folders(&tar->pictures);
        if (tar->pictures.count > 0)
            return hpct_data_listing_note_others(&tar->pictures);
        return hpct_fail(HPCT_ERR_DATA, "%s: there are no pictures in it", path);
    }
    if (dataset->options.unlabelled)
        return hpct_data_unlabelled_choose(&tar->pictures, split, path);
    if (tar->described)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: KEY.json or KEY.txt stand beside pictures, as in a WebDataset, but "
                         "no KEY.cls with the number of their class; if its folders are the "
                         "classes, unpack it and give the folder",
                         path);
    hpct_status status = hpct_data_listing_choose(&tar->pictures, split, path);
    dataset->lacking = dataset->lacking || tar->pictures.lacking;
    if (status == HPCT_OK && tar->prefix != NULL)
        tar->pictures.split[0] = '\0'; /* the shards' names have the split */
    return status;
}

static hpct_status read_split(hpct_dataset *dataset, const char *path, hpct_split split)
{
    hpct_data_tar tar = {.memory = hpct_dataset_memory(dataset) / 2};
    struct stat info;
    bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    dataset->path = strdup(path);
    hpct_status status = dataset->path == NULL ? hpct_fail_memory(0)
                         : is_folder           ? read_shards(&tar, dataset, split)
                                               : hpct_data_tar_read_file(&tar, path);
    if (status == HPCT_OK)
        status = note_links(&tar);
    if (status == HPCT_OK)
        status = choose(&tar, dataset, split);
    if (status == HPCT_OK) {
        status = hpct_data_encoded_take(dataset, &tar.pictures, tar.bytes, tar.num_bytes);
        tar.bytes = NULL;
    }
    hpct_data_tar_free(&tar);
    return status;
}

const hpct_data_format hpct_data_format_tar = {
    .name = "tar of pictures",
    .looks_like =
        "a .tar[.gz] or .zip with KEY.jpg and KEY.cls (WebDataset) or CLASS/x.jpg, or a folder "
        "with train*.tar and test*.tar",
    .has_validation = true,
    .by_class = true,
    .claims = claims,
    .read = read_split,
};
