/* nn/backend.h - the table that a backend fills: memory, operations, loss, optimizer.
 * Adding a backend means one more such table; layers, models and trainer stay as they are. */
#ifndef HPCT_NN_BACKEND_H
#define HPCT_NN_BACKEND_H

#include "nn/op.h"
#include "nn/profile.h"
#include "nn/step.h"

typedef enum hpct_loss_form {
    HPCT_LOSS_LOGITS,        /* -log softmax(x)[label], through the log-sum-exp */
    HPCT_LOSS_PROBABILITIES, /* -log (q[label] / sum q), q = x clipped to [1e-7, 1 - 1e-7] */
} hpct_loss_form;

typedef struct hpct_loss_call {
    hpct_loss_form form;
    int n, classes;
    const float *src;      /* [n][classes] */
    const int32_t *labels; /* [n] */
    float scale;           /* of diff_src */
    float *diff_src;       /* [n][classes], or NULL */
    hpct_batch_sums *sums;
} hpct_loss_call;

typedef struct hpct_sgd_call {
    float learning_rate, momentum;
    float *param, *velocity; /* velocity is NULL without momentum */
    const float *grad;
    size_t count;
} hpct_sgd_call;

typedef struct hpct_backend {
    const char *name;
    /* Zeroed memory, 64-byte aligned; NULL when there is none left. release allows NULL. */
    void *(*allocate)(size_t bytes);
    void (*release)(void *memory);
    /* The caller owns *out and ends it with op->class->destroy. */
    hpct_status (*make_op)(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);
    hpct_status (*loss)(const hpct_loss_call *call);
    hpct_status (*sgd)(const hpct_sgd_call *call);
    hpct_status (*add)(size_t count, const float *src, float *dst); /* dst += src */
    hpct_status (*scale)(size_t count, float factor, float *dst);   /* dst *= factor */
    hpct_status (*measure)(hpct_rates *rates); /* NULL: it has no rates to compare with */
} hpct_backend;

extern const hpct_backend hpct_backend_ref;
extern const hpct_backend hpct_backend_cpu;

/* All backends built in, ended by NULL. */
extern const hpct_backend *const hpct_backends[];

/* By name; HPCT_ERR_USAGE, listing the names, when there is none such. */
hpct_status hpct_backend_find(const hpct_backend **out, const char *name);

/* allocate/release of every backend that computes in host memory. */
void *hpct_host_allocate(size_t bytes);
void hpct_host_release(void *memory);

#endif
