/* An Add with BATCH_NORMs fused downstream and ReLU, and its backward, which computes the sums that
 * their backward begins with: both read everything once. The ReLU mask is stored as one bit per
 * value, a sixteenth of reading the result again. */
#include "nn/backend/cuda/norm_walk.cuh"

/* With three sources twice as many would use all registers and leave room for one block only. */
template <bool BOTH> constexpr int rows_at_once = BOTH ? BATCH / 2 : BATCH;

/* ---- forward ---- */

/* BOTH: the second input has a line, too. */
template <typename T, int V, bool RELU, bool BOTH>
__global__ void __launch_bounds__(THREADS)
    apply_and_add(size_t rows, int channels, hpct_backend_norm_line first,
                  hpct_backend_norm_line second, const T *a, const T *b, T *dst, uint8_t *open)
{
    const walk w = walk_of<V>(rows, channels);
    if (!w.inside)
        return;
    own_line<V> p, q = {};
    load_line(first, w.channel, p);
    if (BOTH)
        load_line(second, w.channel, q);
    each_batch<rows_at_once<BOTH>>(w, [&](size_t row, auto batch) {
        constexpr int B = decltype(batch)::value;
        float x[B][V], y[B][V];
#pragma unroll
        for (int i = 0; i < B; i++) {
            size_t at = (row + i * w.step) * (size_t) channels + w.channel;
            load(a + at, x[i]);
            load(b + at, y[i]);
        }
#pragma unroll
        for (int i = 0; i < B; i++) {
            unsigned above = 0;
#pragma unroll
            for (int k = 0; k < V; k++) {
                float more = BOTH ? normal(y[i][k], q.mean[k], q.scale[k], q.shift[k]) : y[i][k];
                float sum = normal(x[i][k], p.mean[k], p.scale[k], p.shift[k]) + more;
                x[i][k] = RELU && !(sum > 0) ? 0 : sum;
                above |= (sum > 0 ? 1U : 0U) << k;
            }
            const size_t at = (row + i * w.step) * (size_t) channels + w.channel;
            store(x[i], dst + at);
            if (open != nullptr)
                open[at / V] = (uint8_t) above;
        }
    });
}

/* ---- backward ---- */

/* BOTH: the second input has a line, too. passes: an input's gradient is diff itself. */
template <typename T, int V, bool BOTH>
__global__ void __launch_bounds__(THREADS)
    add_back_and_sum(size_t rows, int channels, const float *mean_of_a, const float *mean_of_b,
                     const uint8_t *open, const T *a, const T *b,
                     const __grid_constant__ hpct_cuda_join j, bool passes, T *diff, float *partial)
{
    constexpr int SUMS = BOTH ? 3 : 2; /* of g, g (a - mean), g (b - mean) */
    __shared__ float shared[SUMS][V][THREADS];
    const walk w = walk_of<V>(rows, channels);
    float mean[2][V] = {}, sum[SUMS][V] = {};
    if (w.inside) {
        load_or(mean_of_a + w.channel, 0, mean[0]);
        if (BOTH)
            load_or(mean_of_b + w.channel, 0, mean[1]);
    }
    each_batch<rows_at_once<BOTH>>(w, [&](size_t row, auto batch) {
        constexpr int B = decltype(batch)::value;
        float x[B][V], y[B][V], g[B][V];
        unsigned above[B];
#pragma unroll
        for (int i = 0; i < B; i++) {
            const size_t at = (row + i * w.step) * (size_t) channels + w.channel;
            load(a + at, x[i]);
            if (BOTH)
                load(b + at, y[i]);
            load(diff + at, g[i]);
            above[i] = open[at / V];
        }
#pragma unroll
        for (int i = 0; i < B; i++) {
            const size_t at = (row + i * w.step) * (size_t) channels + w.channel;
#pragma unroll
            for (int k = 0; k < V; k++) {
                g[i][k] = (above[i] >> k & 1) != 0 ? g[i][k] : 0;
                sum[0][k] += g[i][k];
                sum[1][k] = fmaf(g[i][k], x[i][k] - mean[0][k], sum[1][k]);
                if (BOTH)
                    sum[SUMS - 1][k] = fmaf(g[i][k], y[i][k] - mean[1][k], sum[SUMS - 1][k]);
            }
            if (passes)
                store(g[i], diff + at);
#pragma unroll
            for (int k = 0; k < 2; k++) {
                T *out = (T *) j.diff_src[k];
                if (out != nullptr && out != diff)
                    put_values(g[i], j.add[k], out + at);
            }
        }
    });
    const int own = add_rows(sum, shared);
    if (threadIdx.y != 0 || !w.inside)
        return;
    for (int s = 1; s < SUMS; s++) { /* for each: [parts][2][channels] */
        float *to = partial + ((size_t) (s - 1) * gridDim.y + blockIdx.y) * 2 * (size_t) channels +
                    w.channel;
        for (int k = 0; k < V; k++) {
            to[k] = shared[0][k][own];
            to[channels + k] = shared[s][k][own];
        }
    }
}

/* ---- the operation ---- */

/* An Add of two inputs, at least one with a BATCH_NORM fused downstream: `first`; `second` is the
 * other. With a ReLU its workspace has the norm_sums computed by backward (nn/graph/op.h), then the
 * ReLU mask. */
struct normed {
    hpct_cuda_norm norm;
    hpct_backend_norm_line line[2];
    int first, second;
    uint8_t *open; /* ReLU mask; NULL: not stored */
};

