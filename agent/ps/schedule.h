/* agent/ps/schedule.h - assignment of work to the workers by parameter server 0, and which
 * gradients count. Bookkeeping only: independent of connections, models and clocks.
 *
 * The run is a sequence of rounds, each of pieces that may be done in any order: a step's slices
 * (synchronous), an epoch's steps (asynchronous), or slices of the validation data. A worker
 * requests a piece and reports its completion; a lost worker's piece is assigned to another. So
 * workers may join and leave, and every sample is still used once per pass (like the closures of
 * TensorFlow's ClusterCoordinator).
 *
 * Synchronous: one update per step, when all of its slices are done. With backups, a worker that
 * finds every slice assigned computes an unfinished one again, and the first copy counts: the
 * backup workers of Chen, Pan, Monga, Bengio, Jozefowicz, Revisiting Distributed Synchronous SGD,
 * 2016, in the form of the backup tasks of Dean and Ghemawat, MapReduce, 2004, so that the samples
 * of slow workers are not lost and the result is that of one rank.
 *
 * Asynchronous: every gradient is an update. Its staleness is the number of updates between the
 * parameters it was computed from and itself. With a bound, a fast worker waits before it begins,
 * as in Ho et al., More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server,
 * 2013; but counted in updates, which bounds the staleness of every gradient: a piece is assigned
 * only while (updates since the oldest assigned piece) + (assigned pieces) <= the bound. No
 * gradient is discarded. */
#ifndef HPCT_AGENT_PS_SCHEDULE_H
#define HPCT_AGENT_PS_SCHEDULE_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hpct_ps_schedule hpct_ps_schedule;

typedef struct hpct_ps_schedule_options {
    int workers; /* their indices are 0 … workers - 1 */
    bool synchronous;
    int slices;            /* synchronous: slices per step */
    int backups;           /* synchronous: additional workers that may compute a slice */
    int64_t max_staleness; /* asynchronous: in updates; -1: no bound */
    int epochs;
    int64_t steps_per_epoch, max_steps; /* max_steps: over all epochs */
    int64_t first_step;                 /* steps of the first epoch that an earlier run has done */
    int full_batch, last_batch;         /* samples of a step, and of an epoch's last step */
    int evaluation_slices;              /* 0: no evaluation after the epochs */
} hpct_ps_schedule_options;

typedef enum hpct_ps_task {
    HPCT_PS_WAIT, /* nothing to do now */
    HPCT_PS_TRAIN,
    HPCT_PS_EVALUATE,
    HPCT_PS_END, /* the run is over */
} hpct_ps_task;

typedef struct hpct_ps_item {
    hpct_ps_task task;
    int64_t step;    /* TRAIN: since the beginning of the first epoch */
    int slice;       /* index among the step's, or the evaluation's slices */
    int64_t version; /* of the parameters: updates since the beginning of the first epoch */
} hpct_ps_item;

typedef struct hpct_ps_statistics {
    int trained, evaluated; /* epochs, completely */
    int64_t epoch_steps;    /* of the epoch, or of the one it was stopped in, with earlier runs' */
    int64_t version;        /* of the parameters: updates, with earlier runs' of the first epoch */
    int64_t updates;        /* of the parameters, in this run */
    int64_t gradients;      /* that were applied */
    int64_t late;           /* copies by backup workers that came too late */
    int64_t given_again;    /* pieces assigned again after their worker was lost */
    int64_t staleness_sum;  /* over the gradients applied */
    int64_t staleness_max;
    int64_t held; /* how often a worker waited because of the bound */
} hpct_ps_statistics;

hpct_status hpct_ps_schedule_new(hpct_ps_schedule **out, const hpct_ps_schedule_options *options);
void hpct_ps_schedule_free(hpct_ps_schedule *schedule);

/* Assigns a piece to a worker, which must have none. */
hpct_ps_item hpct_ps_schedule_next(hpct_ps_schedule *schedule, int worker);

/* The worker has completed its piece *item. False if it does not count: it was late, or the worker
 * had none. */
bool hpct_ps_schedule_done(hpct_ps_schedule *schedule, int worker, hpct_ps_item *item);

/* The worker will not complete its piece, if it has one. */
void hpct_ps_schedule_give_back(hpct_ps_schedule *schedule, int worker);

/* Between rounds nothing is under way, or only what will not count: then the state can be saved. */
bool hpct_ps_schedule_between(const hpct_ps_schedule *schedule);

/* Asynchronous: ends the round with the pieces that are assigned; the others are of the next one.
 */
void hpct_ps_schedule_cut(hpct_ps_schedule *schedule);

/* Ends the run after the step under way (asynchronous: after the steps that are assigned), and
 * after the evaluation, if that was the epoch's last one. */
void hpct_ps_schedule_stop(hpct_ps_schedule *schedule);

/* Ends the run after the pieces done so far, as there is no worker left. */
void hpct_ps_schedule_end(hpct_ps_schedule *schedule);

/* Whether the run is over; what was done. */
bool hpct_ps_schedule_ended(const hpct_ps_schedule *schedule);
const hpct_ps_statistics *hpct_ps_schedule_statistics(const hpct_ps_schedule *schedule);

/* Of step `step`: samples of one slice, and where they begin; number of slices with samples. */
int hpct_ps_slice_samples(const hpct_ps_schedule_options *options, int64_t step, int slice,
                          int64_t *begin);
int hpct_ps_step_slices(const hpct_ps_schedule_options *options, int64_t step);

#endif
