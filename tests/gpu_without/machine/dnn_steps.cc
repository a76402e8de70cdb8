/* What the operations of a cuDNN graph compute, by their definitions in its manual. */
#include "tests/gpu_without/machine/dnn.h"

namespace emulated::dnn
{

namespace
{

number number_of(cudnnDataType_t type)
{
    switch (type) {
    case CUDNN_DATA_FLOAT:
        return FP32;
    case CUDNN_DATA_BFLOAT16:
        return BF16;
    case CUDNN_DATA_HALF:
        return FP16;
    default:
        broken("cuDNN: type %d is not emulated", (int) type);
    }
}

} // namespace

tensor tensor_of(const thing &t)
{
    tensor made = {t.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
                   number_of(t.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
                   !t.all<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL).empty() &&
                       t.one<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0,
                   {},
                   {}};
    std::vector<int64_t> size = t.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
                         stride = t.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    if (size.size() != 4 || stride.size() != 4)
        broken("cuDNN: a tensor without four axes is not emulated");
    for (int i = 0; i < 4; i++) {
        made.size[i] = size[(size_t) i];
        made.stride[i] = stride[(size_t) i];
    }
    return made;
}

tensor tensor_of(const thing &operation, int name)
{
    return tensor_of(*operation.part(name));
}

namespace
{

struct window {
    int64_t stride[2], dilation[2], before[2], after[2];
};

window window_of(const thing &conv)
{
    window w = {};
    struct {
        int name;
        int64_t *to;
    } const wanted[] = {{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, w.stride},
                        {CUDNN_ATTR_CONVOLUTION_DILATIONS, w.dilation},
                        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, w.before},
                        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, w.after}};
    for (const auto &one : wanted) {
        std::vector<int64_t> list = conv.all<int64_t>(one.name);
        for (size_t i = 0; i < 2; i++)
            one.to[i] = list.at(i);
    }
    return w;
}

struct convolution {
    tensor x, w, y;
    window how;

    bool fits() const
    {
        for (int i = 0; i < 2; i++) {
            int64_t reach = (w.size[i + 2] - 1) * how.dilation[i] + 1;
            if (y.size[i + 2] !=
                (x.size[i + 2] + how.before[i] + how.after[i] - reach) / how.stride[i] + 1)
                return false;
        }
        return y.size[0] == x.size[0] && y.size[1] == w.size[0] && x.size[1] % w.size[1] == 0 &&
               w.size[0] % (x.size[1] / w.size[1]) == 0;
    }

    /* Each cell of y, x and w that meet: where the channels of a group begin. */
    template <typename V> void visit(V each) const
    {
        int64_t ins = w.size[1], groups = x.size[1] / ins, outs = w.size[0] / groups;
        for (int64_t n = 0; n < y.size[0]; n++)
            for (int64_t p = 0; p < y.size[2]; p++)
                for (int64_t q = 0; q < y.size[3]; q++)
                    for (int64_t r = 0; r < w.size[2]; r++)
                        for (int64_t s = 0; s < w.size[3]; s++) {
                            int64_t h = p * how.stride[0] - how.before[0] + r * how.dilation[0],
                                    v = q * how.stride[1] - how.before[1] + s * how.dilation[1];
                            if (h < 0 || h >= x.size[2] || v < 0 || v >= x.size[3])
                                continue;
                            for (int64_t g = 0; g < groups; g++)
                                each((size_t) (((n * y.size[2] + p) * y.size[3] + q) * y.size[1] +
                                               g * outs),
                                     (size_t) (((n * x.size[2] + h) * x.size[3] + v) * x.size[1] +
                                               g * ins),
                                     (size_t) (((g * outs * w.size[2] + r) * w.size[3] + s) * ins));
                        }
    }

    size_t ins() const
    {
        return (size_t) w.size[1];
    }

    size_t outs() const
    {
        return (size_t) (w.size[0] / (x.size[1] / w.size[1]));
    }

    /* Kernels with the channels of y beside each other, and back. */
    values turn(const values &from, bool there) const
    {
        values to(from.size());
        for (size_t k = 0; k < (size_t) w.size[0]; k++) {
            for (size_t i = 0; i < next(); i++) {
                size_t plain = k * next() + i,
                       turned = (k / outs() * next() + i) * outs() + k % outs();
                to[there ? turned : plain] = from[there ? plain : turned];
            }
        }
        return to;
    }

    /* There: where the first input channel of the cell at `kernel` begins; the next is outs() on.
     */
    size_t turned(size_t kernel) const
    {
        size_t group = outs() * next();
        return (kernel / group * next() + kernel % group) * outs();
    }

    /* From one number of a kernel to that of the next of y's channels. */
    size_t next() const
    {
        return (size_t) (w.size[1] * w.size[2] * w.size[3]);
    }
};

/* Names of the parts of one of the three convolutions. */
struct way {
    int conv, x, w, y, alpha, beta;
};

