/* Lists checkpoints by their folders' names and manifests. */
#include "agent/checkpoint/contents.h"

#include "agent/checkpoint/disk.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names ---- */

static void format_name(char name[HPCT_CKPT_CONTENTS_NAME], int64_t step)
{
    snprintf(name, HPCT_CKPT_CONTENTS_NAME, "step-%010" PRIu64, (uint64_t) step % 10000000000u);
}

/* The step in a folder's name; false: it has another form. */
static bool parse_name(const char *name, int64_t *step)
{
    if (strncmp(name, "step-", 5) != 0 || strlen(name) != HPCT_CKPT_CONTENTS_NAME - 1 ||
        strspn(name + 5, "0123456789") != 10)
        return false;
    *step = strtoll(name + 5, NULL, 10);
    return true;
}

hpct_status hpct_ckpt_contents_make(char **folder, const char *dir, int64_t step)
{
    char name[HPCT_CKPT_CONTENTS_NAME];
    format_name(name, step);
    HPCT_TRY(hpct_ckpt_disk_join(folder, dir, name));
    if (mkdir(*folder, 0777) == 0 || errno == EEXIST)
        return HPCT_OK;
    hpct_status status =
        hpct_fail(HPCT_ERR_IO, "%s: the folder cannot be made: %s%s", *folder, strerror(errno),
                  errno == ENOENT ? ": give a folder for checkpoints that all nodes share" : "");
    free(*folder);
    *folder = NULL;
    return status;
}

/* ---- manifests ---- */

static bool is_file(const char *path, uint64_t *bytes)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    *bytes = (uint64_t) info.st_size;
    return true;
}

