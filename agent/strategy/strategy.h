/* agent/strategy/strategy.h - how the ranks share the work of one training step: one table, one
 * file per strategy. A strategy builds the model, so that it decides what each rank computes and
 * when gradients travel. Knows communicators and arenas; nothing of layers, data sets or output. */
#ifndef HPCT_STRATEGY_STRATEGY_H
#define HPCT_STRATEGY_STRATEGY_H

#include "agent/context.h"
#include "agent/timeline.h"
#include "nn/shard.h"
#include "nn/step.h"

#include <hpctrain/model.h>
#include <hpctrain/strategy.h>
#include <hpctrain/train.h>
#include <stdbool.h>
#include <stdint.h>

#define HPCT_STRATEGY_SIZES 16 /* most counts of a plan, of steps and evaluation together */

typedef struct hpct_strategy hpct_strategy;

typedef struct hpct_strategy_plan {
    hpct_context *context;
    hpct_model *model;      /* compiled, with weights */
    const int *batch_sizes; /* every count that this rank steps with, but 0 */
    int num_batch_sizes;
    const int *evaluation_sizes; /* every count that `model` is evaluated with */
    int num_evaluation_sizes;
    int input_samples; /* the model's input has room for, where they are more than those sizes */
    const hpct_strategy_options *options;
    bool keep_gradients; /* somebody reads them: no update inside backward */
    bool dense_targets;  /* as in hpct_build_options */
    bool one_updates;    /* rank 0 alone has the optimizer's slots; the others get its weights */
    bool late_sums;      /* loss and metrics may come with a later step (hpct_step_sums.samples) */
    hpct_timeline *timeline; /* gets the parts of each step; may be NULL */
} hpct_strategy_plan;

/* What every rank knows after a step, and (as `mine`) what it brings. */
typedef struct hpct_step_sums {
    double loss, correct, in_top_k; /* sums over the global batch */
    int interrupted, terminated;    /* how many ranks have got SIGINT, SIGTERM */
    int failed;                     /* how many ranks have no input, because of an error */
    /* Of the steps that loss, correct and in_top_k are of: this one, none (they come with a later
     * step) or several. Set by hpct_strategy_step and the strategy. */
    int64_t samples;
    bool last; /* in, the same on all ranks: nothing may come later, an epoch ends */
} hpct_step_sums;

typedef struct hpct_strategy_ops {
    const char *name; /* as the user writes it */

    /* Every rank reads all samples of the global batch, not its slice: the counts of its steps are
     * the global counts. */
    bool whole_batch;

    /* A step is made of several, over pieces of the batch, of a part of the model: nobody can time
     * or emulate its operations as those of one. */
    bool in_pieces;

    /* Takes options->replicas above 1: a rank's samples are shared among so many replicas. */
    bool replicas;

    /* Bytes by which this process grows in open and in steps; takes none of them. */
    hpct_status (*need)(const hpct_strategy_plan *plan, size_t *bytes);

    /* Builds the model, checks that all ranks can add up what they send, makes rank 0's weights
     * everybody's and allocates all that a step needs. Collective. */
    hpct_status (*open)(hpct_strategy **out, const hpct_strategy_plan *plan);

    /* Before forward, where not NULL: this rank's signals and failure, for a strategy that takes
     * them along earlier than in reduce. */
    void (*announce)(hpct_strategy *strategy, const hpct_step_sums *mine);

    /* A step has four parts, which follow one another and allocate nothing (hpct_strategy_step
     * makes all). forward: over the `count` samples in hpct_model_input (0 is allowed). backward:
     * loss and gradients of them, of `global_count` on all ranks; sets loss and metrics of *sums to
     * this rank's. reduce, collective: the gradients of all ranks and *sums are added up and then
     * the same everywhere. apply, collective: the optimizer's update. */
    hpct_status (*forward)(hpct_strategy *strategy, int count, bool training);
    hpct_status (*backward)(hpct_strategy *strategy, int count, int global_count,
                            hpct_step_sums *sums);
    hpct_status (*reduce)(hpct_strategy *strategy, hpct_step_sums *sums);
    hpct_status (*apply)(hpct_strategy *strategy);

    /* Instead of these four, where strategy->whole_steps: a device makes all of it at once. */
    hpct_status (*step)(hpct_strategy *strategy, int count, int global_count, hpct_step_sums *sums);

    /* After apply, where not NULL: loss and metrics of *sums, unless reduce had them. The one time
     * that a step waits for its device. */
    hpct_status (*finish)(hpct_strategy *strategy, hpct_step_sums *sums);

    /* Collective, before the plan's model is evaluated or saved: all of its parameters and states
     * come into it, on every rank, from wherever the steps left them. States (moving statistics) to
     * which each rank's own batches have gone are their mean over the ranks, as Keras reads them.
     * Steps may follow: the mean of what the ranks move on to is what the mean moves on to. */
    hpct_status (*gather)(hpct_strategy *strategy);

    /* Sums over the first `count` samples in the model's input, forward for inference, after
     * gather. NULL: the plan's model computes them by itself. */
    hpct_status (*evaluate)(hpct_strategy *strategy, int count, hpct_batch_sums *sums);

    /* Bytes that one rank hands to collectives, or sends, in a step, on average; 0 when alone. */
    int64_t (*bytes_per_step)(const hpct_strategy *strategy);

    void (*close)(hpct_strategy *strategy);

    /* Instead of all but `need`, where the ranks do not step together: the whole of hpct_fit_until.
     * Else NULL. `open` then refuses those who step themselves. */
    hpct_status (*fit)(hpct_context *context, hpct_model *model, const hpct_dataset *train,
                       const hpct_fit_options *options, int64_t max_steps, hpct_fit_result *result);
} hpct_strategy_ops;

