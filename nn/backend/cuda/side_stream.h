/* nn/backend/cuda/side_stream.h - the side stream, in which copies of parameters are made: between
 * hpct_cuda_begin_side and hpct_cuda_end_side, hpct_cuda_gpu.stream is a second stream. In a
 * recorded step both are branches of one graph.
 *
 * Work in the side stream waits for all work called before; work called after hpct_cuda_end_side
 * may run concurrently with it until hpct_cuda_join_side. Neither may write memory that the other
 * uses. hpct_cuda_gpu's handles stay with the compute stream, as their workspaces do. */
#ifndef HPCT_NN_BACKEND_CUDA_SIDE_STREAM_H
#define HPCT_NN_BACKEND_CUDA_SIDE_STREAM_H

#include "nn/backend/cuda/cuda.h"

hpct_status hpct_cuda_open_side(void);

/* Every hpct_cuda_begin_side, even a failed one, must be followed by hpct_cuda_end_side with the
 * status of the calls in between; back returns the status of all. */
hpct_status hpct_cuda_begin_side(void);
hpct_status hpct_cuda_end_side(hpct_status status);
/* Makes later work wait for the side stream. */
hpct_status hpct_cuda_join_side(void);
/* Called after a recording: its side work need not be joined. */
void hpct_cuda_forget_side(void);

#endif
