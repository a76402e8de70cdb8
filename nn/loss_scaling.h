/* nn/loss_scaling.h - dynamic loss scaling of fp16 (Micikevicius and others, Mixed Precision
 * Training, ICLR 2018), as Keras' LossScaleOptimizer has it: the loss' gradient is multiplied by a
 * power of two, so that small gradients do not vanish in fp16, and the parameters' gradients, which
 * are fp32, are divided by it again. Where one of these is not finite nothing is updated and the
 * scale is halved; after HPCT_SCALING_STEPS updates without that it is doubled.
 *
 * The state lies in the memory of the backend, which reads and moves it without telling the host.
 * Plain C that kernels are made of, too. Private to nn/. */
#ifndef HPCT_NN_LOSS_SCALING_H
#define HPCT_NN_LOSS_SCALING_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define HPCT_HOST_AND_DEVICE static inline __host__ __device__
#else
#define HPCT_HOST_AND_DEVICE static inline
#endif

#define HPCT_SCALING_FIRST 32768.0f /* Keras' */
#define HPCT_SCALING_STEPS 2000
#define HPCT_SCALING_LEAST 0x1p-24f
#define HPCT_SCALING_MOST 0x1p30f

typedef struct hpct_loss_scaling {
    float scale;    /* a power of two */
    int32_t good;   /* updates since it moved */
    float infinite; /* how many have gradients of this update that are not finite; of the device */
    int32_t left_out;
    double undo_1, undo_2; /* beta_1 and beta_2 to the power of minus left_out */
} hpct_loss_scaling;

#define HPCT_LOSS_SCALING_BEGIN                                                                    \
    {                                                                                              \
        .scale = HPCT_SCALING_FIRST, .undo_1 = 1, .undo_2 = 1                                      \
    }

/* After an update, with beta_1 and beta_2 of the optimizer. */
HPCT_HOST_AND_DEVICE void hpct_loss_scaling_move(hpct_loss_scaling *s, bool finite, double beta_1,
                                                 double beta_2)
{
    s->good = finite ? s->good + 1 : 0;
    if (!finite) {
        s->left_out++;
        s->undo_1 = beta_1 > 0 ? s->undo_1 / beta_1 : 1;
        s->undo_2 = beta_2 > 0 ? s->undo_2 / beta_2 : 1;
        s->scale = s->scale > HPCT_SCALING_LEAST ? s->scale / 2 : s->scale;
    } else if (s->good == HPCT_SCALING_STEPS) {
        s->good = 0;
        s->scale = s->scale < HPCT_SCALING_MOST ? s->scale * 2 : s->scale;
    }
}

/* 1 - beta^t over t steps becomes that over the steps that were updates. */
HPCT_HOST_AND_DEVICE float hpct_loss_scaling_bias(float bias, double undo)
{
    return bias < 1 ? (float) (1 - (1 - (double) bias) * undo) : bias;
}

#endif