/* The part that every strategy's own struct begins with. */
struct hpct_strategy {
    const hpct_strategy_ops *ops;
    hpct_model *model;       /* that steps: gets input, labels and position; often the plan's own */
    hpct_timeline *timeline; /* the plan's */
    bool whole_steps;        /* ops->step is there for hpct_strategy_step */
};

extern const hpct_strategy_ops hpct_central_storage;
extern const hpct_strategy_ops hpct_hybrid;
extern const hpct_strategy_ops hpct_mirrored;
extern const hpct_strategy_ops hpct_local_sgd;
extern const hpct_strategy_ops hpct_multi_worker_mirrored;
extern const hpct_strategy_ops hpct_parameter_server;
extern const hpct_strategy_ops hpct_pipeline_stages;

/* All of them, ended by NULL. */
extern const hpct_strategy_ops *const hpct_strategies[];

/* The one that the options name ("auto" and none: with replicas hpct_mirrored, else that which
 * every rank can begin with, until hpct_strategy_choose has chosen); HPCT_ERR_USAGE, listing the
 * names, when there is none such, and for options that it does not have. */
hpct_status hpct_strategy_find(const hpct_strategy_ops **out, const hpct_strategy_options *options);

/* HPCT_ERR_CONFIG for options that the model's device does not have. */
hpct_status hpct_strategy_check_device(const hpct_strategy_options *options,
                                       const hpct_model *model);

/* Steps after which all is as before: from one average of local-sgd to the next, else 1. */
int hpct_strategy_period(const hpct_strategy_ops *ops, const hpct_strategy_options *options);

/* Replicas of each rank: options->replicas, or 1. */
int hpct_strategy_replicas(const hpct_strategy_options *options);

/* options->hybrid_form by its name; HPCT_ERR_USAGE. */
hpct_status hpct_hybrid_form(const hpct_strategy_options *options, hpct_shard_form *form);

/* HPCT_ERR_USAGE for more than one. */
hpct_status hpct_central_storage_check(int ranks);

/* HPCT_ERR_USAGE for more ranks than the strategy bears, and when a global batch does not have a
 * sample for each replica of each rank. */
hpct_status hpct_strategy_check_batch(const hpct_strategy_options *options, int ranks,
                                      int global_batch);

/* forward, backward, reduce and apply. In: this rank's signals and failure in *sums; a rank that
 * failed takes part with no samples, or, with whole_batch, with as many as the others, of any
 * content. Out: the sums over all ranks, of this step or of earlier ones (samples); there is no
 * update where one failed, but on a device, where that is known after it. */
hpct_status hpct_strategy_step(hpct_strategy *strategy, int count, int global_count,
                               hpct_step_sums *sums);

#endif
