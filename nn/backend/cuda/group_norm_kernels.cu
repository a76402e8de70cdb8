/* Layer and group normalization. A team of threads, a warp or a block, has one group of a row. */
#include "nn/backend/cuda/kernel.cuh"

constexpr int TEAMS = 4;           /* warps per block, if a team is a warp */
constexpr size_t OF_A_WARP = 2048; /* most elements of a group for one */
constexpr int LINES = 64;          /* least lines of a part of the parameters' sums */
constexpr size_t PARTS = 256;      /* most parts */

/* [rows][cells][channels]; each row and group of channels has its own statistics. */
struct group_norm {
    size_t rows; /* of all samples */
    int cells, channels, groups;
    float epsilon;
    const float *gamma, *beta; /* or NULL */
    float *notes;              /* [rows][groups][2]: mean, 1 / sqrt(variance + epsilon) */
};

/* Sum over the team, equal on every thread. All teams of a block call it. */
__device__ inline float team_sum(float x)
{
    return blockDim.x == WARP ? warp_sum(x) : block_sum(x);
}

/* The group with number `index`. */
struct group {
    size_t at;      /* of its first element */
    int first;      /* its first channel */
    unsigned width; /* its channels */
    unsigned count; /* its elements */
};

__device__ inline group group_of(const group_norm &norm, size_t index)
{
    const unsigned width = (unsigned) (norm.channels / norm.groups);
    const int first = (int) (index % (size_t) norm.groups * width);
    return {index / (size_t) norm.groups * (size_t) norm.cells * (size_t) norm.channels +
                (size_t) first,
            first, width, (unsigned) norm.cells * width};
}

/* Offset of element e, and its channel in the group. */
__device__ inline size_t element_of(const group_norm &norm, const group &g, unsigned e,
                                    unsigned *channel)
{
    *channel = e % g.width;
    return g.at + (size_t) (e / g.width) * (size_t) norm.channels + *channel;
}

__device__ inline float factor_of(const group_norm &norm, const group &g, unsigned channel)
{
    return norm.gamma != nullptr ? norm.gamma[(unsigned) g.first + channel] : 1;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    group_norm_forward(const __grid_constant__ group_norm norm, const T *src, T *dst)
{
    const size_t groups = norm.rows * (size_t) norm.groups;
    for (size_t i = (size_t) blockIdx.x * blockDim.y + threadIdx.y; i < groups;
         i += (size_t) gridDim.x * blockDim.y) {
        const group g = group_of(norm, i);
        unsigned channel;
        float sum = 0, squares = 0;
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x)
            sum += value_of(src[element_of(norm, g, e, &channel)]);
        const float mean = team_sum(sum) / (float) g.count;
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x) {
            const float off = value_of(src[element_of(norm, g, e, &channel)]) - mean;
            squares += off * off;
        }
        const float inverse = 1 / sqrtf(team_sum(squares) / (float) g.count + norm.epsilon);
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x) {
            const size_t at = element_of(norm, g, e, &channel);
            const float shift = norm.beta != nullptr ? norm.beta[(unsigned) g.first + channel] : 0;
            round_to((value_of(src[at]) - mean) * inverse * factor_of(norm, g, channel) + shift,
                     &dst[at]);
        }
        if (threadIdx.x == 0) {
            norm.notes[2 * i] = mean;
            norm.notes[2 * i + 1] = inverse;
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    group_norm_backward(const __grid_constant__ group_norm norm, const T *src, const T *diff,
                        bool add, T *diff_src)
{
    const size_t groups = norm.rows * (size_t) norm.groups;
    for (size_t i = (size_t) blockIdx.x * blockDim.y + threadIdx.y; i < groups;
         i += (size_t) gridDim.x * blockDim.y) {
        const group g = group_of(norm, i);
        const float mean = norm.notes[2 * i], inverse = norm.notes[2 * i + 1];
        unsigned channel;
        float sum = 0, sum_hat = 0;
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x) {
            const size_t at = element_of(norm, g, e, &channel);
            const float d = value_of(diff[at]) * factor_of(norm, g, channel);
            sum += d;
            sum_hat += d * (value_of(src[at]) - mean) * inverse;
        }
        sum = team_sum(sum) / (float) g.count;
        sum_hat = team_sum(sum_hat) / (float) g.count;
        for (unsigned e = threadIdx.x; e < g.count; e += blockDim.x) {
            const size_t at = element_of(norm, g, e, &channel);
            const float d = value_of(diff[at]) * factor_of(norm, g, channel),
                        hat = (value_of(src[at]) - mean) * inverse;
            float change[1] = {inverse * (d - sum - hat * sum_hat)};
            put_values(change, add, diff_src + at);
        }
    }
}