static size_t sums_bytes(const hpct_op *op)
{
    return 2 * hpct_backend_norm_line_step((size_t) op->spec.join.size[0]) * sizeof(float);
}

static normed normed_of(const hpct_op *op, const hpct_op_call *call)
{
    const int channels = op->spec.join.size[0];
    normed n = {};
    n.norm.type = op->build.values;
    n.norm.rows = (size_t) call->n * (size_t) op->spec.join.rows;
    n.norm.channels = channels;
    n.norm.relu = op->spec.relu;
    n.norm.partial = (float *) call->scratch;
    n.first = call->norms[0] != NULL ? 0 : 1;
    n.second = 1 - n.first;
    n.line[0] = hpct_backend_norm_line_in(call->norms[n.first], (size_t) channels);
    if (call->norms[n.second] != NULL)
        n.line[1] = hpct_backend_norm_line_in(call->norms[n.second], (size_t) channels);
    if (op->leaves_norm_sums)
        n.open = (uint8_t *) call->workspace + 2 * sums_bytes(op);
    return n;
}

/* Whether there are packs: each has a byte of the ReLU mask. */
static bool is_noted(const hpct_cuda_norm &n, bool aligned)
{
    return aligned && width_of_channels(n.type, n.channels) > 1;
}

/* dst = a + b, where each operand with a line is normalized by it. */
static cudaError_t launch_normed(const normed &n, const void *a, const void *b, void *dst)
{
    const bool both = n.line[1].mean != nullptr, aligned = is_aligned(a, b, dst);
    if (n.open != nullptr && !is_noted(n.norm, aligned))
        return cudaErrorMisalignedAddress;
    return for_norm(&n.norm, aligned, [&](auto zero, auto width) {
        using T = decltype(zero);
        constexpr int V = decltype(width)::value;
        auto kernel =
            n.norm.relu
                ? (both ? apply_and_add<T, V, true, true> : apply_and_add<T, V, true, false>)
                : (both ? apply_and_add<T, V, false, true> : apply_and_add<T, V, false, false>);
        return launch_layout(kernel, &n.norm, layout_for(&n.norm, V), n.line[0], n.line[1], a, b,
                             dst, n.open);
    });
}

hpct_status hpct_cuda_add_normed(hpct_op *op, const hpct_op_call *call)
{
    const normed n = normed_of(op, call);
    return hpct_cuda_launched(launch_normed(n, call->src[n.first], call->src[n.second], call->dst),
                              op, "forward");
}

/* Also sums[k][2][hpct_backend_norm_line_step]: of the gradient g, and of g (x - mean) inverse with
 * the line's x; for the first line, and for the second unless its mean is NULL. */
static cudaError_t launch_normed_backward(const normed &n, const void *a, const void *b,
                                          const hpct_cuda_join *join, void *diff_dst,
                                          float *const sums[2])
{
    const bool both = n.line[1].mean != nullptr,
               passes = join->diff_src[0] == diff_dst || join->diff_src[1] == diff_dst;
    const size_t each = (size_t) parts_of(&n.norm) * 2 * (size_t) n.norm.channels,
                 step = hpct_backend_norm_line_step((size_t) n.norm.channels);
    if (!is_noted(n.norm, is_aligned(a, b, diff_dst, join->diff_src[0], join->diff_src[1])))
        return cudaErrorMisalignedAddress;
    cudaError_t error = for_type(n.norm.type, [&](auto zero) {
        using T = decltype(zero);
        constexpr int V = WIDE<T>;
        auto kernel = both ? add_back_and_sum<T, V, true> : add_back_and_sum<T, V, false>;
        return launch_layout(kernel, &n.norm, layout_for(&n.norm, V), n.line[0].mean,
                             n.line[1].mean, n.open, a, b, *join, passes, diff_dst, n.norm.partial);
    });
    for (int k = 0; k < 1 + both && error == cudaSuccess; k++)
        error = norm_finish_sums(&n.norm, parts_of(&n.norm), n.norm.partial + (size_t) k * each,
                                 n.line[k].inverse, nullptr, sums[k] + step, sums[k]);
    return error;
}

hpct_status hpct_cuda_add_normed_backward(hpct_op *op, const hpct_op_call *call,
                                          const hpct_cuda_join *join)
{
    const normed n = normed_of(op, call);
    char *workspace = (char *) call->workspace;
    float *const sums[] = {(float *) (workspace + op->norm_sums[n.first]),
                           (float *) (workspace + op->norm_sums[n.second])};
    return hpct_cuda_launched(launch_normed_backward(n, call->src[n.first], call->src[n.second],
                                                     join, call->diff_dst, sums),
                              op, "backward");
}

/* Backward computes sums for its fused normalizations, if channels are in packs. */
void hpct_cuda_add_prepare(hpct_op *op)
{
    const int channels = op->spec.join.size[0],
              width = width_of_channels(op->build.values, channels);
    const size_t rows = (size_t) hpct_op_largest_batch(&op->build) * (size_t) op->spec.join.rows,
                 parts = (size_t) hpct_cuda_norm_parts(op->build.values, channels);
    if (!op->build.normed || !op->build.training || !op->spec.relu || op->spec.join.count != 2 ||
        width == 1 || rows == 0)
        return;
    op->leaves_norm_sums = true;
    op->norm_sums[1] = sums_bytes(op);
    op->workspace_bytes = 2 * sums_bytes(op) + rows * (size_t) channels / (size_t) width;
    op->scratch_bytes = 2 * parts * 2 * (size_t) channels * sizeof(float);
    op->backward_reads_src = true;
    op->backward_reads_dst = false;
}
