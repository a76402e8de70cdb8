/* Losses and metrics, defined as in nn/backend/ref/loss.c: one warp per sample, sums over the batch
 * in a fixed order. */
#include "nn/backend/cuda/kernel.cuh"

/* Keras' epsilon. */
constexpr double CLIP_LOW = 1e-7, CLIP_HIGH = 1.0 - 1e-7;

__device__ inline double clip(double p)
{
    return p < CLIP_LOW ? CLIP_LOW : p > CLIP_HIGH ? CLIP_HIGH : p;
}

__device__ inline bool is_clipped(double p)
{
    return p < CLIP_LOW || p > CLIP_HIGH;
}

/* A sample, as seen by one lane of its warp. */
template <typename T> struct sample {
    const hpct_backend_loss_call &c;
    double scale; /* of the gradient */
    int lane;
    int32_t label;        /* 0 with targets */
    const float *targets; /* [classes], or NULL */
    const T *x;           /* [classes] */
    T *diff;              /* or NULL */

    __device__ double wanted(int i) const
    {
        if (targets != nullptr)
            return (double) targets[i];
        return c.classes == 1 ? (double) label : (double) (label == i);
    }

    __device__ double smoothed(int i) const
    {
        bool binary = c.form == HPCT_BACKEND_LOSS_BINARY ||
                      c.form == HPCT_BACKEND_LOSS_BINARY_LOGITS ||
                      c.form == HPCT_BACKEND_LOSS_BINARY_FOCAL ||
                      c.form == HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS;
        double smoothing = (double) c.label_smoothing;
        return wanted(i) * (1 - smoothing) + smoothing / (binary ? 2 : c.classes);
    }

    __device__ double at(int i) const
    {
        return (double) value_of(x[i]);
    }

    __device__ void leave(int i, double slope) const
    {
        if (diff != nullptr)
            round_to((float) (scale * slope), &diff[i]);
    }

    /* Each returns the sample's loss on every lane. */

    __device__ double logits() const
    {
        float top = -INFINITY;
        double sum = 0, weight = 0, loss = 0;
        for (int i = lane; i < c.classes; i += WARP)
            top = fmaxf(top, value_of(x[i]));
        top = warp_max(top);
        for (int i = lane; i < c.classes; i += WARP) {
            float v = value_of(x[i]) - top;
            double y = smoothed(i);
            sum += (double) expf(v);
            weight += y;
            loss -= y * (double) v;
        }
        sum = warp_sum(sum);
        weight = warp_sum(weight);
        loss = warp_sum(loss);
        const double inverse = 1 / sum;
        for (int i = lane; diff != nullptr && i < c.classes; i += WARP)
            leave(i, weight * ((double) expf(value_of(x[i]) - top) * inverse) - smoothed(i));
        return loss + weight * log(sum);
    }

    __device__ double probabilities() const
    {
        double sum = 0, q_label = clip(at(label));
        for (int i = lane; i < c.classes; i += WARP)
            sum += clip(at(i));
        sum = warp_sum(sum);
        for (int i = lane; diff != nullptr && i < c.classes; i += WARP)
            leave(i, is_clipped(at(i)) ? 0 : 1 / sum - (i == label ? 1 / q_label : 0));
        return log(sum) - log(q_label);
    }

    __device__ double distribution() const
    {
        double sum = 0, loss = 0, inner = 0;
        for (int i = lane; i < c.classes; i += WARP)
            sum += at(i);
        sum = warp_sum(sum);
        for (int i = lane; i < c.classes; i += WARP) {
            double q = at(i) / sum;
            loss -= smoothed(i) * log(clip(q));
            inner += is_clipped(q) ? 0 : smoothed(i);
        }
        loss = warp_sum(loss);
        inner = warp_sum(inner);
        for (int i = lane; diff != nullptr && i < c.classes; i += WARP) {
            double q = at(i) / sum;
            leave(i, (inner - (is_clipped(q) ? 0 : smoothed(i) / q)) / sum);
        }
        return loss;
    }

    __device__ double binary_logits() const
    {
        double loss = 0, share = 1.0 / c.classes;
        for (int i = lane; i < c.classes; i += WARP) {
            double v = at(i), y = smoothed(i);
            loss += share * (fmax(v, 0.0) - v * y + log1p(exp(-fabs(v))));
            leave(i, share * (1 / (1 + exp(-v)) - y));
        }
        return warp_sum(loss);
    }

    __device__ double binary() const
    {
        double loss = 0, share = 1.0 / c.classes;
        for (int i = lane; i < c.classes; i += WARP) {
            double p = clip(at(i)), y = smoothed(i);
            loss -= share * (y * log(p) + (1 - y) * log(1 - p));
            leave(i, is_clipped(at(i)) ? 0 : share * ((1 - y) / (1 - p) - y / p));
        }
        return warp_sum(loss);
    }

    __device__ double squared() const
    {
        double loss = 0, share = 1.0 / c.classes;
        for (int i = lane; i < c.classes; i += WARP) {
            double error = at(i) - wanted(i);
            loss += share * error * error;
            leave(i, share * 2 * error);
        }
        return warp_sum(loss);
    }

    /* ---- focal losses ---- */

    __device__ double focused(double y, double b, double db, double m, double dm,
                              double *slope) const
    {
        double gamma = (double) c.gamma, alpha = (double) c.alpha, power = pow(m, gamma);
        double weight = alpha > 0 ? y * alpha + (1 - y) * (1 - alpha) : 1;
        *slope = weight * (power * db + (m > 0 ? gamma * pow(m, gamma - 1) * dm * b : 0));
        return weight * power * b;
    }

    __device__ double binary_focal_logits() const
    {
        double loss = 0, share = 1.0 / c.classes, slope;
        for (int i = lane; i < c.classes; i += WARP) {
            double v = at(i), y = smoothed(i), p = 1 / (1 + exp(-v)), q = 1 / (1 + exp(v));
            double b = fmax(v, 0.0) - v * y + log1p(exp(-fabs(v)));
            loss += share * focused(y, b, p - y, y * q + (1 - y) * p, (1 - 2 * y) * p * q, &slope);
            leave(i, share * slope);
        }
        return warp_sum(loss);
    }

    __device__ double binary_focal() const
    {
        double loss = 0, share = 1.0 / c.classes, slope;
        for (int i = lane; i < c.classes; i += WARP) {
            double v = at(i), p = clip(v), y = smoothed(i);
            double b = -(y * log(p) + (1 - y) * log(1 - p));
            double db = is_clipped(v) ? 0 : (1 - y) / (1 - p) - y / p;
            loss += share * focused(y, b, db, y * (1 - v) + (1 - y) * v, 1 - 2 * y, &slope);
            leave(i, share * slope);
        }
        return warp_sum(loss);
    }

    __device__ double focal_term(double y, double q, double *slope) const
    {
        double gamma = (double) c.gamma, p = clip(q), power = pow(1 - p, gamma - 1);
        double weight = (double) c.alpha * y * power;
        *slope = is_clipped(q) ? 0 : weight * (gamma * q * log(q) - (1 - q));
        return -weight * (1 - p) * log(p);
    }

    __device__ double focal_logits() const
    {
        float top = -INFINITY;
        double sum = 0, loss = 0, inner = 0, slope;
        for (int i = lane; i < c.classes; i += WARP)
            top = fmaxf(top, value_of(x[i]));
        top = warp_max(top);
        for (int i = lane; i < c.classes; i += WARP)
            sum += exp(at(i) - (double) top);
        sum = warp_sum(sum);
        for (int i = lane; i < c.classes; i += WARP) {
            loss += focal_term(smoothed(i), exp(at(i) - (double) top) / sum, &slope);
            inner += slope;
        }
        loss = warp_sum(loss);
        inner = warp_sum(inner);
        for (int i = lane; diff != nullptr && i < c.classes; i += WARP) {
            double q = exp(at(i) - (double) top) / sum;
            focal_term(smoothed(i), q, &slope);
            leave(i, slope - q * inner);
        }
        return loss;
    }

    __device__ double focal() const
    {
        double sum = 0, loss = 0, inner = 0, slope;
        for (int i = lane; i < c.classes; i += WARP)
            sum += at(i);
        sum = warp_sum(sum);
        for (int i = lane; i < c.classes; i += WARP) {
            loss += focal_term(smoothed(i), at(i) / sum, &slope);
            inner += slope;
        }
        loss = warp_sum(loss);
        inner = warp_sum(inner);
        for (int i = lane; diff != nullptr && i < c.classes; i += WARP) {
            double q = at(i) / sum;
            focal_term(smoothed(i), q, &slope);
            leave(i, (q > 0 ? slope / q - inner : -inner) / sum);
        }
        return loss;
    }

    /* ---- others ---- */

    __device__ double huber() const
    {
        double loss = 0, share = 1.0 / c.classes, delta = (double) c.delta;
        for (int i = lane; i < c.classes; i += WARP) {
            double error = at(i) - wanted(i), size = fabs(error);
            loss += share * (size <= delta ? error * error / 2 : delta * (size - delta / 2));
            leave(i, share * (size <= delta ? error : copysign(delta, error)));
        }
        return warp_sum(loss);
    }

    __device__ static double clip_to_one(double p)
    {
        return p < CLIP_LOW ? CLIP_LOW : p > 1 ? 1 : p;
    }

    __device__ double divergence() const
    {
        double loss = 0;
        for (int i = lane; i < c.classes; i += WARP) {
            double v = at(i), y = clip_to_one(wanted(i));
            loss += y * log(y / clip_to_one(v));
            leave(i, v < CLIP_LOW || v > 1 ? 0 : -y / v);
        }
        return warp_sum(loss);
    }

    /* ---- metrics ---- */

    /* The first maximum of `count` values; NaN never compares larger. */
    template <typename N> __device__ int first_largest(const N *numbers) const
    {
        float best = value_of(numbers[0]);
        int which = 0;
        for (int i = lane; i < c.classes; i += WARP) {
            float v = value_of(numbers[i]);
            if (v > best) {
                best = v;
                which = i;
            }
        }
        for (int step = WARP / 2; step > 0; step /= 2) {
            float other = __shfl_xor_sync(0xffffffffu, best, step);
            int there = __shfl_xor_sync(0xffffffffu, which, step);
            if (other > best || (other == best && there < which)) {
                best = other;
                which = there;
            }
        }
        return which;
    }

    __device__ void judge_outputs(hpct_backend_batch_sums *sums) const
    {
        int correct = 0;
        for (int i = lane; i < c.classes; i += WARP)
            correct += wanted(i) == (value_of(x[i]) > c.threshold ? 1.0 : 0.0);
        sums->correct += (double) warp_sum(correct) / c.classes;
    }

    __device__ void add_errors(hpct_backend_batch_sums *sums) const
    {
        double absolute = 0, square = 0;
        for (int i = lane; i < c.classes; i += WARP) {
            double error = at(i) - wanted(i);
            absolute += fabs(error);
            square += error * error;
        }
        sums->correct += warp_sum(absolute) / c.classes;
        sums->in_top_k += warp_sum(square) / c.classes;
    }

    /* `judge_sample` of nn/backend/ref/loss.c. */
    __device__ void judge_sample(hpct_backend_batch_sums *sums) const
    {
        if (c.judged == HPCT_TARGETS_BINARY) {
            judge_outputs(sums);
            return;
        }
        if (c.judged == HPCT_TARGETS_NUMBERS) {
            add_errors(sums);
            return;
        }
        if (c.classes == 1) {
            double y = wanted(0);
            sums->correct += (value_of(x[0]) > c.threshold) == (y != 0) && (y == 0 || y == 1);
            return;
        }
        int best = first_largest(x), own = targets != nullptr ? first_largest(targets) : label;
        float value = value_of(x[own]);
        int larger = 0;
        sums->correct += best == own;
        if (c.top_k < 1)
            return;
        for (int i = lane; i < c.classes; i += WARP)
            larger += value_of(x[i]) > value;
        larger = warp_sum(larger);
        sums->in_top_k += isfinite(value) && larger < c.top_k;
    }

    /* weight_of of nn/backend/ref/loss.c. */
    __device__ double weight() const
    {
        if (c.class_weights == nullptr)
            return 1;
        int own = c.classes == 1       ? wanted(0) > 0.5
                  : targets != nullptr ? first_largest(targets)
                                       : label;
        return (double) c.class_weights[own];
    }

    __device__ double loss() const
    {
        switch (c.form) {
        case HPCT_BACKEND_LOSS_LOGITS:
            return logits();
        case HPCT_BACKEND_LOSS_PROBABILITIES:
            return probabilities();
        case HPCT_BACKEND_LOSS_DISTRIBUTION:
            return distribution();
        case HPCT_BACKEND_LOSS_BINARY_LOGITS:
            return binary_logits();
        case HPCT_BACKEND_LOSS_BINARY:
            return binary();
        case HPCT_BACKEND_LOSS_SQUARED:
            return squared();
        case HPCT_BACKEND_LOSS_BINARY_FOCAL_LOGITS:
            return binary_focal_logits();
        case HPCT_BACKEND_LOSS_BINARY_FOCAL:
            return binary_focal();
        case HPCT_BACKEND_LOSS_FOCAL_LOGITS:
            return focal_logits();
        case HPCT_BACKEND_LOSS_FOCAL:
            return focal();
        case HPCT_BACKEND_LOSS_HUBER:
            return huber();
        case HPCT_BACKEND_LOSS_DIVERGENCE:
            return divergence();
        default:
            return 0;
        }
    }
};

