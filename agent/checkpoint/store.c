/* Commits checkpoints, under the lock of their folder. */
#include "agent/checkpoint/store.h"

#include "agent/checkpoint/contents.h"
#include "agent/checkpoint/disk.h"
#include "agent/checkpoint/lock.h"
#include "agent/checkpoint/manifest.h"
#include "agent/checkpoint/prune.h"
#include "base/file.h"
#include "base/output.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct hpct_ckpt_store {
    char *dir;
    int keep;
    hpct_ckpt_store_note *note;
    void *context;
    hpct_ckpt_lock *lock;
};

/* What cannot be removed takes space, but loses nothing. */
static void note_failure(const hpct_ckpt_store *store)
{
    char line[1024];
    snprintf(line, sizeof line, "old checkpoints stay: %.900s", hpct_last_error());
    if (store->note != NULL)
        store->note(store->context, line);
}

/* A copy may have been interrupted. */
static void note_incomplete(const hpct_ckpt_store *store, const hpct_ckpt_contents *all)
{
    char line[1024];
    bool any = false;
    for (size_t i = 0; i < all->count; i++)
        any |= all->entries[i].kind != HPCT_CKPT_CONTENTS_INCOMPLETE;
    if (all->count == 0 || any)
        return;
    snprintf(line, sizeof line,
             "%.800s has no complete checkpoint: what an interrupted run or copy has left is "
             "removed",
             store->dir);
    store->note(store->context, line);
}

static void note_best(const hpct_ckpt_store *store, const hpct_ckpt_contents *all)
{
    char line[1024];
    if (all->best_fault == NULL)
        return;
    snprintf(line, sizeof line,
             "%.800s: the oldest checkpoint stays as the best one, until there is a better one",
             all->best_fault);
    store->note(store->context, line);
}

static void note_contents(const hpct_ckpt_store *store)
{
    hpct_ckpt_contents all;
    if (store->note == NULL || hpct_ckpt_contents_read(&all, store->dir) != HPCT_OK)
        return;
    note_incomplete(store, &all);
    note_best(store, &all);
    hpct_ckpt_contents_free(&all);
}

hpct_status hpct_ckpt_store_open(hpct_ckpt_store **out, const char *dir, int keep,
                                 hpct_ckpt_store_note *note, void *context)
{
    if (keep < 1)
        return hpct_fail(HPCT_ERR_USAGE, "%d checkpoints cannot be kept: at least 1", keep);
    hpct_ckpt_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return hpct_fail_memory(sizeof *store);
    *store = (hpct_ckpt_store){.keep = keep, .note = note, .context = context, .dir = strdup(dir)};
    hpct_status status =
        store->dir != NULL ? hpct_output_make_folder(dir) : hpct_fail_memory(strlen(dir) + 1);
    if (status == HPCT_OK)
        status = hpct_ckpt_lock_take(&store->lock, dir, &hpct_ckpt_lock_usual, note, context);
    if (status == HPCT_OK)
        note_contents(store);
    if (status == HPCT_OK && hpct_ckpt_prune_leftovers(dir) != HPCT_OK)
        note_failure(store);
    if (status == HPCT_OK)
        *out = store;
    else
        hpct_ckpt_store_close(store);
    return status;
}

void hpct_ckpt_store_close(hpct_ckpt_store *store)
{
    if (store == NULL)
        return;
    hpct_ckpt_lock_release(store->lock);
    free(store->dir);
    free(store);
}

hpct_status hpct_ckpt_store_check(hpct_ckpt_store *store)
{
    return hpct_ckpt_lock_check(store->lock);
}

/* ---- committing ---- */

/* Opening it makes NFS ask the server. */
static hpct_status check_part(const char *folder, const hpct_ckpt_store_file *file)
{
    struct stat info;
    char *path;
    if (memchr(file->name, '\0', sizeof file->name) == NULL ||
        !hpct_ckpt_manifest_name_ok(file->name))
        return hpct_fail(HPCT_ERR_USAGE, "\"%.63s\" is not a part of a checkpoint", file->name);
    HPCT_TRY(hpct_ckpt_disk_join(&path, folder, file->name));
    hpct_status status = HPCT_OK;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        status = hpct_fail(HPCT_ERR_IO,
                           "%s, which another rank has written, cannot be opened: %s: give a "
                           "folder for checkpoints that all nodes share",
                           path, strerror(errno));
    else if (fstat(fd, &info) != 0)
        status = hpct_file_failed("reading", path);
    else if ((uint64_t) info.st_size != file->bytes)
        status = hpct_fail(HPCT_ERR_IO, "%s has %lld bytes instead of the %llu that were written",
                           path, (long long) info.st_size, (unsigned long long) file->bytes);
    if (fd >= 0)
        close(fd);
    free(path);
    return status;
}

