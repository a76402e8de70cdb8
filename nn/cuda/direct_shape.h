/* nn/cuda/direct_shape.h - the sizes of a direct convolution (nn/cuda/direct.h), for C and CUDA. */
#ifndef HPCT_NN_CUDA_DIRECT_SHAPE_H
#define HPCT_NN_CUDA_DIRECT_SHAPE_H

/* As hpct_window (nn/op.h); cells: of the result, at least 1, from first_cell on by rows. */
typedef struct hpct_direct {
    int n;
    int in_h, in_w, in_c;
    int out_h, out_w, out_c;
    int kernel_h, kernel_w;
    int stride_h, stride_w, dilation_h, dilation_w;
    int pad_top, pad_left;
    int groups;
    int first_cell, cells;
} hpct_direct;

#endif
