/* nn/backend/cuda/direct_shape.h - sizes of a direct convolution (nn/backend/cuda/direct.cu), for C
 * and CUDA. */
#ifndef HPCT_NN_BACKEND_CUDA_DIRECT_SHAPE_H
#define HPCT_NN_BACKEND_CUDA_DIRECT_SHAPE_H

/* As hpct_graph_window (nn/graph/op.h); cells: number of output cells, at least 1, from first_cell
 * in row order. */
typedef struct hpct_cuda_direct {
    int n;
    int in_h, in_w, in_c;
    int out_h, out_w, out_c;
    int kernel_h, kernel_w;
    int stride_h, stride_w, dilation_h, dilation_w;
    int pad_top, pad_left;
    int groups;
    int first_cell, cells;
} hpct_cuda_direct;

#endif
