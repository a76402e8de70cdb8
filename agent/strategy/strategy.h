/* agent/strategy/strategy.h - strategies: how the ranks share a training step. One file per
 * strategy; agent/strategies/ has their table. A strategy builds the model, and so decides what
 * each rank computes and when gradients are exchanged. Uses communicators and arenas; independent
 * of layers, data sets and output. */
#ifndef HPCT_AGENT_STRATEGY_STRATEGY_H
#define HPCT_AGENT_STRATEGY_STRATEGY_H

#include "agent/rank/context.h"
#include "agent/rank/timeline.h"
#include "nn/run/step.h"
#include "nn/split/shard.h"

#include <hpctrain/model.h>
#include <hpctrain/strategy.h>
#include <stdbool.h>
#include <stdint.h>

#define HPCT_STRATEGY_SIZES 16 /* limit of a plan's batch sizes, training plus evaluation */

typedef struct hpct_strategy hpct_strategy;

typedef struct hpct_strategy_plan {
    hpct_context *context;
    hpct_model *model;      /* compiled, with weights */
    const int *batch_sizes; /* all local batch sizes, except 0 */
    int num_batch_sizes;
    const int *evaluation_sizes; /* batch sizes of evaluation with `model` */
    int num_evaluation_sizes;
    int input_samples; /* capacity of the model's input, if larger than those sizes */
    const hpct_strategy_options *options;
    bool keep_gradients; /* gradients are read: no update inside backward */
    bool dense_targets;  /* as in hpct_run_build_options */
    bool one_updates;    /* only rank 0 has optimizer slots; the others receive its weights */
    bool late_sums;      /* loss and metrics may arrive with a later step
                            (hpct_strategy_step_sums.samples) */
    hpct_rank_timeline *timeline; /* records the parts of each step; may be NULL */
} hpct_strategy_plan;

/* In (as `mine`): this rank's contribution; out: known to every rank after a step. */
typedef struct hpct_strategy_step_sums {
    double loss, correct, in_top_k; /* sums over the global batch */
    int interrupted, terminated;    /* ranks with SIGINT, SIGTERM */
    int failed;                     /* ranks without input, because of an error */
    /* Samples that loss, correct and in_top_k cover: this step's, none (they arrive with a later
     * step) or those of several. Set by hpct_strategy_step and the strategy. */
    int64_t samples;
    bool last; /* in, equal on all ranks: the epoch ends, so all sums must arrive now */
} hpct_strategy_step_sums;

/* The largest local batch of a step; at least 1. */
int hpct_strategy_plan_full_count(const hpct_strategy_plan *plan);

/* All sizes, of steps and of evaluation, to sizes[HPCT_STRATEGY_SIZES]; returns their number. */
int hpct_strategy_plan_sizes(const hpct_strategy_plan *plan, int *sizes);

/* The plan's model built for evaluation only, if steps use another model: adds to *bytes what it
 * needs; and builds it, collective. */
hpct_status hpct_strategy_evaluation_need(const hpct_strategy_plan *plan, size_t *bytes);
hpct_status hpct_strategy_evaluation_build(const hpct_strategy_plan *plan);

