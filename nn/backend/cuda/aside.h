/* nn/backend/cuda/aside.h - the side stream: between hpct_cuda_aside and hpct_cuda_back,
 * hpct_gpu.stream and hpct_gpu.dnn are those of a second stream. In a recorded step both are
 * branches of one graph.
 *
 * Work in the side stream waits for all work called before; work called after hpct_cuda_back may
 * run concurrently with it until hpct_cuda_join. Neither may write memory that the other uses; each
 * has its own scratch. hpct_gpu.blas stays with the compute stream, as its workspace does. */
#ifndef HPCT_NN_BACKEND_CUDA_ASIDE_H
#define HPCT_NN_BACKEND_CUDA_ASIDE_H

#include "nn/backend/cuda/cuda.h"

hpct_status hpct_cuda_open_aside(void);

/* Every hpct_cuda_aside, even a failed one, must be followed by hpct_cuda_back with the status of
 * the calls in between; back returns the status of all. */
hpct_status hpct_cuda_aside(void);
hpct_status hpct_cuda_back(hpct_status status);
/* Makes later work wait for the side stream; with but_last not for the work between the last pair
 * of these calls. */
hpct_status hpct_cuda_join(bool but_last);
/* Called after a recording: its side work need not be joined. */
void hpct_cuda_forget_aside(void);

/* Enables async params of the operation (nn/graph/op.h) if its backward was measured to be faster
 * with them, now or in an earlier run, at its first batch size, training's. `what` identifies
 * everything that the time depends on. */
hpct_status hpct_cuda_may_linger(hpct_op *op, const char *what);

#endif