__device__ inline void add_up(const hpct_backend_batch_sums &part, hpct_backend_batch_sums *sums)
{
    sums->loss += part.loss;
    sums->correct += part.correct;
    sums->in_top_k += part.in_top_k;
}

/* Factor of the gradient, including the dynamic loss scale. */
__device__ inline double scale_of(const hpct_backend_loss_call &c)
{
    return (double) c.scale * (c.scaling != nullptr ? (double) c.scaling->scale : 1);
}

/* Stores the whole batch's sums; called by one thread. */
__device__ inline void leave_sums(const hpct_backend_loss_call &c,
                                  const hpct_backend_batch_sums &sums)
{
    *c.sums = sums;
    if (c.left != nullptr) {
        c.left[*c.turns % 2] = sums;
        ++*c.turns;
    }
}

/* Each block stores its sums to all[its number]; the last block to do so adds them, lane by lane of
 * a warp. */
__device__ inline hpct_backend_batch_sums
sums_of_blocks(const volatile hpct_backend_batch_sums *all, unsigned blocks)
{
    hpct_backend_batch_sums sums = {0, 0, 0};
    for (unsigned i = threadIdx.x % WARP; i < blocks; i += WARP) {
        hpct_backend_batch_sums part = {all[i].loss, all[i].correct, all[i].in_top_k};
        add_up(part, &sums);
    }
    return {warp_sum(sums.loss), warp_sum(sums.correct), warp_sum(sums.in_top_k)};
}

