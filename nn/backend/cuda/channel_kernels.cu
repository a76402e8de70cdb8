/* Numbers that elements of a sample share: Multiply by one row per sample, Normalization, PReLU;
 * and sums over the rows. */
#include "nn/backend/cuda/kernel.cuh"

/* ---- element by element: samples along y ---- */

template <typename T>
__global__ void __launch_bounds__(THREADS)
    multiply(int n, uint32_t size, uint32_t channels, bool broadcasts, const T *a, const T *b,
             bool add, T *dst)
{
    const uint32_t step = gridDim.x * blockDim.x;
    for (size_t s = blockIdx.y; s < (size_t) n; s += gridDim.y) {
        const T *x = a + s * size, *y = b + s * (broadcasts ? channels : size);
        for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
            float out[1] = {value_of(x[i]) * value_of(y[broadcasts ? i % channels : i])};
            put_values(out, add, dst + s * size + i);
        }
    }
}

/* (x - mean) / max(sqrt(variance), epsilon) of a channel; mean NULL: (x - mean) scale + offset, as
 * given. */
struct channel_line {
    uint32_t channels;
    const float *mean, *variance;
    float given_mean[HPCT_MAX_GIVEN], given_scale[HPCT_MAX_GIVEN], given_offset[HPCT_MAX_GIVEN];
};

__device__ inline void line_at(const channel_line &line, uint32_t channel, float *mean,
                               float *scale, float *offset)
{
    if (line.mean == nullptr) {
        *mean = line.given_mean[channel];
        *scale = line.given_scale[channel];
        *offset = line.given_offset[channel];
        return;
    }
    *mean = line.mean[channel];
    *scale = 1 / fmaxf(sqrtf(line.variance[channel]), HPCT_GRAPH_LINE_EPSILON);
    *offset = 0;
}

/* back: of a gradient, which is only scaled. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    normalize_channels(int n, uint32_t size, const __grid_constant__ channel_line line, bool back,
                       const T *src, bool add, T *dst)
{
    const uint32_t step = gridDim.x * blockDim.x;
    for (size_t s = blockIdx.y; s < (size_t) n; s += gridDim.y) {
        for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
            float mean, scale, offset, x = value_of(src[s * size + i]);
            line_at(line, i % line.channels, &mean, &scale, &offset);
            float out[1] = {back ? x * scale : (x - mean) * scale + offset};
            put_values(out, add, dst + s * size + i);
        }
    }
}

/* What is multiplied by 1, or by alpha where the source is not above 0: the source itself, or the
 * gradient. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    slope_elements(int n, uint32_t size, uint32_t period, const float *alpha, const T *src,
                   const T *factor, bool add, T *dst)
{
    const uint32_t step = gridDim.x * blockDim.x;
    for (size_t s = blockIdx.y; s < (size_t) n; s += gridDim.y) {
        for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
            const size_t at = s * size + i;
            float x = value_of(factor[at]);
            float out[1] = {value_of(src[at]) > 0 ? x : alpha[i % period] * x};
            put_values(out, add, dst + at);
        }
    }
}

/* ---- sums of products over rows: a warp's lanes along the columns ---- */

constexpr int COLUMN_ROWS = THREADS / WARP;

/* out[n][columns] = the sum over the rows of a[n][rows][columns] b; with `below` only where a is
 * not above 0. */
template <typename T, typename O>
__global__ void __launch_bounds__(THREADS)
    sum_products(int n, size_t rows, uint32_t columns, bool below, const T *a, const T *b, bool add,
                 O *out)
{
    __shared__ float shared[COLUMN_ROWS][WARP];
    const uint32_t column = blockIdx.x * WARP + threadIdx.x;
    for (size_t s = blockIdx.y; s < (size_t) n; s += gridDim.y) {
        float sum = 0;
        for (size_t r = threadIdx.y; r < rows && column < columns; r += COLUMN_ROWS) {
            const size_t at = (s * rows + r) * columns + column;
            const float x = value_of(a[at]);
            sum += below && x > 0 ? 0 : x * value_of(b[at]);
        }
        __syncthreads(); /* the sums before have been read */
        shared[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y > 0 || column >= columns)
            continue;
        float all[1] = {0};
        for (int k = 0; k < COLUMN_ROWS; k++)
            all[0] += shared[k][threadIdx.x];
        put_values(all, add, out + s * columns + column);
    }
}

template <typename T, typename O>
static cudaError_t launch_sums(int n, size_t rows, size_t columns, bool below, const void *a,
                               const void *b, bool add, void *out)
{
    const unsigned samples = n < (int) SAMPLES ? (unsigned) n : SAMPLES;
    const dim3 grid((unsigned) ((columns + WARP - 1) / WARP), samples < 1 ? 1 : samples);
    return HPCT_CUDA_LAUNCH((sum_products<T, O>), grid, dim3(WARP, COLUMN_ROWS), n, rows, columns,
                            below, a, b, add, out);
}

