/* MaxPooling2D, AveragePooling2D, ZeroPadding2D and cropping. Forward: one thread per pack of
 * channels of an output cell; backward: of an input cell, which gathers from the windows that
 * contain it, in order. */
#include "nn/backend/cuda/kernel.cuh"

/* A pack of channels of one cell of an image h x w. */
struct cell {
    int y, x, channel;
};

template <int V> __device__ inline cell cell_of(unsigned item, int width, int channels)
{
    const unsigned packs = (unsigned) (channels / V), at = item / packs;
    return {(int) (at / (unsigned) width), (int) (at % (unsigned) width), (int) (item % packs) * V};
}

__device__ inline size_t offset_of(int s, int h, int w, int channels, int y, int x, int channel)
{
    return (((size_t) s * (size_t) h + (size_t) y) * (size_t) w + (size_t) x) * (size_t) channels +
           (size_t) channel;
}

__device__ inline size_t in_at(const hpct_graph_window &w, int s, int y, int x, int channel)
{
    return offset_of(s, w.in_h, w.in_w, w.in_c, y, x, channel);
}

__device__ inline size_t out_at(const hpct_graph_window &w, int s, int i, int j, int channel)
{
    return offset_of(s, w.out_h, w.out_w, w.in_c, i, j, channel);
}

/* Calls body(sample, cell) for every pack of an h x w image of all samples. */
template <int V, typename Body>
__device__ inline void each_cell(int n, int h, int w, int channels, Body body)
{
    const unsigned items = (unsigned) h * (unsigned) w * (unsigned) (channels / V),
                   item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item >= items)
        return;
    const cell c = cell_of<V>(item, w, channels);
    for (int s = (int) blockIdx.y; s < n; s += (int) gridDim.y)
        body(s, c);
}

/* Output cells [low, high] along one axis whose windows contain input cell `at`. */
struct reach {
    int low, high;
};

__device__ inline reach reach_of(int at, int kernel, int stride, int pad, int out)
{
    const int first = at + pad - kernel + 1, last = (at + pad) / stride;
    return {first > 0 ? (first + stride - 1) / stride : 0, last < out ? last : out - 1};
}

/* ---- max pooling ---- */

/* Saved index: the first maximum's cell in the window, or this for a zero of the padding. */
template <typename N> __device__ constexpr N PADDING = (N) ~(N) 0;

template <typename T, typename N, int V>
__global__ void __launch_bounds__(THREADS)
    max_pool(const __grid_constant__ hpct_graph_window w, int n, const T *src, T *dst, N *notes)
{
    each_cell<V>(n, w.out_h, w.out_w, w.in_c, [&](int s, const cell &c) {
        float best[V] = {};
        N which[V] = {};
        bool first = true;
        for (int u = 0; u < w.kernel_h; u++) {
            for (int v = 0; v < w.kernel_w; v++) {
                const int y = c.y * w.stride_h + u - w.pad_top,
                          x = c.x * w.stride_w + v - w.pad_left;
                const bool outside = y < 0 || y >= w.in_h || x < 0 || x >= w.in_w;
                if (outside && !w.pad_zeros)
                    continue;
                float value[V] = {};
                if (!outside)
                    load(src + in_at(w, s, y, x, c.channel), value);
                const N here = outside ? PADDING<N> : (N) (u * w.kernel_w + v);
#pragma unroll
                for (int k = 0; k < V; k++) {
                    const bool larger = first || value[k] > best[k];
                    best[k] = larger ? value[k] : best[k];
                    which[k] = larger ? here : which[k];
                }
                first = false;
            }
        }
        const size_t at = out_at(w, s, c.y, c.x, c.channel);
        store(best, dst + at);
        pack<N, V> all;
#pragma unroll
        for (int k = 0; k < V; k++)
            all.at[k] = which[k];
        *reinterpret_cast<pack<N, V> *>(notes + at) = all;
    });
}

template <typename T, typename N, int V>
__global__ void __launch_bounds__(THREADS)
    max_pool_backward(const __grid_constant__ hpct_graph_window w, int n, const N *notes,
                      const T *diff, bool add, T *diff_src)
{
    each_cell<V>(n, w.in_h, w.in_w, w.in_c, [&](int s, const cell &c) {
        const reach rows = reach_of(c.y, w.kernel_h, w.stride_h, w.pad_top, w.out_h),
                    columns = reach_of(c.x, w.kernel_w, w.stride_w, w.pad_left, w.out_w);
        float sum[V] = {};
        for (int i = rows.low; i <= rows.high; i++) {
            for (int j = columns.low; j <= columns.high; j++) {
                const N here = (N) ((c.y + w.pad_top - i * w.stride_h) * w.kernel_w + c.x +
                                    w.pad_left - j * w.stride_w);
                const size_t at = out_at(w, s, i, j, c.channel);
                const pack<N, V> which = *reinterpret_cast<const pack<N, V> *>(notes + at);
                float g[V];
                load(diff + at, g);
#pragma unroll
                for (int k = 0; k < V; k++)
                    sum[k] += which.at[k] == here ? g[k] : 0;
            }
        }
        put_values(sum, add, diff_src + in_at(w, s, c.y, c.x, c.channel));
    });
}