constexpr int WARPS = 4;    /* per block */
constexpr int BLOCKS = 256; /* at most */

HPCT_CUDA_OF_DEVICE hpct_backend_batch_sums block_sums[BLOCKS];
HPCT_CUDA_OF_DEVICE unsigned blocks_done; /* 0 between launches */

template <typename T>
__global__ void __launch_bounds__(WARPS *WARP)
    loss_rows(const __grid_constant__ hpct_backend_loss_call c, const T *src, T *diff_src)
{
    __shared__ hpct_backend_batch_sums of_warp[WARPS];
    const int lane = (int) threadIdx.x, warp = (int) threadIdx.y;
    const double scale = scale_of(c);
    hpct_backend_batch_sums sums = {0, 0, 0};
    for (int s = (int) blockIdx.x * WARPS + warp; s < c.n; s += (int) gridDim.x * WARPS) {
        size_t first = (size_t) s * (size_t) c.classes;
        sample<T> own = {c,
                         scale,
                         lane,
                         c.targets == nullptr ? c.labels[s] : 0,
                         c.targets == nullptr ? nullptr : c.targets + first,
                         src + first,
                         diff_src == nullptr ? nullptr : diff_src + first};
        const double weight = own.weight();
        own.scale *= weight;
        sums.loss += weight * own.loss();
        own.judge_sample(&sums);
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
        __threadfence(); /* stores the sums before counting the block */
        before = atomicAdd(&blocks_done, 1u);
        __threadfence(); /* acquires the other blocks' sums */
    }
    if (__shfl_sync(0xffffffffu, before, 0) + 1 < gridDim.x)
        return;
    __syncwarp(); /* for all lanes: a shuffle does not order memory accesses */
    sums = sums_of_blocks(block_sums, gridDim.x);
    if (lane == 0) {
        blocks_done = 0;
        if (c.penalty != nullptr)
            sums.loss += c.n * ((double) c.penalty[0] + (double) c.penalty[1]);
        leave_sums(c, sums);
    }
}

/* Blocks' sums are in a static buffer: at most one launch at a time per device. */
hpct_status hpct_cuda_loss(const hpct_backend_loss_call *call)
{
    unsigned blocks = (unsigned) ((call->n + WARPS - 1) / WARPS);
    blocks = blocks < 1 ? 1 : blocks < BLOCKS ? blocks : BLOCKS;
    cudaError_t error = for_type(call->values, [&](auto zero) {
        return HPCT_CUDA_LAUNCH(loss_rows<decltype(zero)>, blocks, dim3(WARP, WARPS), *call,
                                call->src, call->diff_src);
    });
    return hpct_cuda_check(error, "loss");
}

__global__ void put_sums(const hpct_backend_batch_sums *sums, float *to)
{
    if (threadIdx.x != 0)
        return;
    to[0] = (float) sums->loss;
    to[1] = (float) sums->correct;
    to[2] = (float) sums->in_top_k;
}

hpct_status hpct_cuda_put_sums(const hpct_backend_batch_sums *sums, float *to)
{
    return hpct_cuda_check(HPCT_CUDA_LAUNCH(put_sums, 1, WARP, sums, to), "sums");
}
