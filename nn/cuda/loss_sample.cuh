/* nn/cuda/loss_sample.cuh - losses and metrics of one sample, by the lanes of a warp, as
 * nn/ref/loss.c defines them, and their sums. Private to nn/cuda's .cu files. */
#ifndef HPCT_NN_CUDA_LOSS_SAMPLE_CUH
#define HPCT_NN_CUDA_LOSS_SAMPLE_CUH

#include "nn/cuda/kernel.cuh"

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

/* One sample, seen by one lane of the warp that works on it. */
template <typename T> struct sample {
    const hpct_loss_args &c;
    double scale; /* of the gradient */
    int lane;
    int32_t label;        /* 0 when there are targets */
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
        bool binary = c.kind == HPCT_LOSS_KIND_BINARY || c.kind == HPCT_LOSS_KIND_BINARY_LOGITS;
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

    /* ---- metrics ---- */

    /* The first of the largest of `count` numbers, of which those that are none are not larger. */
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

    /* is_correct and is_in_top of nn/ref/loss.c. */
    __device__ void judge(hpct_loss_sums *sums) const
    {
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

    __device__ double loss() const
    {
        switch (c.kind) {
        case HPCT_LOSS_KIND_LOGITS:
            return logits();
        case HPCT_LOSS_KIND_PROBABILITIES:
            return probabilities();
        case HPCT_LOSS_KIND_DISTRIBUTION:
            return distribution();
        case HPCT_LOSS_KIND_BINARY_LOGITS:
            return binary_logits();
        case HPCT_LOSS_KIND_BINARY:
            return binary();
        case HPCT_LOSS_KIND_SQUARED:
            return squared();
        }
        return 0;
    }
};

__device__ inline void add_up(const hpct_loss_sums &part, hpct_loss_sums *sums)
{
    sums->loss += part.loss;
    sums->correct += part.correct;
    sums->in_top_k += part.in_top_k;
}

/* Of the gradient, with the scale that is found while training goes on. */
__device__ inline double scale_of(const hpct_loss_args &c)
{
    return (double) c.scale * (c.scaling != nullptr ? (double) c.scaling->scale : 1);
}

/* The whole batch's, by one thread. */
__device__ inline void leave_sums(const hpct_loss_args &c, const hpct_loss_sums &sums)
{
    *c.sums = sums;
    if (c.left != nullptr) {
        c.left[*c.turns % 2] = sums;
        ++*c.turns;
    }
}

/* Each block leaves its sums in all[its number]; what the last one to do so has of them, lane by
 * lane of a warp. */
__device__ inline hpct_loss_sums sums_of_blocks(const volatile hpct_loss_sums *all, unsigned blocks)
{
    hpct_loss_sums sums = {0, 0, 0};
    for (unsigned i = threadIdx.x % WARP; i < blocks; i += WARP) {
        hpct_loss_sums part = {all[i].loss, all[i].correct, all[i].in_top_k};
        add_up(part, &sums);
    }
    return {warp_sum(sums.loss), warp_sum(sums.correct), warp_sum(sums.in_top_k)};
}

#endif