static bool is_missing(const char *path)
{
    struct stat info;
    return lstat(path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* Reads a small file. HPCT_ERR_NO_INPUT: it does not exist. */
static hpct_status read_small(char **text, size_t *length, const char *path)
{
    uint64_t bytes;
    if (is_missing(path))
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s does not exist", path);
    if (!is_file(path, &bytes)) /* a pipe would be waited for */
        return hpct_fail(HPCT_ERR_DATA, "%s is not a readable file", path);
    hpct_status status = hpct_file_read(text, length, path, HPCT_CKPT_MANIFEST_MAX_BYTES);
    if (status == HPCT_ERR_NO_INPUT && !is_missing(path))
        status = HPCT_ERR_DATA;
    return status;
}

hpct_status hpct_ckpt_contents_manifest(hpct_ckpt_manifest *out, const char *folder)
{
    char *path, *text = NULL;
    const char *slash = strrchr(folder, '/'), *name = slash != NULL ? slash + 1 : folder;
    size_t length;
    int64_t step;
    *out = (hpct_ckpt_manifest){0};
    HPCT_TRY(hpct_ckpt_disk_join(&path, folder, HPCT_CKPT_MANIFEST));
    hpct_status status = read_small(&text, &length, path);
    if (status == HPCT_OK) {
        status = hpct_ckpt_manifest_parse(out, text, length);
        if (status == HPCT_OK && parse_name(name, &step) && step != out->step)
            status = hpct_fail(HPCT_ERR_DATA, "it is that of step %" PRId64, out->step);
        if (status != HPCT_OK) {
            hpct_fail_within(status, path);
            hpct_ckpt_manifest_free(out);
        }
        free(text);
    }
    free(path);
    return status;
}

bool hpct_ckpt_contents_has_manifest(const char *folder)
{
    char *path;
    bool there =
        hpct_ckpt_disk_join(&path, folder, HPCT_CKPT_MANIFEST) == HPCT_OK && !is_missing(path);
    free(path);
    return there;
}

bool hpct_ckpt_contents_is_one(const char *path)
{
    const char *slash = strrchr(path, '/');
    int64_t step;
    return hpct_ckpt_contents_has_manifest(path) ||
           parse_name(slash != NULL ? slash + 1 : path, &step);
}

bool hpct_ckpt_contents_is_whole(const hpct_ckpt_contents_entry *entry)
{
    bool whole = entry->kind == HPCT_CKPT_CONTENTS_COMPLETE;
    for (size_t i = 0; i < entry->manifest.count && whole; i++) {
        const hpct_ckpt_store_file *file = &entry->manifest.files[i];
        uint64_t bytes;
        char *path;
        whole = hpct_ckpt_disk_join(&path, entry->folder, file->name) == HPCT_OK &&
                is_file(path, &bytes) && bytes == file->bytes;
        free(path);
    }
    return whole;
}

/* ---- all of a folder ---- */

static hpct_status look_at(hpct_ckpt_contents_entry *entry)
{
    hpct_status status = hpct_ckpt_contents_manifest(&entry->manifest, entry->folder);
    if (status == HPCT_ERR_INTERNAL)
        return status;
    entry->kind = status == HPCT_OK             ? HPCT_CKPT_CONTENTS_COMPLETE
                  : status == HPCT_ERR_NO_INPUT ? HPCT_CKPT_CONTENTS_INCOMPLETE
                                                : HPCT_CKPT_CONTENTS_DAMAGED;
    if (entry->kind != HPCT_CKPT_CONTENTS_DAMAGED)
        return HPCT_OK;
    entry->reason = strdup(hpct_last_error());
    return entry->reason != NULL ? HPCT_OK : hpct_fail_memory(0);
}

static hpct_status add(void *context, const char *dir, const char *name)
{
    hpct_ckpt_contents *all = context;
    struct stat info;
    int64_t step;
    if (!parse_name(name, &step))
        return HPCT_OK;
    HPCT_TRY(hpct_alloc_room(&all->entries, &all->room, all->count + 1, sizeof *all->entries));
    hpct_ckpt_contents_entry *entry = &all->entries[all->count];
    *entry = (hpct_ckpt_contents_entry){.step = step};
    snprintf(entry->name, sizeof entry->name, "%s", name);
    HPCT_TRY(hpct_ckpt_disk_join(&entry->folder, dir, name));
    all->count++;
    if (lstat(entry->folder, &info) == 0 && S_ISDIR(info.st_mode))
        return look_at(entry);
    all->count--; /* a file or link of this name, or removed since */
    free(entry->folder);
    return HPCT_OK;
}

static int newest_first(const void *a, const void *b)
{
    const hpct_ckpt_contents_entry *x = a, *y = b;
    if (x->kind != y->kind)
        return (int) x->kind - (int) y->kind;
    if (x->kind == HPCT_CKPT_CONTENTS_COMPLETE && x->manifest.sequence != y->manifest.sequence)
        return x->manifest.sequence > y->manifest.sequence ? -1 : 1;
    return (x->step < y->step) - (x->step > y->step);
}

/* HPCT_ERR_NO_INPUT if there is none. */
static hpct_status read_best(const char *dir, int64_t *step, int64_t *sequence)
{
    char *path, *text;
    size_t length;
    HPCT_TRY(hpct_ckpt_disk_join(&path, dir, HPCT_CKPT_MANIFEST_BEST));
    hpct_status status = read_small(&text, &length, path);
    if (status == HPCT_OK) {
        status = hpct_ckpt_manifest_parse_best(step, sequence, text, length);
        if (status != HPCT_OK)
            hpct_fail_within(status, path);
        free(text);
    }
    free(path);
    return status;
}

static hpct_status mark_best(hpct_ckpt_contents *all, const char *dir)
{
    int64_t step, sequence;
    hpct_status status = read_best(dir, &step, &sequence);
    if (status != HPCT_OK && status != HPCT_ERR_NO_INPUT &&
        (all->best_fault = strdup(hpct_last_error())) == NULL)
        return hpct_fail_memory(0);
    for (size_t i = 0; i < all->count && status == HPCT_OK; i++) {
        hpct_ckpt_contents_entry *entry = &all->entries[i];
        entry->best = entry->kind == HPCT_CKPT_CONTENTS_COMPLETE && entry->step == step &&
                      entry->manifest.sequence == sequence;
    }
    return status == HPCT_ERR_INTERNAL ? status : HPCT_OK;
}

hpct_status hpct_ckpt_contents_read(hpct_ckpt_contents *out, const char *dir)
{
    *out = (hpct_ckpt_contents){.count = 0};
    hpct_status status = hpct_ckpt_disk_each(dir, add, out);
    if (status == HPCT_OK && out->count > 0)
        qsort(out->entries, out->count, sizeof *out->entries, newest_first);
    if (status == HPCT_OK)
        status = mark_best(out, dir);
    if (status != HPCT_OK)
        hpct_ckpt_contents_free(out);
    return status;
}

void hpct_ckpt_contents_free(hpct_ckpt_contents *contents)
{
    for (size_t i = 0; i < contents->count; i++) {
        hpct_ckpt_manifest_free(&contents->entries[i].manifest);
        free(contents->entries[i].folder);
        free(contents->entries[i].reason);
    }
    free(contents->entries);
    free(contents->best_fault);
    *contents = (hpct_ckpt_contents){.count = 0};
}
