/* agent/ps/schedule.h - what parameter server 0 gives the workers to do, and which gradients count.
 * Bookkeeping alone: knows nothing of connections, models or clocks.
 *
 * The run is a row of rounds, each of pieces that may be done in any order: a step's slices
 * (synchronous), an epoch's steps (asynchronous), or slices of the validation data. A worker asks
 * for a piece and says when it is done; a piece whose worker is lost is given to another. So
 * workers may come and go, and every sample is still taken once a pass (as the closures of
 * TensorFlow's ClusterCoordinator).
 *
 * Synchronous: one update a step, when all of its slices are done. With backups a worker that
 * finds every slice taken computes one that is not done a second time, and the first copy counts:
 * the backup workers of Chen, Pan, Monga, Bengio, Jozefowicz, Revisiting Distributed Synchronous
 * SGD, 2016, in the form of the backup tasks of Dean and Ghemawat, MapReduce, 2004, so that the
 * slow ones' samples are not lost and the result stays that of one rank.
 *
 * Asynchronous: every gradient is an update. Its staleness is the number of updates between the
 * parameters that it was computed from and its own. With a bound, a worker that is too fast waits
 * before it begins, as in Ho et al., More Effective Distributed ML via a Stale Synchronous Parallel
 * Parameter Server, 2013; but counted in updates, which bounds the staleness of every gradient:
 * a piece is given out only while (updates since the oldest piece in work was given out) + (pieces
 * in work) <= the bound. No gradient is thrown away. */
#ifndef HPCT_PS_SCHEDULE_H
#define HPCT_PS_SCHEDULE_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_ps_schedule hpct_ps_schedule;

typedef struct hpct_ps_schedule_options {
    int workers; /* their indices are 0 … this - 1 */
    bool synchronous;
    int slices;            /* synchronous: of a step */
    int backups;           /* synchronous: workers that may compute a slice besides the first */
    int64_t max_staleness; /* asynchronous: updates; -1 without a bound */
    int epochs;
    int64_t steps_per_epoch, max_steps; /* max_steps: over all epochs */
    int full_batch, last_batch;         /* samples of a step, and of an epoch's last */
    int evaluation_slices;              /* 0: no evaluation after the epochs */
} hpct_ps_schedule_options;

typedef enum hpct_ps_task {
    HPCT_PS_WAIT, /* nothing to do for now */
    HPCT_PS_TRAIN,
    HPCT_PS_EVALUATE,
    HPCT_PS_END, /* the run is over */
} hpct_ps_task;

typedef struct hpct_ps_item {
    hpct_ps_task task;
    int64_t step;    /* TRAIN: since training began */
    int slice;       /* of the step's slices, or of the evaluation's */
    int64_t version; /* updates made before it was given out */
} hpct_ps_item;

typedef struct hpct_ps_statistics {
    int64_t updates;       /* of the parameters */
    int64_t gradients;     /* that counted */
    int64_t late;          /* copies of backup workers that came second */
    int64_t given_again;   /* pieces whose worker was lost */
    int64_t staleness_sum; /* over the gradients that counted */
    int64_t staleness_max;
    int64_t held; /* times that a worker had to wait for the bound */
} hpct_ps_statistics;

hpct_status hpct_ps_schedule_new(hpct_ps_schedule **out, const hpct_ps_schedule_options *options);
void hpct_ps_schedule_free(hpct_ps_schedule *schedule);

/* What the worker, which holds no piece, is to do. */
hpct_ps_item hpct_ps_schedule_next(hpct_ps_schedule *schedule, int worker);

/* The worker's piece is done, wherever it was needed; *item is it. False when it does not count: it
 * was late, or the worker held none. */
bool hpct_ps_schedule_done(hpct_ps_schedule *schedule, int worker, hpct_ps_item *item);

/* The worker will not do its piece, if it holds one. */
void hpct_ps_schedule_give_back(hpct_ps_schedule *schedule, int worker);

/* The run ends as it is. */
void hpct_ps_schedule_stop(hpct_ps_schedule *schedule);

/* Epochs trained in full, epochs evaluated, steps of the epoch that runs (or was stopped in). */
int hpct_ps_schedule_trained(const hpct_ps_schedule *schedule);
int hpct_ps_schedule_evaluated(const hpct_ps_schedule *schedule);
int64_t hpct_ps_schedule_steps(const hpct_ps_schedule *schedule);
bool hpct_ps_schedule_ended(const hpct_ps_schedule *schedule);
const hpct_ps_statistics *hpct_ps_schedule_statistics(const hpct_ps_schedule *schedule);

/* Of step `step`: samples over all slices, in one of them (and where they begin), and slices that
 * have any. */
int hpct_ps_step_samples(const hpct_ps_schedule_options *options, int64_t step);
int hpct_ps_slice_samples(const hpct_ps_schedule_options *options, int64_t step, int slice,
                          int64_t *begin);
int hpct_ps_step_slices(const hpct_ps_schedule_options *options, int64_t step);

#endif