typedef struct hpct_strategy_ops {
    const char *name; /* as given by the user */

    /* Every rank reads the global batch, not its slice: counts of its steps are global. */
    bool whole_batch;

    /* A step consists of several, over micro-batches and a part of the model: its operations cannot
     * be timed or emulated as those of one step. */
    bool in_pieces;

    /* What the ranks hold of the training state (agent/strategy/state.h); NULL if
     * `apart`. */
    const struct hpct_strategy_state_ops *state;

    /* Supports options->replicas above 1: the replicas share a rank's samples. */
    bool replicas;

    /* Bytes by which this process grows in open and steps; allocates nothing. */
    hpct_status (*need)(const hpct_strategy_plan *plan, size_t *bytes);

    /* Builds the model, checks that summed data has the same layout on all ranks, broadcasts rank
     * 0's weights, and allocates everything for steps. Collective. */
    hpct_status (*open)(hpct_strategy **out, const hpct_strategy_plan *plan);

    /* Before forward, unless NULL: this rank's signals and failure, for a strategy that piggybacks
     * them earlier than in reduce. */
    void (*announce)(hpct_strategy *strategy, const hpct_strategy_step_sums *mine);

    /* A step has four parts, in this order, which allocate nothing (hpct_strategy_step runs all).
     * forward: the `count` samples in hpct_model_input (0 is allowed). backward: their loss and
     * gradients, as part of `global_count`; sets loss and metrics of *sums to this rank's. reduce,
     * collective: sums all ranks' gradients and *sums, equal everywhere afterwards. apply,
     * collective: the update. */
    hpct_status (*forward)(hpct_strategy *strategy, int count, bool training);
    hpct_status (*backward)(hpct_strategy *strategy, int count, int global_count,
                            hpct_strategy_step_sums *sums);
    hpct_status (*reduce)(hpct_strategy *strategy, hpct_strategy_step_sums *sums);
    hpct_status (*apply)(hpct_strategy *strategy);

    /* Replaces these four if strategy->whole_steps: a device runs all at once. */
    hpct_status (*step)(hpct_strategy *strategy, int count, int global_count,
                        hpct_strategy_step_sums *sums);

    /* After apply, unless NULL: loss and metrics of *sums, if reduce has not set them. The only
     * time a step waits for its device. */
    hpct_status (*finish)(hpct_strategy *strategy, hpct_strategy_step_sums *sums);

    /* Collective, before the plan's model is evaluated or saved: collects all parameters and states
     * in it, on every rank. States (moving statistics) of local batches become their mean over the
     * ranks, as Keras reads them. Steps may follow: the mean commutes with their updates. */
    hpct_status (*gather)(hpct_strategy *strategy);

    /* Sums over the first `count` samples in the model's input, inference, after gather. NULL: the
     * plan's model computes them itself. */
    hpct_status (*evaluate)(hpct_strategy *strategy, int count, hpct_backend_batch_sums *sums);
    /* Outputs of the k-th part of its samples, in their order: [*count][outputs of the model];
     * *count < 0 after the last part. NULL where evaluate is. */
    hpct_status (*outputs)(hpct_strategy *strategy, int k, const float **outputs, int *count);

    /* Mean bytes that one rank passes to collectives or sends per step; 0 for one rank. */
    int64_t (*bytes_per_step)(const hpct_strategy *strategy);

    void (*close)(hpct_strategy *strategy);

    /* After a step with plan->keep_gradients or hpct_model_show_gradients the model's gradient
     * arena, if that is in host memory, has those of the global batch, on rank 0 at least. */
    bool keeps_gradients;

    /* The ranks do not step together: fit has a loop of its own (agent/ps/fit.h), and `open` is an
     * error. */
    bool apart;
} hpct_strategy_ops;

/* Seconds of the last step's parts. A device that runs the whole step at once: all is forward. */
typedef struct hpct_strategy_step_times {
    double forward, backward, wait /* for other ranks' sums */, update;
} hpct_strategy_step_times;

/* First member of every strategy's struct. */
struct hpct_strategy {
    const hpct_strategy_ops *ops;
    hpct_model *model; /* the model that steps: gets input, labels and position; often the plan's */
    hpct_rank_timeline *timeline;   /* from the plan */
    bool whole_steps;               /* hpct_strategy_step uses ops->step */
    hpct_strategy_step_times times; /* set by hpct_strategy_step */
};

extern const hpct_strategy_ops hpct_strategy_hybrid;
extern const hpct_strategy_ops hpct_strategy_local_sgd;
extern const hpct_strategy_ops hpct_strategy_multi_worker_mirrored;
extern const hpct_strategy_ops hpct_strategy_parameter_server;
extern const hpct_strategy_ops hpct_strategy_pipeline_stages;

/* Allocates a strategy's struct of so many bytes, zeros, and sets ops, the plan's model and
 * timeline. Collective. */
hpct_status hpct_strategy_new(hpct_strategy **out, size_t bytes, const hpct_strategy_ops *ops,
                              const hpct_strategy_plan *plan);

/* The end of ops->open: after an error closes *out, which becomes NULL. Returns the status. */
hpct_status hpct_strategy_opened(hpct_strategy **out, hpct_status status);

/* HPCT_ERR_CONFIG for options the model's device does not support. */
hpct_status hpct_strategy_check_device(const hpct_strategy_options *options,
                                       const hpct_model *model);

/* Steps per period: of local-sgd those between averages, else 1. */
int hpct_strategy_period(const hpct_strategy_ops *ops, const hpct_strategy_options *options);

/* Replicas of each rank: options->replicas, or 1. */
int hpct_strategy_replicas(const hpct_strategy_options *options);

/* Parses options->hybrid_form; HPCT_ERR_USAGE. */
hpct_status hpct_strategy_hybrid_form(const hpct_strategy_options *options,
                                      hpct_split_shard_form *form);

/* Runs forward, backward, reduce and apply. In: this rank's signals and failure in *sums; a failed
 * rank takes part without samples, or, with whole_batch, with as many as the others, of any
 * content. Out: sums over all ranks, of this step or earlier ones (samples). If a rank failed there
 * is no update, except on a device, where the failure is known only afterwards. */
hpct_status hpct_strategy_step(hpct_strategy *strategy, int count, int global_count,
                               hpct_strategy_step_sums *sums);

#endif