static hpct_status write_state(const char *folder, const char *state, hpct_ckpt_store_file *written)
{
    hpct_ckpt_disk_file file;
    HPCT_TRY(hpct_ckpt_disk_create(&file, folder, "state"));
    hpct_status status = hpct_ckpt_disk_write(&file, state, strlen(state));
    if (status == HPCT_OK)
        status = hpct_ckpt_disk_place(&file, "state", "json", written);
    hpct_ckpt_disk_discard(&file);
    return status;
}

/* One more than any in the folder. */
static hpct_status next_sequence(int64_t *out, const char *dir)
{
    hpct_ckpt_contents all;
    HPCT_TRY(hpct_ckpt_contents_read(&all, dir));
    *out = 1;
    if (all.count > 0 && all.entries[0].kind == HPCT_CKPT_CONTENTS_COMPLETE)
        *out = all.entries[0].manifest.sequence + 1; /* the newest is first */
    hpct_ckpt_contents_free(&all);
    return *out <= HPCT_CKPT_STORE_MAX_SEQUENCE
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_DATA,
                           "%s: the sequence number of its checkpoints is at its limit", dir);
}

/* The state is written, then the manifest, which completes the checkpoint. */
static hpct_status complete(hpct_ckpt_store *store, const char *folder, const char *state,
                            hpct_ckpt_manifest *manifest)
{
    char *text = NULL;
    HPCT_TRY(write_state(folder, state, &manifest->files[manifest->state]));
    HPCT_TRY(hpct_ckpt_manifest_format(&text, manifest));
    hpct_status status = hpct_ckpt_lock_check(store->lock);
    if (status == HPCT_OK)
        status = hpct_ckpt_disk_put(folder, HPCT_CKPT_MANIFEST, text);
    if (status == HPCT_OK)
        status = hpct_file_sync_folder(store->dir);
    free(text);
    return status;
}

static hpct_status commit(hpct_ckpt_store *store, const char *folder, int64_t step,
                          const char *state, const hpct_ckpt_store_file *files, size_t count,
                          int64_t sequence)
{
    hpct_ckpt_manifest manifest = {.step = step, .sequence = sequence, .time = time(NULL)};
    for (size_t i = 0; i < count; i++)
        HPCT_TRY(check_part(folder, &files[i]));
    manifest.files = calloc(count + 1, sizeof *manifest.files);
    if (manifest.files == NULL)
        return hpct_fail_memory((count + 1) * sizeof *manifest.files);
    if (count > 0)
        memcpy(manifest.files, files, count * sizeof *files);
    manifest.state = count;
    manifest.count = count + 1;
    hpct_status status = complete(store, folder, state, &manifest);
    hpct_ckpt_manifest_free(&manifest);
    return status;
}

static hpct_status write_best(const hpct_ckpt_store *store, int64_t step, int64_t sequence)
{
    char *text;
    HPCT_TRY(hpct_ckpt_manifest_format_best(&text, step, sequence));
    hpct_status status = hpct_ckpt_disk_put(store->dir, HPCT_CKPT_MANIFEST_BEST, text);
    free(text);
    return status;
}

hpct_status hpct_ckpt_store_commit(hpct_ckpt_store *store, int64_t step, const char *state,
                                   const hpct_ckpt_store_file *files, size_t count, bool best)
{
    int64_t sequence = 0;
    char *folder = NULL;
    if (step < 0 || step > HPCT_CKPT_STORE_MAX_STEP || count > HPCT_CKPT_STORE_MAX_PARTS)
        return hpct_fail(HPCT_ERR_USAGE, "step %lld with %zu parts cannot be saved",
                         (long long) step, count);
    hpct_status status = hpct_ckpt_lock_check(store->lock);
    if (status == HPCT_OK)
        status = hpct_ckpt_contents_make(&folder, store->dir, step);
    if (status == HPCT_OK)
        status = next_sequence(&sequence, store->dir);
    if (status == HPCT_OK)
        status = commit(store, folder, step, state, files, count, sequence);
    if (status == HPCT_OK && best)
        status = write_best(store, step, sequence);
    free(folder);
    if (status == HPCT_OK && hpct_ckpt_prune(store->dir, step, store->keep) != HPCT_OK)
        note_failure(store);
    return status;
}
