/* agent/strategy/state.h - what the ranks of a strategy hold of the training state between steps,
 * value by value, for checkpoints. Independent of files. */
#ifndef HPCT_AGENT_STRATEGY_STATE_H
#define HPCT_AGENT_STRATEGY_STATE_H

#include "agent/strategy/strategy.h"
#include "nn/run/state.h"

#define HPCT_STRATEGY_STATE_RESIDUE (-2) /* slot: what compression has not sent of the gradient */
#define HPCT_STRATEGY_STATE_ALL (-1)     /* copy: every one of this rank */
#define HPCT_STRATEGY_STATE_MOST_NUMBERS 4

/* How the ranks hold a value. */
typedef struct hpct_strategy_state_share {
    bool meets;   /* `get` is collective */
    bool differs; /* ranks or replicas have values of their own, */
    bool adds;    /* whose sum is the model's value; else it is their mean */
    int copies;   /* of these in this process */
    /* Rows of the model's value that this rank saves. Of a value that does not differ, `get` must
     * have them; all other rows are undefined. */
    int64_t begin, rows;
} hpct_strategy_state_share;

struct hpct_strategy_state_ops {
    /* Whether the state can be taken after this step, equal on all ranks. NULL: always. */
    bool (*ready)(const hpct_strategy *strategy);

    /* Adds values to the plan's model's, besides parameters and slots. NULL: none. */
    hpct_status (*extend)(const hpct_strategy *strategy, hpct_run_state_list *list);

    void (*share)(const hpct_strategy *strategy, const hpct_run_state_value *value,
                  hpct_strategy_state_share *out);

    /* The k-th model that steps in this process, with the plan's parameters; NULL after the last.
     * Not set: strategy->model is the only one. */
    hpct_model *(*model)(const hpct_strategy *strategy, int k);
    /* Makes the calling thread use that model's device. NULL: all have the same. */
    hpct_status (*enter)(const hpct_strategy *strategy, int k);

    /* Copies a value from copy `copy`, or to it. Not set: from or to the model of that number. */
    hpct_status (*get)(hpct_strategy *strategy, const hpct_run_state_value *value, int copy,
                       float *floats);
    hpct_status (*put)(hpct_strategy *strategy, const hpct_run_state_value *value, int copy,
                       const float *floats);

    /* Reads or, with `put`, sets counters of the strategy. NULL: none. */
    int num_numbers; /* at most HPCT_STRATEGY_STATE_MOST_NUMBERS */
    void (*numbers)(hpct_strategy *strategy, double *numbers, bool put);

    /* Floats that are equal on all ranks, in this process' layout; *count may be 0. NULL: none. */
    float *(*layout_floats)(const hpct_strategy *strategy, size_t *count);
};

/* The k-th model that steps; NULL after the last. */
hpct_model *hpct_strategy_model(const hpct_strategy *strategy, int k);

/* Values by these rules. */
hpct_status hpct_strategy_get(hpct_strategy *strategy, const hpct_run_state_value *value, int copy,
                              float *floats);
hpct_status hpct_strategy_put(hpct_strategy *strategy, const hpct_run_state_value *value, int copy,
                              const float *floats);

/* Optimizer steps and loss scale of all models of this process. */
hpct_status hpct_strategy_get_numbers(hpct_strategy *strategy, double *numbers);
hpct_status hpct_strategy_put_numbers(hpct_strategy *strategy, const double *numbers);

/* Of a value that is the same wherever it is: one rank, with `first`, saves it. */
hpct_strategy_state_share hpct_strategy_state_equal(const hpct_run_state_value *value, bool first);
/* Of a value of which this rank has `copies` of its own; the rank with `first` saves what they are
 * together. */
hpct_strategy_state_share hpct_strategy_state_own(const hpct_run_state_value *value, int copies,
                                                  bool first);

#endif
