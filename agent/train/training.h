/* agent/train/training.h - a training run: what it is, where it is, and what its observers keep
 * (agent/train/observer.h). Of fit, and of parameter server 0. */
#ifndef HPCT_AGENT_TRAIN_TRAINING_H
#define HPCT_AGENT_TRAIN_TRAINING_H

#include "agent/rank/timeline.h"
#include "agent/results/live_report.h"
#include "agent/results/results.h"
#include "agent/strategy/strategy.h"
#include "agent/train/batch_source.h"
#include "agent/train/pace_file.h"
#include "agent/train/place.h"

#include <hpctrain/train.h>

/* Sums over steps. */
typedef struct hpct_train_training_sums {
    double loss, correct, in_top_k;
    int64_t samples, steps;
} hpct_train_training_sums;

/* Clocks in seconds, and durations. */
typedef struct hpct_train_training_times {
    double start_seconds; /* from the process' start to step 1 */
    double began, epoch_began, first_step_ended, last_step_ended; /* the last three: of the epoch */
    int64_t timed;                       /* steps of the epoch in this run */
    double parts[HPCT_TRAIN_PACE_PARTS]; /* of the last step */
    double evaluation, save;             /* of the last ones; 0: none yet */
    double job_left;                     /* until the job ends; not finite: unknown */
    double *steps;                       /* a ring buffer of num_steps; without step 1 */
    int64_t num_steps;
    double *epochs;
} hpct_train_training_times;

/* Where a run is. */
typedef struct hpct_train_moment {
    int epoch;                     /* under way, from 0 */
    int64_t planned;               /* its steps */
    hpct_train_training_sums sums; /* of the epoch so far, also in the run that is continued */
    hpct_train_training_sums last; /* of the last step; without samples they are not known yet */
    hpct_train_training_times times;
    int64_t steps_done, samples_done; /* in this run */
    int epochs_done;
    int signal;    /* that has stopped the run, or 0 */
    bool cut;      /* the epoch has ended before its last step, or is not evaluated */
    bool good;     /* the epoch that has ended has not diverged */
    bool is_best;  /* nor was an epoch better */
    bool gathered; /* the model has all that the strategy's ranks hold */
    bool settled;  /* the files in the log folder are this run's */
    bool over;     /* training has ended by itself, here or before */
    bool called;   /* a callback has asked for the end */
    double rate;   /* learning rate; 0: the model's */
    hpct_fit_result result;
    hpct_results_end end;
    hpct_results_live_how how; /* the run ends; "running": it goes on, maybe from a checkpoint */
} hpct_train_moment;

#define HPCT_TRAIN_MOST_OBSERVERS 16

typedef struct hpct_train_training {
    hpct_context *context; /* of the ranks that step together; a parameter server is alone */
    hpct_model *model;
    const hpct_dataset *train, *validation; /* validation NULL: none */
    hpct_fit_options options;
    json_t *identity; /* agent/train/identity.h */
    const char *host; /* name of this node */
    const char *strategy_name;
    hpct_strategy *strategy;                         /* NULL: parameter servers */
    const hpct_results_ps_summary *parameter_server; /* NULL: none */
    hpct_train_batch_source *input_source;           /* NULL: none */
    hpct_rank_timeline *timeline;                    /* NULL: not requested */
    hpct_results_tally *tally;                       /* of the last validation; NULL: none */
    const char *const *nodes;                        /* [workers] names */
    int workers, global_batch;
    int64_t steps_per_epoch, bytes_per_step;
    hpct_train_place begin; /* where this run begins */
    bool leads;             /* writes the run's files */
    bool continued;         /* a checkpoint, */
    bool continues;         /* and the log folder's files of its run */
    bool again;             /* the second part, after --on-nan resume has gone back */
    hpct_train_moment now;
    void *own[HPCT_TRAIN_MOST_OBSERVERS]; /* the observers' states */
} hpct_train_training;

/* Once `begin` and the steps are known. */
hpct_status hpct_train_training_allocate(hpct_train_training *training);
void hpct_train_training_free(hpct_train_training *training);

/* Whether steps are left: a run that is continued may be complete. */
bool hpct_train_training_has_work(const hpct_train_training *training);

/* The number of the run's first step, counted from the beginning of the training that it continues.
 */
int64_t hpct_train_training_first_step(const hpct_train_training *training);

/* The first step is next. */
void hpct_train_training_start(hpct_train_training *training);

/* An epoch of so many steps begins, or goes on where the run that is continued has stopped. */
void hpct_train_training_begin_epoch(hpct_train_training *training, int epoch, int64_t steps);

/* A step has ended, at this time, `seconds` after it began. */
void hpct_train_training_add_step(hpct_train_training *training,
                                  const hpct_train_training_sums *step, double ended,
                                  double seconds);

/* The epoch is over: the moment is the beginning of the next one. */
void hpct_train_training_end_epoch(hpct_train_training *training);

/* For a checkpoint, with what the observers keep in it. */
hpct_train_place hpct_train_training_place(hpct_train_training *training);

hpct_metrics hpct_train_training_mean(const hpct_train_training *training,
                                      const hpct_train_training_sums *sums);

/* Mean of the epoch's steps, without its first if there are others; 0 before the first. */
double hpct_train_training_step_seconds(const hpct_train_training *training);

/* The learning rate in use; and sets it in all of the rank's models. */
double hpct_train_training_rate(const hpct_train_training *training);
void hpct_train_training_set_rate(hpct_train_training *training, double rate);

/* Gives the model what the strategy's ranks hold, unless it has it. Collective. */
hpct_status hpct_train_training_gather(hpct_train_training *training);

/* Prints, on the rank that leads, the last error of a file that is written later, if there is one.
 */
void hpct_train_training_say_retried(const hpct_train_training *training, hpct_status status);

/* Training has ended: notes how far it came. */
void hpct_train_training_note_end(hpct_train_training *training);

/* Records an error; whether the ranks can go on, as all know of it and can still communicate. */
bool hpct_train_training_went(hpct_train_training *training, hpct_status status);

/* The observers' last outputs; then the run's status with its last message, equal on all ranks.
 * Collective. */
hpct_status hpct_train_training_finish(hpct_train_training *training);

/* Closes the observers of a run that has ended so, if they are open. */
void hpct_train_training_close(hpct_train_training *training, hpct_status status);

#endif
