/* nn/backend/cuda/window.h - convolution windows in the form of cuDNN, with padding on both sides,
 * and of own kernels. Independent of CUDA. */
#ifndef HPCT_NN_BACKEND_CUDA_WINDOW_H
#define HPCT_NN_BACKEND_CUDA_WINDOW_H

#include "nn/backend/cuda/direct_shape.h"
#include "nn/graph/op.h"

/* The padding at the end of an axis of `in` cells with `out` windows of `reach` cells at distance
 * `stride`, after `before` cells of padding. Padding beyond the last window has no effect until
 * another window fits: within this freedom the result is `before` if possible, which all engines
 * support. Not negative; -1 if the numbers are inconsistent. */
int hpct_cuda_window_pad_after(int in, int out, int reach, int stride, int before);

/* The sizes of a convolution of n images. */
hpct_cuda_direct hpct_cuda_window_direct(const hpct_graph_window *w, int n);

/* The same convolution on images with padding included. */
hpct_graph_window hpct_cuda_window_with_padding(const hpct_graph_window *w);

#endif
