/* What follows from an epoch, in a run: the end, the learning rate, the weights that are kept, and
 * the program's callbacks. */
#include "agent/checkpoint/disk.h"
#include "agent/comm/comm.h"
#include "agent/rank/context.h"
#include "agent/rank/stop.h"
#include "agent/train/control.h"
#include "agent/train/kept_weights.h"
#include "agent/train/means.h"
#include "agent/train/observer.h"
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

typedef struct observed {
    hpct_control control;
    hpct_kept_weights kept;
} observed;

static bool is_scheduled(const hpct_training *t)
{
    const hpct_schedule *schedule = &hpct_model_optimizer(t->model)->schedule;
    return schedule->kind != HPCT_CONSTANT || schedule->warmup_steps > 0;
}

static hpct_status check(void *own, hpct_training *t)
{
    observed *o = own;
    return hpct_control_parse(&o->control, &t->options, hpct_metrics_chosen(&t->options, t->model),
                              is_scheduled(t));
}

/* ---- the weights of the best epoch ---- */

static void path_of(const hpct_training *t, int64_t epoch, char path[PATH_MAX])
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
static void remove_old(const hpct_training *t, int64_t epoch)
{
    char path[PATH_MAX];
    kept_files files;
    do {
        files = (kept_files){0};
        if (hpct_disk_each(t->options.checkpoint_dir, count_kept, &files) != HPCT_OK ||
            files.count <= KEPT_FILES || files.oldest == epoch + 1)
            return;
        path_of(t, files.oldest - 1, path);
    } while (unlink(path) == 0);
}

/* Rank 0, whose notes go into checkpoints. What is in memory is all that this run needs. */
static void save_kept(observed *o, const hpct_training *t, int64_t epoch)
{
    char path[PATH_MAX];
    if (t->options.checkpoint_dir == NULL)
        return;
    path_of(t, epoch, path);
    o->control.notes.kept = hpct_model_save_weights(t->model, path) == HPCT_OK;
    if (o->control.notes.kept)
        remove_old(t, epoch);
    else
        fprintf(stderr, "hpc-train: %s: if this run is cut, the next one has no best weights\n",
                hpct_last_error());
}

static hpct_status keep(observed *o, hpct_training *t)
{
    HPCT_TRY(hpct_training_gather(t));
    hpct_waits before = hpct_headway_enter(HPCT_WAITS_UNSEEN);
    hpct_status status = hpct_kept_weights_take(&o->kept, t->context, t->model);
    if (status == HPCT_OK && t->leads)
        save_kept(o, t, t->now.epoch);
    hpct_headway_enter(before);
    return hpct_context_agree(t->context, status);
}