bool way_of(cudnnBackendDescriptorType_t type, way *out)
{
    switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        *out = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
        return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        *out = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
        return true;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        *out = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
        return true;
    default:
        return false;
    }
}

convolution convolution_of(const thing &operation, const way &names)
{
    return {tensor_of(operation, names.x), tensor_of(operation, names.w),
            tensor_of(operation, names.y), window_of(*operation.part(names.conv))};
}

HPCT_FOR_EACH_CPU void run_forward(const convolution &c, state &s)
{
    values x = s.load(c.x), w = c.turn(s.load(c.w), true), y(c.y.count());
    const size_t ins = c.ins(), outs = c.outs();
    c.visit([&](size_t to, size_t from, size_t kernel) {
        const float *turned = &w[c.turned(kernel)];
        for (size_t i = 0; i < ins; i++)
            add(outs, x[from + i], turned + i * outs, &y[to]);
    });
    s.store(c.y, std::move(y));
}

HPCT_FOR_EACH_CPU void run_data(const convolution &c, bool adds, state &s)
{
    values x = adds ? s.load(c.x) : values(c.x.count()), w = s.load(c.w), y = s.load(c.y);
    const size_t ins = c.ins(), outs = c.outs(), next = c.next();
    c.visit([&](size_t to, size_t from, size_t kernel) {
        for (size_t k = 0; k < outs; k++)
            add(ins, y[to + k], &w[kernel + k * next], &x[from]);
    });
    s.store(c.x, std::move(x));
}

HPCT_FOR_EACH_CPU void run_weights(const convolution &c, state &s)
{
    values x = s.load(c.x), w(c.w.count()), y = s.load(c.y);
    const size_t ins = c.ins(), outs = c.outs();
    c.visit([&](size_t to, size_t from, size_t kernel) {
        float *turned = &w[c.turned(kernel)];
        for (size_t i = 0; i < ins; i++)
            add(outs, x[from + i], &y[to], turned + i * outs);
    });
    s.store(c.w, c.turn(w, false));
}

step convolve(const thing &operation, const way &names)
{
    convolution c = convolution_of(operation, names);
    bool adds = operation.one<float>(names.beta) == 1 &&
                operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    if (operation.one<float>(names.alpha) != 1 || (operation.one<float>(names.beta) != 0 && !adds))
        broken("cuDNN: other factors are not emulated");
    switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return [c](state &s) { run_forward(c, s); };
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return [c, adds](state &s) { run_data(c, adds, s); };
    default:
        return [c](state &s) { run_weights(c, s); };
    }
}

/* An operand as large as the result, or a vector of channels. */
bool spreads(const tensor &operand, const tensor &whole)
{
    bool same = true, vector = operand.size[0] == 1 && operand.size[1] == whole.size[1] &&
                               operand.size[2] == 1 && operand.size[3] == 1;
    for (int i = 0; i < 4; i++)
        same = same && operand.size[i] == whole.size[i];
    return same || vector;
}

template <typename F> step combine(const tensor &x, const tensor &b, const tensor &y, F how)
{
    if (!spreads(x, y) || !spreads(b, y))
        broken("cuDNN: operands of a pointwise operation differ in size");
    return [=](state &s) {
        values first = s.load(x), second = s.load(b), result(y.count());
        const size_t channels = (size_t) y.size[1], whole = result.size();
        for (size_t at = 0; at < whole; at += channels) {
            const float *p = &first[first.size() == whole ? at : 0],
                        *q = &second[second.size() == whole ? at : 0];
            for (size_t i = 0; i < channels; i++)
                result[at + i] = how(p[i], q[i]);
        }
        s.store(y, std::move(result));
    };
}

step point(const thing &operation)
{
    cudnnPointwiseMode_t mode = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                                    ->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    tensor x = tensor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
           y = tensor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    if (mode == CUDNN_POINTWISE_RELU_FWD)
        return combine(x, x, y, [](float a, float) { return a > 0 ? a : 0; });
    tensor b = tensor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    if (mode != CUDNN_POINTWISE_ADD)
        broken("cuDNN: pointwise mode %d is not emulated", (int) mode);
    return combine(x, b, y, [](float p, float q) { return p + q; });
}

} // namespace

step step_of(const thing &operation)
{
    way names;
    if (way_of(operation.type, &names))
        return convolve(operation, names);
    switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return point(operation);
    default:
        broken("cuDNN: operation %d is not emulated", (int) operation.type);
    }
}

bool fits(const thing &operation)
{
    way names;
    return !way_of(operation.type, &names) || convolution_of(operation, names).fits();
}

size_t bytes_added_to(const thing &operation)
{
    way names;
    if (!way_of(operation.type, &names) || operation.one<float>(names.beta) == 0)
        return 0;
    tensor sum = tensor_of(operation, names.x);
    return sum.count() * bytes_of(sum.type);
}

} // namespace emulated::dnn