/* A thread has one channel of the lines of one part; a line is a cell of a row. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    sum_params(const __grid_constant__ group_norm norm, const T *src, const T *diff, float *partial)
{
    const int c = (int) (blockIdx.x * blockDim.x + threadIdx.x);
    const size_t lines = norm.rows * (size_t) norm.cells, parts = gridDim.y,
                 begin = lines * blockIdx.y / parts, end = lines * (blockIdx.y + 1) / parts;
    if (c >= norm.channels)
        return;
    const size_t group = (size_t) (c / (norm.channels / norm.groups));
    float sum = 0, sum_hat = 0;
    for (size_t line = begin; line < end; line++) {
        const size_t at = line * (size_t) norm.channels + (size_t) c,
                     note = 2 * (line / (size_t) norm.cells * (size_t) norm.groups + group);
        const float d = value_of(diff[at]);
        sum += d;
        sum_hat += d * (value_of(src[at]) - norm.notes[note]) * norm.notes[note + 1];
    }
    float *to = partial + (size_t) blockIdx.y * 2 * (size_t) norm.channels;
    to[c] = sum_hat;
    to[norm.channels + c] = sum;
}

__global__ void __launch_bounds__(THREADS)
    add_parts(int channels, int parts, const float *partial, float *diff_gamma, float *diff_beta)
{
    const int c = (int) (blockIdx.x * blockDim.x + threadIdx.x);
    float sum = 0, sum_hat = 0;
    if (c >= channels)
        return;
    for (int p = 0; p < parts; p++) {
        const float *from = partial + (size_t) p * 2 * (size_t) channels;
        sum_hat += from[c];
        sum += from[channels + c];
    }
    if (diff_gamma != nullptr)
        diff_gamma[c] = sum_hat;
    if (diff_beta != nullptr)
        diff_beta[c] = sum;
}

static group_norm norm_of(const hpct_op *op, const hpct_op_call *call)
{
    return {(size_t) call->n * (size_t) op->spec.group.rows,
            op->spec.group.cells,
            op->spec.group.channels,
            op->spec.group.groups,
            op->spec.group.epsilon,
            hpct_cuda_norm_param(op, call->param, HPCT_GRAPH_NORM_GAMMA),
            hpct_cuda_norm_param(op, call->param, HPCT_GRAPH_NORM_BETA),
            (float *) call->workspace};
}

/* A kernel over all groups. */
template <typename Kernel, typename... A>
static cudaError_t launch_teams(Kernel kernel, const group_norm &norm, const A &...arguments)
{
    const size_t count = (size_t) norm.cells * (size_t) (norm.channels / norm.groups);
    const dim3 team = count <= OF_A_WARP ? dim3(WARP, TEAMS) : dim3(THREADS, 1);
    return HPCT_CUDA_LAUNCH(kernel, blocks_for(norm.rows * (size_t) norm.groups, (int) team.y),
                            team, norm, arguments...);
}

hpct_status hpct_cuda_group_norm_forward(hpct_op *op, const hpct_op_call *call)
{
    return for_op(op, "forward", [&](auto zero) {
        return launch_teams(group_norm_forward<decltype(zero)>, norm_of(op, call), call->src[0],
                            call->dst);
    });
}

static size_t parts_for(size_t rows, int cells)
{
    const size_t parts = rows * (size_t) cells / LINES;
    return parts < 1 ? 1 : parts < PARTS ? parts : PARTS;
}

/* Gradients of gamma and beta. */
static hpct_status launch_params(const hpct_op *op, const hpct_op_call *call)
{
    const group_norm norm = norm_of(op, call);
    const unsigned parts = (unsigned) parts_for(norm.rows, norm.cells),
                   across = ((unsigned) norm.channels + THREADS - 1) / THREADS;
    return for_op(op, "backward", [&](auto zero) {
        cudaError_t error =
            HPCT_CUDA_LAUNCH(sum_params<decltype(zero)>, dim3(across, parts), THREADS, norm,
                             call->src[0], call->diff_dst, call->scratch);
        return error != cudaSuccess
                   ? error
                   : HPCT_CUDA_LAUNCH(add_parts, across, THREADS, norm.channels, parts,
                                      call->scratch,
                                      hpct_cuda_norm_param(op, call->grad, HPCT_GRAPH_NORM_GAMMA),
                                      hpct_cuda_norm_param(op, call->grad, HPCT_GRAPH_NORM_BETA));
    });
}

hpct_status hpct_cuda_group_norm_backward(hpct_op *op, const hpct_op_call *call)
{
    HPCT_TRY(op->num_params > 0 ? launch_params(op, call) : HPCT_OK);
    if (call->diff_src[0] == NULL)
        return HPCT_OK;
    return for_op(op, "backward", [&](auto zero) {
        return launch_teams(group_norm_backward<decltype(zero)>, norm_of(op, call), call->src[0],
                            call->diff_dst, hpct_cuda_adds(call, 0), call->diff_src[0]);
    });
}

void hpct_cuda_group_norm_prepare(hpct_op *op)
{
    const size_t rows = (size_t) hpct_op_largest_batch(&op->build) * (size_t) op->spec.group.rows;
    op->workspace_bytes = 2 * rows * (size_t) op->spec.group.groups * sizeof(float);
    op->scratch_bytes = parts_for(rows, op->spec.group.cells) * 2 *
                        (size_t) op->spec.group.channels * sizeof(float);
}
