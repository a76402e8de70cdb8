/* Removes checkpoints: the manifest first, so that what is half removed counts as incomplete. */
#include "agent/checkpoint/prune.h"

#include "agent/checkpoint/disk.h"
#include "agent/checkpoint/lock.h"
#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD_SECONDS 600 /* of temporary files that another run may still need */

/* ---- one folder ---- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static int by_name(const void *name, const void *file)
{
    return strcmp(name, ((const hpct_ckpt_store_file *) file)->name);
}

static bool is_listed(const hpct_ckpt_manifest *manifest, const char *name)
{
    return strcmp(name, HPCT_CKPT_MANIFEST) == 0 ||
           (manifest->count > 0 && bsearch(name, manifest->files, manifest->count,
                                           sizeof *manifest->files, by_name) != NULL);
}

/* Only what a checkpoint may have written: a user's files stay. */
static hpct_status remove_unlisted(void *context, const char *folder, const char *name)
{
    const hpct_ckpt_manifest *const *manifest = context;
    bool written =
        begins(name, "part-") || begins(name, "state.") || begins(name, HPCT_CKPT_MANIFEST);
    return written && !is_listed(*manifest, name) ? hpct_ckpt_disk_remove(folder, name) : HPCT_OK;
}

static hpct_status clean(const hpct_ckpt_contents_entry *entry)
{
    const hpct_ckpt_manifest *manifest = &entry->manifest;
    return hpct_ckpt_disk_each(entry->folder, remove_unlisted, &manifest);
}

static hpct_status remove_checkpoint(const hpct_ckpt_contents_entry *entry)
{
    static const hpct_ckpt_manifest none;
    const hpct_ckpt_manifest *manifest = &none;
    if (entry->kind != HPCT_CKPT_CONTENTS_INCOMPLETE) {
        HPCT_TRY(hpct_ckpt_disk_remove(entry->folder, HPCT_CKPT_MANIFEST));
        HPCT_TRY(hpct_file_sync_folder(entry->folder));
    }
    HPCT_TRY(hpct_ckpt_disk_each(entry->folder, remove_unlisted, &manifest));
    /* NFS keeps what a reader has open, and users may have files there: next time */
    if (rmdir(entry->folder) != 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST)
        return hpct_file_failed("removing", entry->folder);
    return HPCT_OK;
}

/* One of a later step than the committed one: other ranks may already write parts of a new one
 * there, under other names. */
static hpct_status remove_listed(const hpct_ckpt_contents_entry *entry)
{
    HPCT_TRY(hpct_ckpt_disk_remove(entry->folder, HPCT_CKPT_MANIFEST));
    HPCT_TRY(hpct_file_sync_folder(entry->folder));
    for (size_t i = 0; i < entry->manifest.count; i++)
        HPCT_TRY(hpct_ckpt_disk_remove(entry->folder, entry->manifest.files[i].name));
    return HPCT_OK;
}

/* ---- all ---- */

static hpct_status remove_old_temporary(void *context, const char *dir, const char *name)
{
    const struct stat *lock = context;
    struct stat info;
    char *path;
    if (strstr(name, HPCT_CKPT_DISK_TEMPORARY) == NULL ||
        (!begins(name, HPCT_CKPT_LOCK_FILE) && !begins(name, HPCT_CKPT_MANIFEST_BEST)))
        return HPCT_OK;
    HPCT_TRY(hpct_ckpt_disk_join(&path, dir, name));
    bool old = lstat(path, &info) == 0 && info.st_mtime < lock->st_mtime - OLD_SECONDS;
    free(path);
    return old ? hpct_ckpt_disk_remove(dir, name) : HPCT_OK;
}

/* The lock was made or renewed just now, by the file server's clock. */
static hpct_status remove_old_temporaries(const char *dir)
{
    struct stat lock;
    char *path;
    HPCT_TRY(hpct_ckpt_disk_join(&path, dir, HPCT_CKPT_LOCK_FILE));
    bool known = stat(path, &lock) == 0;
    free(path);
    return known ? hpct_ckpt_disk_each(dir, remove_old_temporary, &lock) : HPCT_OK;
}

/* The first failure counts; the others are tried all the same. */
static hpct_status either(hpct_status first, hpct_status second)
{
    return first != HPCT_OK ? first : second;
}

hpct_status hpct_ckpt_prune_leftovers(const char *dir)
{
    hpct_ckpt_contents all;
    HPCT_TRY(hpct_ckpt_contents_read(&all, dir));
    hpct_status status = remove_old_temporaries(dir);
    for (size_t i = 0; i < all.count; i++) {
        const hpct_ckpt_contents_entry *entry = &all.entries[i];
        if (entry->kind == HPCT_CKPT_CONTENTS_INCOMPLETE)
            status = either(status, remove_checkpoint(entry));
        else if (entry->kind == HPCT_CKPT_CONTENTS_COMPLETE)
            status = either(status, clean(entry));
    }
    hpct_ckpt_contents_free(&all);
    return status;
}

/* Complete ones come first, the newest before all. */
static bool is_oldest(const hpct_ckpt_contents *all, size_t i)
{
    return all->entries[i].kind == HPCT_CKPT_CONTENTS_COMPLETE &&
           (i + 1 == all->count || all->entries[i + 1].kind != HPCT_CKPT_CONTENTS_COMPLETE);
}

/* Sets keeps[i]; returns how many of them are whole. If nothing says which one is the best, the
 * oldest is taken for it: the best is the one that is older than the newest. */
static int choose(bool *keeps, const hpct_ckpt_contents *all, int keep)
{
    int whole = 0;
    for (size_t i = 0; i < all->count; i++) {
        const hpct_ckpt_contents_entry *entry = &all->entries[i];
        if (whole < keep && hpct_ckpt_contents_is_whole(entry)) {
            keeps[i] = true;
            whole++;
        }
        if (all->best_fault == NULL ? entry->best : is_oldest(all, i))
            keeps[i] = true;
    }
    return whole;
}

static hpct_status prune_one(const hpct_ckpt_contents_entry *entry, int64_t step, bool superfluous)
{
    if (entry->kind == HPCT_CKPT_CONTENTS_COMPLETE && entry->step == step)
        return clean(entry); /* of the one that it has replaced */
    if (entry->step > step)
        return entry->kind == HPCT_CKPT_CONTENTS_COMPLETE && superfluous ? remove_listed(entry)
                                                                         : HPCT_OK;
    if (entry->kind == HPCT_CKPT_CONTENTS_INCOMPLETE ? entry->step < step : superfluous)
        return remove_checkpoint(entry);
    return HPCT_OK;
}

static hpct_status prune(const hpct_ckpt_contents *all, int64_t step, int keep, bool *keeps)
{
    bool enough = choose(keeps, all, keep) >= keep;
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < all->count; i++)
        status = either(status, prune_one(&all->entries[i], step, enough && !keeps[i]));
    return status;
}

hpct_status hpct_ckpt_prune(const char *dir, int64_t step, int keep)
{
    hpct_ckpt_contents all;
    HPCT_TRY(hpct_ckpt_contents_read(&all, dir));
    bool *keeps = calloc(all.count + 1, sizeof *keeps);
    hpct_status status = keeps != NULL ? HPCT_OK : hpct_fail_memory(all.count + 1);
    if (status == HPCT_OK)
        status = prune(&all, step, keep, keeps);
    free(keeps);
    hpct_ckpt_contents_free(&all);
    return status == HPCT_OK ? hpct_file_sync_folder(dir) : status;
}
