/* nn/graph/loss_scaling.h - dynamic loss scaling of fp16 (Micikevicius et al., Mixed Precision
 * Training, ICLR 2018), as Keras' LossScaleOptimizer: the gradient of the loss is multiplied by a
 * power of two to avoid underflow, and the fp32 parameter gradients are divided by it. If one is
 * not finite, the update is skipped and the scale halved; after HPCT_GRAPH_SCALING_STEPS updates
 * without that it is doubled.
 *
 * The state is in the backend's memory and changes without the host. Plain C, also compiled into
 * kernels. Private to nn/. */
#ifndef HPCT_NN_GRAPH_LOSS_SCALING_H
#define HPCT_NN_GRAPH_LOSS_SCALING_H

#include "base/host_and_device.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define HPCT_GRAPH_SCALING_FIRST 32768.0f /* Keras' */
#define HPCT_GRAPH_SCALING_STEPS 2000
#define HPCT_GRAPH_SCALING_LEAST 0x1p-24f
#define HPCT_GRAPH_SCALING_MOST 0x1p30f

typedef struct hpct_graph_loss_scaling {
    float scale;    /* a power of two */
    int32_t good;   /* updates since its last change */
    float infinite; /* number of non-finite gradients of this update, on a device */
    int32_t left_out;
    double undo_1, undo_2; /* beta_1 and beta_2 to the power of minus the number of skipped steps */
} hpct_graph_loss_scaling;

#define HPCT_GRAPH_LOSS_SCALING_BEGIN                                                              \
    {                                                                                              \
        .scale = HPCT_GRAPH_SCALING_FIRST, .undo_1 = 1, .undo_2 = 1                                \
    }

/* After an update, with the optimizer's beta_1 and beta_2. */
HPCT_HOST_AND_DEVICE void hpct_graph_loss_scaling_move(hpct_graph_loss_scaling *s, bool finite,
                                                       double beta_1, double beta_2)
{
    s->good = finite ? s->good + 1 : 0;
    if (!finite) {
        s->left_out++;
        s->undo_1 = beta_1 > 0 ? s->undo_1 / beta_1 : 1;
        s->undo_2 = beta_2 > 0 ? s->undo_2 / beta_2 : 1;
        s->scale = s->scale > HPCT_GRAPH_SCALING_LEAST ? s->scale / 2 : s->scale;
    } else if (s->good == HPCT_GRAPH_SCALING_STEPS) {
        s->good = 0;
        s->scale = s->scale < HPCT_GRAPH_SCALING_MOST ? s->scale * 2 : s->scale;
    }
}

/* 1 - beta^t, with t corrected for skipped updates. */
HPCT_HOST_AND_DEVICE float hpct_graph_loss_scaling_bias(float bias, double undo)
{
    return bias < 1 ? (float) (1 - (1 - (double) bias) * undo) : bias;
}

#endif
