/* nn/cuda/window.h - a convolution's window as cuDNN wants it, paddings on both sides, and as
 * own kernels do. Knows nothing of CUDA. */
#ifndef HPCT_NN_CUDA_WINDOW_H
#define HPCT_NN_CUDA_WINDOW_H

#include "nn/cuda/direct_shape.h"
#include "nn/op.h"

/* The padding at the far end of an axis of `in` cells, on which `out` windows that reach over
 * `reach` cells stand `stride` apart behind `before` cells of padding. More than what the last
 * window reaches is of no effect until another window fits: within that, the padding is `before`
 * where it can be, which all engines know. Not negative; -1 where the numbers do not go together.
 */
int hpct_window_pad_after(int in, int out, int reach, int stride, int before);

/* The sizes of a convolution of n pictures. */
hpct_direct hpct_window_direct(const hpct_window *w, int n);

/* The same convolution of pictures that have their padding in them. */
hpct_window hpct_window_with_padding(const hpct_window *w);

#endif
