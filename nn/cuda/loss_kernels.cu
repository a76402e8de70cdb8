/* Losses and metrics as nn/ref/loss.c defines them: one warp for each sample, sums over the batch
 * in a fixed order. */
#include "nn/cuda/loss_sample.cuh"

constexpr int WARPS = 4;    /* of a block */
constexpr int BLOCKS = 256; /* at most */

HPCT_OF_DEVICE hpct_loss_sums block_sums[BLOCKS];
HPCT_OF_DEVICE unsigned blocks_done; /* 0 between launches */

template <typename T>
__global__ void __launch_bounds__(WARPS *WARP)
    loss_rows(const __grid_constant__ hpct_loss_args c, const T *src, T *diff_src)
{
    __shared__ hpct_loss_sums of_warp[WARPS];
    const int lane = (int) threadIdx.x, warp = (int) threadIdx.y;
    const double scale = scale_of(c);
    hpct_loss_sums sums = {0, 0, 0};
    for (int s = (int) blockIdx.x * WARPS + warp; s < c.n; s += (int) gridDim.x * WARPS) {
        size_t first = (size_t) s * (size_t) c.classes;
        sample<T> own = {c,
                         scale,
                         lane,
                         c.targets == nullptr ? c.labels[s] : 0,
                         c.targets == nullptr ? nullptr : c.targets + first,
                         src + first,
                         diff_src == nullptr ? nullptr : diff_src + first};
        sums.loss += own.loss();
        own.judge(&sums);
    }
    if (lane == 0)
        of_warp[warp] = sums;
    __syncthreads();
    if (warp != 0)
        return;
    unsigned before = 0;
    if (lane == 0) {
        for (int i = 1; i < WARPS; i++)
            add_up(of_warp[i], &sums);
        block_sums[blockIdx.x] = sums;
        __threadfence(); /* before it is said to be there */
        before = atomicAdd(&blocks_done, 1u);
        __threadfence(); /* what others have said is there */
    }
    if (__shfl_sync(0xffffffffu, before, 0) + 1 < gridDim.x)
        return;
    __syncwarp(); /* for all lanes: a shuffle orders nothing */
    sums = sums_of_blocks(block_sums, gridDim.x);
    if (lane == 0) {
        blocks_done = 0;
        leave_sums(c, sums);
    }
}

cudaError_t hpct_launch_loss(hpct_queue queue, hpct_number type, hpct_loss_args args,
                             const void *src, void *diff_src)
{
    unsigned blocks = (unsigned) ((args.n + WARPS - 1) / WARPS);
    blocks = blocks < 1 ? 1 : blocks < BLOCKS ? blocks : BLOCKS;
    return for_type(type, [&](auto zero) {
        using T = decltype(zero);
        auto kernel = loss_rows<T>;
        HPCT_LAUNCH(kernel, blocks, dim3(WARP, WARPS), queue, args, (const T *) src,
                    (T *) diff_src);
    });
}

__global__ void put_sums(const hpct_loss_sums *sums, float *to)
{
    if (threadIdx.x != 0)
        return;
    to[0] = (float) sums->loss;
    to[1] = (float) sums->correct;
    to[2] = (float) sums->in_top_k;
}

cudaError_t hpct_launch_put_sums(hpct_queue queue, const hpct_loss_sums *sums, float *to)
{
    HPCT_LAUNCH(put_sums, 1, WARP, queue, sums, to);
    return cudaGetLastError();
}