/* ---- Multiply ---- */

static hpct_status launch_multiply(const hpct_op *op, int n, const char *what, const float *a,
                                   const float *b, bool add, float *dst)
{
    const size_t size = hpct_op_dst_floats(&op->spec);
    const sample_grid grid = grid_for_samples(n, size);
    return for_op(op, what, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(multiply<decltype(zero)>, grid.blocks, grid.threads, n, size,
                                op->spec.join.size[0], op->spec.join.broadcasts, a, b, add, dst);
    });
}

hpct_status hpct_cuda_multiply_forward(hpct_op *op, const hpct_op_call *call)
{
    return launch_multiply(op, call->n, "forward", call->src[0], call->src[1], false, call->dst);
}

hpct_status hpct_cuda_multiply_backward(hpct_op *op, const hpct_op_call *call)
{
    const float *a = call->src[0], *b = call->src[1], *diff = call->diff_dst;
    if (call->diff_src[0] != NULL)
        HPCT_TRY(launch_multiply(op, call->n, "backward", diff, b, hpct_cuda_adds(call, 0),
                                 call->diff_src[0]));
    if (call->diff_src[1] == NULL)
        return HPCT_OK;
    if (!op->spec.join.broadcasts)
        return launch_multiply(op, call->n, "backward", diff, a, hpct_cuda_adds(call, 1),
                               call->diff_src[1]);
    return for_op(op, "backward", [&](auto zero) {
        using T = decltype(zero);
        return launch_sums<T, T>(call->n, (size_t) op->spec.join.rows,
                                 (size_t) op->spec.join.size[0], false, a, diff,
                                 hpct_cuda_adds(call, 1), call->diff_src[1]);
    });
}

/* ---- Normalization ---- */

static hpct_status normalize(const hpct_op *op, const hpct_op_call *call, bool back,
                             const float *src, float *dst)
{
    const size_t size = hpct_op_dst_floats(&op->spec);
    const sample_grid grid = grid_for_samples(call->n, size);
    channel_line line = {};
    line.channels = (uint32_t) op->spec.line.channels;
    for (uint32_t c = 0; op->spec.line.given && c < line.channels; c++) {
        line.given_mean[c] = op->spec.line.mean[c];
        line.given_scale[c] = op->spec.line.scale[c];
        line.given_offset[c] = op->spec.line.offset[c];
    }
    if (!op->spec.line.given) {
        line.mean = call->param[HPCT_GRAPH_LINE_MEAN];
        line.variance = call->param[HPCT_GRAPH_LINE_VARIANCE];
    }
    return for_op(op, back ? "backward" : "forward", [&](auto zero) {
        return HPCT_CUDA_LAUNCH(normalize_channels<decltype(zero)>, grid.blocks, grid.threads,
                                call->n, size, line, back, src, back && hpct_cuda_adds(call, 0),
                                dst);
    });
}

hpct_status hpct_cuda_normalization_forward(hpct_op *op, const hpct_op_call *call)
{
    return normalize(op, call, false, call->src[0], call->dst);
}

hpct_status hpct_cuda_normalization_backward(hpct_op *op, const hpct_op_call *call)
{
    return call->diff_src[0] == NULL ? HPCT_OK
                                     : normalize(op, call, true, call->diff_dst, call->diff_src[0]);
}

/* ---- PReLU ---- */

static hpct_status multiply_slopes(const hpct_op *op, const hpct_op_call *call, const char *what,
                                   const float *factor, bool add, float *dst)
{
    const size_t size = hpct_op_dst_floats(&op->spec);
    const sample_grid grid = grid_for_samples(call->n, size);
    return for_op(op, what, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(slope_elements<decltype(zero)>, grid.blocks, grid.threads, call->n,
                                size, op->param_floats[0], call->param[0], call->src[0], factor,
                                add, dst);
    });
}

hpct_status hpct_cuda_prelu_forward(hpct_op *op, const hpct_op_call *call)
{
    return multiply_slopes(op, call, "forward", call->src[0], false, call->dst);
}

/* The gradient of alpha is the sum over rows of src diff_dst, where src is not above 0. */
hpct_status hpct_cuda_prelu_backward(hpct_op *op, const hpct_op_call *call)
{
    const size_t period = op->param_floats[0],
                 rows = (size_t) call->n * hpct_op_dst_floats(&op->spec) / period;
    HPCT_TRY(for_op(op, "backward", [&](auto zero) {
        return launch_sums<decltype(zero), float>(1, rows, period, true, call->src[0],
                                                  call->diff_dst, false, call->grad[0]);
    }));
    return call->diff_src[0] == NULL ? HPCT_OK
                                     : multiply_slopes(op, call, "backward", call->diff_dst,
                                                       hpct_cuda_adds(call, 0), call->diff_src[0]);
}
