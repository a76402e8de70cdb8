/* What follows from an epoch, in a run: the end, the learning rate, the weights that are kept. */
#include "agent/train/fit_run.h"

#include "agent/checkpoint/disk.h"
#include "agent/rank/stop.h"
#include "agent/strategy/state.h"
#include "agent/train/means.h"
#include "base/headway.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_FILES 4
#define BEST_FILE "early-stopping-%04lld.safetensors" /* epoch; in the folder of checkpoints */

static void set_rate(const hpct_fit_run *run, double rate)
{
    hpct_model *model;
    for (int k = 0; (model = hpct_strategy_model(run->strategy, k)) != NULL; k++)
        hpct_model_set_learning_rate(model, rate);
    hpct_model_set_learning_rate(run->model, rate);
}

hpct_status hpct_fit_open_control(hpct_fit_run *run)
{
    const hpct_optimizer *o = hpct_model_optimizer(run->model);
    bool scheduled = o->schedule.kind != HPCT_CONSTANT || o->schedule.warmup_steps > 0;
    return hpct_control_open(&run->control, run->context, &run->options,
                             hpct_metrics_chosen(&run->options, run->model), scheduled);
}

/* ---- the weights of the best epoch ---- */

static void path_of(const hpct_fit_run *run, int64_t epoch, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/" BEST_FILE, run->options.checkpoint_dir, (long long) epoch + 1);
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
static void remove_old(const hpct_fit_run *run, int64_t epoch)
{
    char path[PATH_MAX];
    kept_files files;
    do {
        files = (kept_files){0};
        if (hpct_disk_each(run->options.checkpoint_dir, count_kept, &files) != HPCT_OK ||
            files.count <= KEPT_FILES || files.oldest == epoch + 1)
            return;
        path_of(run, files.oldest - 1, path);
    } while (unlink(path) == 0);
}

/* Rank 0, whose notes go into checkpoints. What is in memory is all that this run needs. */
static void save_kept(hpct_fit_run *run, int64_t epoch)
{
    char path[PATH_MAX];
    if (run->options.checkpoint_dir == NULL)
        return;
    path_of(run, epoch, path);
    run->control.notes.kept = hpct_model_save_weights(run->model, path) == HPCT_OK;
    if (run->control.notes.kept)
        remove_old(run, epoch);
    else
        fprintf(stderr, "hpc-train: %s: if this run is cut, the next one has no best weights\n",
                hpct_last_error());
}

static hpct_status keep(hpct_fit_run *run, int64_t epoch, bool gathered)
{
    if (!gathered)
        HPCT_TRY(run->strategy->ops->gather(run->strategy));
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_UNSEEN);
    hpct_status status = hpct_kept_weights_take(&run->kept, run->context, run->model);
    if (status == HPCT_OK && hpct_context_rank(run->context) == 0)
        save_kept(run, epoch);
    hpct_headway_enter(before);
    return hpct_context_agree(run->context, status);
}

/* Rank 0: the file of the run that is continued. */
static hpct_status read_kept(hpct_fit_run *run)
{
    char path[PATH_MAX];
    const hpct_watch_notes *notes = &run->control.notes;
    path_of(run, notes->stopping.best_epoch, path);
    hpct_status status = notes->kept
                             ? hpct_model_load_weights(run->model, path)
                             : hpct_fail(HPCT_ERR_NO_INPUT, "%s was not written by this run", path);
    return status == HPCT_OK
               ? HPCT_OK
               : hpct_fail(status,
                           "%s: these are the weights of the best epoch, which restore_best of "
                           "--early-stopping needs: leave restore_best out to go on without them",
                           hpct_last_error());
}

hpct_status hpct_fit_recall_control(hpct_fit_run *run)
{
    hpct_status status = HPCT_OK;
    hpct_control_recall(&run->control, &run->begin.watch);
    run->control.halvings = run->begin.halvings + run->again;
    run->control.notes.rate = ldexp(run->control.notes.rate, run->again ? -1 : 0);
    if (!run->control.stops || !run->control.stopping.restore_best ||
        !run->control.notes.stopping.has) /* equal on all ranks; notes.kept is read on rank 0 */
        return HPCT_OK;
    if (hpct_context_rank(run->context) == 0)
        status = read_kept(run);
    if (status == HPCT_OK)
        status = hpct_kept_weights_take(&run->kept, run->context, run->model);
    return hpct_context_agree(run->context, status);
}

hpct_status hpct_fit_restore_best(hpct_fit_run *run)
{
    const hpct_control *c = &run->control;
    if (!run->kept.has)
        return HPCT_OK;
    if (c->speaks != NULL)
        fprintf(c->speaks, "the weights are those of the best epoch, %lld\n",
                (long long) c->notes.stopping.best_epoch + 1);
    return hpct_kept_weights_give(&run->kept, run->context, run->model);
}

/* ---- epochs and batches ---- */

hpct_status hpct_fit_control_epoch(hpct_fit_run *run, int epoch)
{
    set_rate(run, hpct_control_rate(&run->control, epoch));
    return hpct_fit_call_back(run, HPCT_CONTROL_EPOCH_BEGIN, epoch, -1, NULL);
}

hpct_status hpct_fit_call_back(hpct_fit_run *run, hpct_control_moment moment, int epoch,
                               int64_t step, const hpct_metrics *train)
{
    if (!run->control.calls[moment])
        return HPCT_OK;
    double rate = hpct_model_learning_rate(run->strategy->model);
    hpct_callback_state state = {.epoch = epoch,
                                 .step = step,
                                 .train = train != NULL ? *train : (hpct_metrics) HPCT_NO_METRICS,
                                 .validation = HPCT_NO_METRICS,
                                 .learning_rate = rate};
    hpct_status status = hpct_control_call(&run->control, moment, &state);
    if (step < 0) {
        hpct_comm *comm = hpct_context_comm(run->context);
        HPCT_TRY(hpct_context_agree(run->context, status));
        status = comm->ops->broadcast(comm, &state.learning_rate, sizeof state.learning_rate, 0);
    }
    HPCT_TRY(status);
    if (state.learning_rate != rate) {
        run->control.notes.rate = state.learning_rate;
        set_rate(run, state.learning_rate);
    }
    if (state.stop)
        hpct_stop_raise(HPCT_STOP_CALLBACK);
    return HPCT_OK;
}

hpct_status hpct_fit_control_epoch_ended(hpct_fit_run *run, int epoch, bool gathered)
{
    hpct_control_verdict verdict;
    double rate = hpct_model_learning_rate(run->strategy->model);
    HPCT_TRY(hpct_control_epoch_ended(&run->control, epoch, &run->result.train,
                                      &run->result.validation, rate, &verdict));
    if (verdict.rate > 0 && verdict.rate != rate)
        set_rate(run, verdict.rate);
    if (verdict.stop)
        run->result.stopped_epoch = epoch + 1;
    return verdict.is_best && run->control.stopping.restore_best ? keep(run, epoch, gathered)
                                                                 : HPCT_OK;
}
