/* hpctrain/optimizer.h - optimizers and learning rate schedules as defined by Keras 3, with its
 * defaults for fields that are zero. */
#ifndef HPCTRAIN_OPTIMIZER_H
#define HPCTRAIN_OPTIMIZER_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hpct_optimizer_kind {
    HPCT_SGD,
    HPCT_ADAM,  /* Kingma and Ba, Adam: A Method for Stochastic Optimization, 2014 */
    HPCT_ADAMW, /* Adam with weight_decay 0.004 by default */
    HPCT_LARS,  /* You, Gitman and Ginsburg, Large Batch Training of Convolutional Networks, 2017 */
    HPCT_LAMB,  /* You et al., Large Batch Optimization for Deep Learning, 2019, in Keras' form */
    HPCT_RMSPROP, /* Tieleman and Hinton, Neural Networks for Machine Learning, lecture 6.5, 2012 */
    HPCT_OPTIMIZER_KINDS
} hpct_optimizer_kind;

typedef enum hpct_schedule_kind {
    HPCT_CONSTANT,
    HPCT_PIECEWISE_CONSTANT,
    HPCT_EXPONENTIAL_DECAY,
    HPCT_COSINE_DECAY,
    HPCT_POLYNOMIAL_DECAY,
    HPCT_SCHEDULE_KINDS
} hpct_schedule_kind;

#define HPCT_MAX_BOUNDARIES 16

/* Learning rate as a function of the step, in batches from 0. During warm-up it rises linearly from
 * warmup_start to the schedule's first value; the schedule's steps count from the end of warm-up,
 * as in Keras' CosineDecay. */
typedef struct hpct_schedule {
    hpct_schedule_kind kind;
    int64_t first_step; /* number of the first batch, when continuing a run */
    int64_t warmup_steps;
    double warmup_start;
    int64_t decay_steps;      /* EXPONENTIAL, COSINE, POLYNOMIAL: required */
    double decay_rate;        /* EXPONENTIAL: rate * decay_rate^(step / decay_steps) */
    bool staircase;           /* EXPONENTIAL: step / decay_steps is rounded down */
    double alpha;             /* COSINE: final fraction of the rate; default 0 */
    double power;             /* POLYNOMIAL: default 1 */
    double end_learning_rate; /* POLYNOMIAL: default 0.0001 */
    bool to_zero;             /* POLYNOMIAL: ends at 0 instead */
    int num_boundaries; /* PIECEWISE: values[i] up to and including step boundaries[i], then */
    int64_t boundaries[HPCT_MAX_BOUNDARIES]; /* values[i + 1]; learning_rate is ignored */
    double values[HPCT_MAX_BOUNDARIES + 1];
} hpct_schedule;

typedef struct hpct_optimizer {
    hpct_optimizer_kind kind;
    double learning_rate;   /* default: SGD 0.01, LARS none, others 0.001 */
    hpct_schedule schedule; /* default: constant */

    double momentum; /* SGD, RMSprop: default 0; LARS: default 0.9 */
    bool nesterov;   /* SGD */
    double beta_1;   /* Adam, AdamW, LAMB: default 0.9 */
    double beta_2;   /* default 0.999 */
    double epsilon;  /* default 1e-7 */
    double rho;      /* RMSprop: default 0.9 */
    bool centered;   /* RMSprop: normalize by the gradient's variance */

    /* Decoupled: parameters, biases included, are multiplied by 1 - rate * weight_decay before the
     * update. LARS: added to the gradient within the trust ratio. Default: AdamW 0.004, else 0. */
    double weight_decay;

    /* LARS: the rate of parameter w with gradient g is multiplied by
     * trust_coefficient * |w| / (|g| + weight_decay * |w|). Biases and BatchNormalization
     * parameters are exempt, also from decay, unless trust_all. */
    double trust_coefficient; /* default 0.001 */
    bool trust_all;

    /* Clipping of the gradient summed over all ranks; at most one. */
    double clipvalue;       /* each value to [-clipvalue, clipvalue] */
    double clipnorm;        /* each parameter's gradient to this L2 norm */
    double global_clipnorm; /* all gradients together to this L2 norm */

    /* Batches per update, with the mean of their gradients; default 1. The schedule counts batches.
     */
    int gradient_accumulation_steps;
} hpct_optimizer;

/* Finds an optimizer by name: "sgd", "adam", "adamw", "lars", "lamb", "rmsprop". Returns
 * HPCT_ERR_USAGE, listing the names, for any other. */
HPCT_API hpct_status hpct_optimizer_find(hpct_optimizer_kind *kind, const char *name);
HPCT_API const char *hpct_optimizer_name(hpct_optimizer_kind kind);

#ifdef __cplusplus
}
#endif
#endif