/* ---- average pooling ---- */

/* The part of a window inside the input, along one axis. */
__device__ inline reach part_of(int at, int kernel, int stride, int pad, int in)
{
    const int first = at * stride - pad, last = first + kernel - 1;
    return {first > 0 ? first : 0, last < in ? last : in - 1};
}

__device__ inline float cells_of(const reach &rows, const reach &columns)
{
    return (float) (rows.high - rows.low + 1) * (float) (columns.high - columns.low + 1);
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    average_pool(const __grid_constant__ hpct_graph_window w, int n, const T *src, T *dst)
{
    each_cell<V>(n, w.out_h, w.out_w, w.in_c, [&](int s, const cell &c) {
        const reach rows = part_of(c.y, w.kernel_h, w.stride_h, w.pad_top, w.in_h),
                    columns = part_of(c.x, w.kernel_w, w.stride_w, w.pad_left, w.in_w);
        const float cells = cells_of(rows, columns);
        float sum[V] = {};
        for (int y = rows.low; y <= rows.high; y++) {
            for (int x = columns.low; x <= columns.high; x++) {
                float value[V];
                load(src + in_at(w, s, y, x, c.channel), value);
#pragma unroll
                for (int k = 0; k < V; k++)
                    sum[k] += value[k];
            }
        }
#pragma unroll
        for (int k = 0; k < V; k++)
            sum[k] /= cells;
        store(sum, dst + out_at(w, s, c.y, c.x, c.channel));
    });
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    average_pool_backward(const __grid_constant__ hpct_graph_window w, int n, const T *diff,
                          bool add, T *diff_src)
{
    each_cell<V>(n, w.in_h, w.in_w, w.in_c, [&](int s, const cell &c) {
        const reach rows = reach_of(c.y, w.kernel_h, w.stride_h, w.pad_top, w.out_h),
                    columns = reach_of(c.x, w.kernel_w, w.stride_w, w.pad_left, w.out_w);
        float sum[V] = {};
        for (int i = rows.low; i <= rows.high; i++) {
            const reach down = part_of(i, w.kernel_h, w.stride_h, w.pad_top, w.in_h);
            for (int j = columns.low; j <= columns.high; j++) {
                const reach across = part_of(j, w.kernel_w, w.stride_w, w.pad_left, w.in_w);
                const float share = 1 / cells_of(down, across);
                float g[V];
                load(diff + out_at(w, s, i, j, c.channel), g);
#pragma unroll
                for (int k = 0; k < V; k++)
                    sum[k] += g[k] * share;
            }
        }
        put_values(sum, add, diff_src + in_at(w, s, c.y, c.x, c.channel));
    });
}

/* ---- zero padding and cropping ---- */

template <typename T, int V>
__global__ void __launch_bounds__(THREADS)
    pad(const __grid_constant__ hpct_graph_window w, int n, const T *src, T *dst)
{
    each_cell<V>(n, w.out_h, w.out_w, w.in_c, [&](int s, const cell &c) {
        const int y = c.y - w.pad_top, x = c.x - w.pad_left;
        float value[V] = {};
        if (y >= 0 && y < w.in_h && x >= 0 && x < w.in_w)
            load(src + in_at(w, s, y, x, c.channel), value);
        store(value, dst + out_at(w, s, c.y, c.x, c.channel));
    });
}

template <typename T, int V>
__global__ void __launch_bounds__(THREADS) pad_backward(const __grid_constant__ hpct_graph_window w,
                                                        int n, const T *diff, bool add, T *diff_src)
{
    each_cell<V>(n, w.in_h, w.in_w, w.in_c, [&](int s, const cell &c) {
        const int y = c.y + w.pad_top, x = c.x + w.pad_left;
        float g[V] = {};
        if (y >= 0 && y < w.out_h && x >= 0 && x < w.out_w)
            load(diff + out_at(w, s, y, x, c.channel), g);
        put_values(g, add, diff_src + in_at(w, s, c.y, c.x, c.channel));
    });
}

/* ---- launchers ---- */

/* Calls body(zero of the type, width, grid) for images of h x w cells. */
template <typename Body>
static hpct_status for_cells(const hpct_op *op, int n, const char *what, int h, int w, bool aligned,
                             Body body)
{
    const size_t channels = (size_t) op->spec.window.in_c, cells = (size_t) (h * w);
    auto launch = [&](auto zero, auto width) {
        constexpr size_t V = decltype(width)::value;
        return body(zero, width, grid_for_samples(n, cells * (channels / V)));
    };
    return hpct_cuda_launched(for_packs(op->build.values, aligned, channels, launch), op, what);
}

template <typename Body>
static hpct_status forward_cells(const hpct_op *op, const hpct_op_call *call, Body body)
{
    return for_cells(op, call->n, "forward", op->spec.window.out_h, op->spec.window.out_w,
                     is_aligned(call->src[0], call->dst, call->workspace), body);
}

template <typename Body>
static hpct_status backward_cells(const hpct_op *op, const hpct_op_call *call, Body body)
{
    return for_cells(op, call->n, "backward", op->spec.window.in_h, op->spec.window.in_w,
                     is_aligned(call->workspace, call->diff_dst, call->diff_src[0]), body);
}

/* Bytes per result of the index of the maximum. */
static size_t note_bytes(const hpct_graph_window *w)
{
    int64_t cells = (int64_t) w->kernel_h * w->kernel_w;
    return cells < UINT8_MAX ? 1 : cells < UINT16_MAX ? 2 : 4;
}

/* Calls body with a zero of the index type. */
template <typename Body> static cudaError_t for_note(const hpct_graph_window *w, Body body)
{
    switch (note_bytes(w)) {
    case 1:
        return body(uint8_t());
    case 2:
        return body(uint16_t());
    default:
        return body(uint32_t());
    }
}

hpct_status hpct_cuda_max_pool_forward(hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_window &w = op->spec.window;
    return forward_cells(op, call, [&](auto zero, auto width, sample_grid grid) {
        return for_note(&w, [&](auto note) {
            return HPCT_CUDA_LAUNCH(
                (max_pool<decltype(zero), decltype(note), decltype(width)::value>), grid.blocks,
                grid.threads, w, call->n, call->src[0], call->dst, call->workspace);
        });
    });
}

hpct_status hpct_cuda_max_pool_backward(hpct_op *op, const hpct_op_call *call)
{
    const hpct_graph_window &w = op->spec.window;
    return backward_cells(op, call, [&](auto zero, auto width, sample_grid grid) {
        return for_note(&w, [&](auto note) {
            return HPCT_CUDA_LAUNCH(
                (max_pool_backward<decltype(zero), decltype(note), decltype(width)::value>),
                grid.blocks, grid.threads, w, call->n, call->workspace, call->diff_dst,
                hpct_cuda_adds(call, 0), call->diff_src[0]);
        });
    });
}

void hpct_cuda_max_pool_prepare(hpct_op *op)
{
    op->workspace_bytes = (size_t) hpct_op_largest_batch(&op->build) *
                          hpct_op_dst_floats(&op->spec) * note_bytes(&op->spec.window);
}

hpct_status hpct_cuda_average_pool_forward(hpct_op *op, const hpct_op_call *call)
{
    return forward_cells(op, call, [&](auto zero, auto width, sample_grid grid) {
        return HPCT_CUDA_LAUNCH((average_pool<decltype(zero), decltype(width)::value>), grid.blocks,
                                grid.threads, op->spec.window, call->n, call->src[0], call->dst);
    });
}

hpct_status hpct_cuda_average_pool_backward(hpct_op *op, const hpct_op_call *call)
{
    return backward_cells(op, call, [&](auto zero, auto width, sample_grid grid) {
        return HPCT_CUDA_LAUNCH((average_pool_backward<decltype(zero), decltype(width)::value>),
                                grid.blocks, grid.threads, op->spec.window, call->n, call->diff_dst,
                                hpct_cuda_adds(call, 0), call->diff_src[0]);
    });
}

hpct_status hpct_cuda_pad_forward(hpct_op *op, const hpct_op_call *call)
{
    return forward_cells(op, call, [&](auto zero, auto width, sample_grid grid) {
        return HPCT_CUDA_LAUNCH((pad<decltype(zero), decltype(width)::value>), grid.blocks,
                                grid.threads, op->spec.window, call->n, call->src[0], call->dst);
    });
}

hpct_status hpct_cuda_pad_backward(hpct_op *op, const hpct_op_call *call)
{
    return backward_cells(op, call, [&](auto zero, auto width, sample_grid grid) {
        return HPCT_CUDA_LAUNCH((pad_backward<decltype(zero), decltype(width)::value>), grid.blocks,
                                grid.threads, op->spec.window, call->n, call->diff_dst,
                                hpct_cuda_adds(call, 0), call->diff_src[0]);
    });
}
