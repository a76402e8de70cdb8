/* nn/cuda/gradient.h - where a kernel leaves the gradient of a parameter, for C and CUDA. */
#ifndef HPCT_NN_CUDA_GRADIENT_H
#define HPCT_NN_CUDA_GRADIENT_H

/* It is written there, or, with a factor, what is there grows by *factor times it: that is plain
 * SGD on the parameter itself. */
typedef struct hpct_gradient {
    float *at;           /* NULL: nobody wants it */
    const float *factor; /* of the device; NULL: none */
} hpct_gradient;

#endif
