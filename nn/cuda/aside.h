/* nn/cuda/aside.h - work beside the stream, which has no need to wait for it: a second stream,
 * which hpct_gpu.stream is, and hpct_gpu.dnn computes in, between hpct_cuda_aside and
 * hpct_cuda_back. In a recorded step both are branches of one graph.
 *
 * What is called aside comes behind what was called before, and what is called after
 * hpct_cuda_back may go on meanwhile, until hpct_cuda_join. Both read what they like and write what
 * the other does not touch; each has a scratch of its own. hpct_gpu.blas stays with the stream that
 * it was made for, as its workspace does. */
#ifndef HPCT_NN_CUDA_ASIDE_H
#define HPCT_NN_CUDA_ASIDE_H

#include "nn/cuda/cuda.h"

hpct_status hpct_cuda_open_aside(void);

/* Behind hpct_cuda_aside, even one that failed, comes hpct_cuda_back, with what came of all between
 * them: the status of both. */
hpct_status hpct_cuda_aside(void);
hpct_status hpct_cuda_back(hpct_status status);
/* What is called next waits for all that was called aside, or all but what was between the last two
 * of these. */
hpct_status hpct_cuda_join(bool but_last);
/* A recording has ended: nothing of it is waited for. */
void hpct_cuda_forget_aside(void);

/* Lets the operation linger (nn/op.h) where its backward was measured to take less that way, now or
 * in an earlier run: for its first batch size, which is training's. `what` says all that this may
 * depend on. */
hpct_status hpct_cuda_may_linger(hpct_op *op, const char *what);

#endif
