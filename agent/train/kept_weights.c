/* In memory value by value, and as a file beside the checkpoints. */
#include "agent/train/kept_weights.h"

#include "agent/checkpoint/disk.h"
#include "agent/comm/comm.h"
#include "agent/rank/context.h"
#include "base/status.h"
#include "nn/run/state.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_FILES 4
#define BEST_FILE "early-stopping-%04lld.safetensors" /* epoch; in the folder of checkpoints */

static size_t count_floats(const hpct_run_state_list *list)
{
    size_t count = 0;
    for (int i = 0; i < list->count; i++)
        count += list->values[i].slot == HPCT_RUN_STATE_PARAM ? list->values[i].count : 0;
    return count;
}

static hpct_status copy_weights(hpct_train_kept_weights *kept, const hpct_model *model,
                                const hpct_run_state_list *list)
{
    size_t at = 0, count = count_floats(list);
    if (kept->floats == NULL)
        kept->floats = malloc((count + 1) * sizeof *kept->floats);
    if (kept->floats == NULL)
        return hpct_fail_memory(count * sizeof *kept->floats);
    for (int i = 0; i < list->count; i++) {
        const hpct_run_state_value *value = &list->values[i];
        if (value->slot != HPCT_RUN_STATE_PARAM)
            continue;
        HPCT_TRY(hpct_run_state_get(model, value->param, value->slot, kept->floats + at));
        at += value->count;
    }
    return HPCT_OK;
}

hpct_status hpct_train_kept_weights_take(hpct_train_kept_weights *kept, const hpct_context *context,
                                         const hpct_model *model)
{
    hpct_run_state_list list;
    kept->has = true;
    if (hpct_context_rank(context) != 0)
        return HPCT_OK;
    HPCT_TRY(hpct_run_state_list_make(&list, model));
    hpct_status status = copy_weights(kept, model, &list);
    hpct_run_state_list_free(&list);
    return status;
}

static hpct_status give(const hpct_train_kept_weights *kept, hpct_context *context,
                        hpct_model *model, const hpct_run_state_list *list, float *floats)
{
    size_t at = 0;
    hpct_comm *comm = hpct_context_comm(context);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < list->count; i++) {
        const hpct_run_state_value *value = &list->values[i];
        if (value->slot != HPCT_RUN_STATE_PARAM)
            continue;
        if (hpct_context_rank(context) == 0)
            memcpy(floats, kept->floats + at, value->count * sizeof *floats);
        HPCT_TRY(comm->ops->broadcast(comm, floats, value->count * sizeof *floats, 0));
        if (status == HPCT_OK) /* the others are still in the loop */
            status = hpct_run_state_put(model, value->param, value->slot, floats);
        at += value->count;
    }
    return hpct_context_agree(context, status);
}

hpct_status hpct_train_kept_weights_give(const hpct_train_kept_weights *kept, hpct_context *context,
                                         hpct_model *model)
{
    hpct_run_state_list list = {0};
    float *floats = NULL;
    hpct_status status = hpct_run_state_list_make(&list, model);
    if (status == HPCT_OK && (floats = malloc(list.largest * sizeof *floats)) == NULL)
        status = hpct_fail_memory(list.largest * sizeof *floats);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = give(kept, context, model, &list, floats);
    hpct_run_state_list_free(&list);
    free(floats);
    return status;
}

void hpct_train_kept_weights_free(hpct_train_kept_weights *kept)
{
    free(kept->floats);
    *kept = (hpct_train_kept_weights){0};
}

/* ---- the file ---- */

static void path_of(const hpct_train_training *t, int64_t epoch, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/" BEST_FILE, t->options.checkpoint_dir, (long long) epoch + 1);
}

/* The file in the folder of checkpoints that was written before the others, and their number. */
typedef struct kept_files {
    int count;
    long long oldest; /* epoch, from 1 */
    struct timespec written;
} kept_files;

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static hpct_status count_kept(void *context, const char *dir, const char *name)
{
    char path[PATH_MAX], same[NAME_MAX];
    kept_files *files = context;
    long long epoch = 0;
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (sscanf(name, "early-stopping-%lld", &epoch) != 1 ||
        (snprintf(same, sizeof same, BEST_FILE, epoch), strcmp(same, name) != 0) ||
        lstat(path, &info) != 0)
        return HPCT_OK;
    if (files->count++ == 0 || is_before(&info.st_mtim, &files->written)) {
        files->oldest = epoch;
        files->written = info.st_mtim;
    }
    return HPCT_OK;
}

/* Checkpoints that stay may refer to earlier best epochs than the last one. Those of runs before
 * this one count, too. */
static void remove_old(const hpct_train_training *t, int64_t epoch)
{
    char path[PATH_MAX];
    kept_files files;
    do {
        files = (kept_files){0};
        if (hpct_ckpt_disk_each(t->options.checkpoint_dir, count_kept, &files) != HPCT_OK ||
            files.count <= KEPT_FILES || files.oldest == epoch + 1)
            return;
        path_of(t, files.oldest - 1, path);
    } while (unlink(path) == 0);
}

bool hpct_train_kept_weights_save(const hpct_train_training *t)
{
    char path[PATH_MAX];
    if (t->options.checkpoint_dir == NULL)
        return false;
    path_of(t, t->now.epoch, path);
    bool saved = hpct_model_save_weights(t->model, path) == HPCT_OK;
    if (saved)
        remove_old(t, t->now.epoch);
    else
        fprintf(stderr, "hpc-train: %s: if this run is cut, the next one has no best weights\n",
                hpct_last_error());
    return saved;
}

hpct_status hpct_train_kept_weights_load(const hpct_train_training *t,
                                         const hpct_train_watch_notes *notes)
{
    char path[PATH_MAX];
    path_of(t, notes->stopping.best_epoch, path);
    hpct_status status = notes->kept
                             ? hpct_model_load_weights(t->model, path)
                             : hpct_fail(HPCT_ERR_NO_INPUT, "%s was not written by this run", path);
    return status == HPCT_OK
               ? HPCT_OK
               : hpct_fail(status,
                           "%s: these are the weights of the best epoch, which restore_best of "
                           "--early-stopping needs: leave restore_best out to go on without them",
                           hpct_last_error());
}