/* Rank 0: the file of the run that is continued. */
static hpct_status read_kept(const observed *o, const hpct_training *t)
{
    char path[PATH_MAX];
    const hpct_watch_notes *notes = &o->control.notes;
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

/* Goes on from what the run that is continued has noted. */
static hpct_status open_control(void *own, hpct_training *t)
{
    observed *o = own;
    hpct_control *c = &o->control;
    hpct_status status = HPCT_OK;
    HPCT_TRY(hpct_control_open(c, t->context, &t->options));
    hpct_control_recall(c, &t->begin.watch);
    c->halvings = t->begin.halvings + t->again;
    c->notes.rate = ldexp(c->notes.rate, t->again ? -1 : 0);
    t->now.over = hpct_control_is_over(c);
    if (!c->stops || !c->stopping.restore_best ||
        !c->notes.stopping.has) /* equal on all ranks; notes.kept is read on rank 0 */
        return HPCT_OK;
    if (t->leads)
        status = read_kept(o, t);
    if (status == HPCT_OK)
        status = hpct_kept_weights_take(&o->kept, t->context, t->model);
    return status;
}

hpct_status hpct_observed_restore_best(hpct_training *t)
{
    const observed *o = hpct_observed(t, &hpct_observe_control);
    const hpct_control *c = &o->control;
    if (!o->kept.has)
        return HPCT_OK;
    if (c->speaks != NULL)
        fprintf(c->speaks, "the weights are those of the best epoch, %lld\n",
                (long long) c->notes.stopping.best_epoch + 1);
    return hpct_kept_weights_give(&o->kept, t->context, t->model);
}

/* ---- callbacks ---- */

static double rate_of_step(const hpct_training *t)
{
    return t->strategy != NULL ? hpct_model_learning_rate(t->strategy->model)
                               : hpct_training_rate(t);
}

/* At a step or, with -1, an epoch; `train` may be NULL. Collective for epochs. */
static hpct_status call_back(observed *o, hpct_training *t, hpct_control_moment moment,
                             int64_t step, const hpct_metrics *train)
{
    double rate = rate_of_step(t);
    hpct_callback_state state = {.epoch = t->now.epoch,
                                 .step = step,
                                 .train = train != NULL ? *train : (hpct_metrics) HPCT_NO_METRICS,
                                 .validation = HPCT_NO_METRICS,
                                 .learning_rate = rate};
    hpct_status status = hpct_control_call(&o->control, moment, &state);
    if (step < 0) {
        hpct_comm *comm = hpct_context_comm(t->context);
        HPCT_TRY(hpct_context_agree(t->context, status));
        status = comm->ops->broadcast(comm, &state.learning_rate, sizeof state.learning_rate, 0);
    }
    HPCT_TRY(status);
    if (state.learning_rate != rate) {
        o->control.notes.rate = state.learning_rate;
        hpct_training_set_rate(t, state.learning_rate);
    }
    if (state.stop)
        hpct_stop_raise(HPCT_STOP_CALLBACK);
    return HPCT_OK;
}

static hpct_status step_begins(void *own, hpct_training *t)
{
    observed *o = own;
    if (!o->control.calls[HPCT_CONTROL_BATCH_BEGIN])
        return HPCT_OK;
    hpct_metrics before = hpct_training_mean(t, &t->now.sums);
    return call_back(o, t, HPCT_CONTROL_BATCH_BEGIN, t->now.sums.steps, &before);
}

static hpct_status step_ended(void *own, hpct_training *t)
{
    observed *o = own;
    if (!o->control.calls[HPCT_CONTROL_BATCH_END])
        return HPCT_OK;
    hpct_metrics after = hpct_training_mean(t, &t->now.sums);
    return call_back(o, t, HPCT_CONTROL_BATCH_END, t->now.sums.steps - 1, &after);
}

/* ---- epochs ---- */

static hpct_status epoch_begins(void *own, hpct_training *t)
{
    observed *o = own;
    hpct_training_set_rate(t, hpct_control_rate(&o->control, t->now.epoch));
    return o->control.calls[HPCT_CONTROL_EPOCH_BEGIN]
               ? call_back(o, t, HPCT_CONTROL_EPOCH_BEGIN, -1, NULL)
               : HPCT_OK;
}

static hpct_status epoch_ended(void *own, hpct_training *t)
{
    observed *o = own;
    hpct_fit_result *known = &t->now.result;
    hpct_control_verdict verdict;
    double rate = rate_of_step(t);
    HPCT_TRY(hpct_control_epoch_ended(&o->control, t->now.epoch, &known->train, &known->validation,
                                      rate, &verdict));
    if (verdict.rate > 0 && verdict.rate != rate)
        hpct_training_set_rate(t, verdict.rate);
    if (verdict.stop)
        known->stopped_epoch = t->now.epoch + 1;
    t->now.over = hpct_control_is_over(&o->control);
    return verdict.is_best && o->control.stopping.restore_best ? keep(o, t) : HPCT_OK;
}

static void save(void *own, hpct_training *t, hpct_place *place)
{
    observed *o = own;
    o->control.notes.called |= t->now.called;
    place->watch = o->control.notes;
}

static void close_control(void *own, hpct_training *t)
{
    observed *o = own;
    (void) t;
    hpct_control_close(&o->control);
    hpct_kept_weights_free(&o->kept);
}

const hpct_observer hpct_observe_control = {
    .size = sizeof(observed),
    .on = {[HPCT_ON_CHECK] = check,
           [HPCT_ON_OPEN] = open_control,
           [HPCT_ON_EPOCH] = epoch_begins,
           [HPCT_ON_STEP] = step_begins,
           [HPCT_ON_STEP_ENDED] = step_ended,
           [HPCT_ON_EPOCH_ENDED] = epoch_ended},
    .save = save,
    .close = close_control,
};
