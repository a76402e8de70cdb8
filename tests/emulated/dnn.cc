/* cuDNN's backend API: descriptors, engines to choose from, and plans that are executed by the
 * operations' definitions in its manual.
 *
 * Of each graph there are engines that suit, and some that do not and must not be executed: not
 * deterministic, with too large a workspace. HPC_TRAIN_TEST_ENGINES=SEED: a quarter of the graphs,
 * by chance, have none. */
#include "tests/emulated/numbers.h"
#include "tests/emulated/streams.h"

#include <cudnn.h>
#include <map>
#include <memory>
#include <stdlib.h>
#include <string>
#include <vector>

using namespace emulated;

namespace
{

struct thing;
typedef std::shared_ptr<thing> reference;

struct thing {
    cudnnBackendDescriptorType_t type;
    bool final;
    std::map<int, std::vector<char>> values;
    std::map<int, std::vector<reference>> parts;

    template <typename T> std::vector<T> all(int name) const
    {
        auto found = values.find(name);
        if (found == values.end())
            return {};
        std::vector<T> list(found->second.size() / sizeof(T));
        memcpy(list.data(), found->second.data(), list.size() * sizeof(T));
        return list;
    }

    template <typename T> T one(int name) const
    {
        std::vector<T> list = all<T>(name);
        if (list.size() != 1)
            broken("cuDNN: attribute %d of a descriptor of type %d has %zu values", name,
                   (int) type, list.size());
        return list[0];
    }

    template <typename T> void put(int name, std::vector<T> list)
    {
        values[name].assign((const char *) list.data(), (const char *) (list.data() + list.size()));
    }

    const reference &part(int name) const
    {
        auto found = parts.find(name);
        if (found == parts.end() || found->second.size() != 1)
            broken("cuDNN: part %d of a descriptor of type %d is missing", name, (int) type);
        return found->second[0];
    }
};

reference &of(cudnnBackendDescriptor_t descriptor)
{
    return *(reference *) descriptor;
}

struct handle {
    int device;
    cudaStream_t stream;
};

/* ---- engines ---- */

enum engine { PLAIN, WITH_KNOBS, INEXACT, GREEDY, BROKEN, SLOW, COMPILED, LAST_RESORT };

constexpr int64_t TOO_MUCH = (int64_t) 2 << 30;

reference make(cudnnBackendDescriptorType_t type)
{
    return std::make_shared<thing>(thing{type, true, {}, {}});
}

reference make_config(const reference &graph, engine number, int64_t knob)
{
    reference config = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
              e = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    e->parts[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {graph};
    e->put<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, {number});
    config->parts[CUDNN_ATTR_ENGINECFG_ENGINE] = {e};
    if (knob >= 0) {
        reference choice = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        choice->put<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                            {CUDNN_KNOB_TYPE_TILE_SIZE});
        choice->put<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, {knob});
        config->parts[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES] = {choice};
    }
    return config;
}

int64_t knob_of(const thing &config)
{
    auto found = config.parts.find(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    return found == config.parts.end()
               ? -1
               : found->second[0]->one<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
}

int64_t engine_of(const thing &config)
{
    return config.part(CUDNN_ATTR_ENGINECFG_ENGINE)->one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
}

int64_t workspace_of(const thing &config)
{
    int64_t number = engine_of(config);
    return number == GREEDY        ? TOO_MUCH
           : number == WITH_KNOBS  ? 1000 * knob_of(config)
           : number == LAST_RESORT ? 70000
                                   : 0;
}

/* All that says what a graph computes, to draw by. */
void describe(const thing &t, std::string &text)
{
    text += std::to_string(t.type);
    for (const auto &v : t.values) {
        if (v.first != CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
            text.append(v.second.data(), v.second.size());
    }
    for (const auto &list : t.parts) {
        for (const reference &part : list.second)
            describe(*part, text);
    }
}

bool has_engines(const thing &graph)
{
    const char *seed = getenv("HPC_TRAIN_TEST_ENGINES");
    std::string text;
    if (seed == nullptr)
        return true;
    describe(graph, text);
    return std::hash<std::string>()(text + seed) % 4 != 0;
}

std::vector<reference> propose(const thing &heuristic)
{
    const reference &graph = heuristic.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    if (!has_engines(*graph))
        return {};
    switch (heuristic.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE)) {
    case CUDNN_HEUR_MODE_A:
        return {make_config(graph, INEXACT, -1), make_config(graph, WITH_KNOBS, 1),
                make_config(graph, GREEDY, -1),  make_config(graph, WITH_KNOBS, 3),
                make_config(graph, BROKEN, -1),  make_config(graph, COMPILED, -1),
                make_config(graph, PLAIN, -1),   make_config(graph, SLOW, -1)};
    default:
        return {make_config(graph, LAST_RESORT, -1)};
    }
}

/* ---- what is computed ---- */

struct tensor {
    int64_t id;
    number type;
    bool inside;
    int64_t size[4], stride[4];

    size_t count() const
    {
        return (size_t) (size[0] * size[1] * size[2] * size[3]);
    }
};

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

/* [n][h][w][c] in fp32. */
typedef std::vector<float> values;

/* One run: the tensors that lie in memory, and those that do not. */
struct state {
    std::map<int64_t, void *> pointers;
    std::map<int64_t, values> inside;

    template <typename V> void visit(const tensor &t, V each) const
    {
        size_t i = 0;
        for (int64_t n = 0; n < t.size[0]; n++)
            for (int64_t h = 0; h < t.size[2]; h++)
                for (int64_t w = 0; w < t.size[3]; w++)
                    for (int64_t c = 0; c < t.size[1]; c++)
                        each(i++, (size_t) (n * t.stride[0] + c * t.stride[1] + h * t.stride[2] +
                                            w * t.stride[3]));
    }

    values load(const tensor &t)
    {
        if (t.inside) {
            auto found = inside.find(t.id);
            if (found == inside.end())
                broken("cuDNN: tensor %d is read before it is made", (int) t.id);
            return found->second;
        }
        const void *from = pointers.at(t.id);
        values v(t.count());
        visit(t, [&](size_t to, size_t place) { v[to] = read(from, t.type, place); });
        return v;
    }

    void store(const tensor &t, values v)
    {
        if (t.inside) {
            inside[t.id] = std::move(v);
            return;
        }
        void *to = pointers.at(t.id);
        visit(t, [&](size_t from, size_t place) { write(to, t.type, place, v[from]); });
    }
};

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

    /* There: where input channel i of the cell at `kernel` begins. */
    size_t turned(size_t kernel, size_t i) const
    {
        size_t group = outs() * next();
        return (kernel / group * next() + kernel % group + i) * outs();
    }

    /* From one number of a kernel to that of the next of y's channels. */
    size_t next() const
    {
        return (size_t) (w.size[1] * w.size[2] * w.size[3]);
    }
};

typedef std::function<void(state &)> step;

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

step convolve(const thing &operation, const way &names)
{
    convolution c = convolution_of(operation, names);
    size_t ins = c.ins(), outs = c.outs();
    bool adds = operation.one<float>(names.beta) == 1 &&
                operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    if (operation.one<float>(names.alpha) != 1 || (operation.one<float>(names.beta) != 0 && !adds))
        broken("cuDNN: other factors are not emulated");
    switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return [c, ins, outs](state &s) {
            values x = s.load(c.x), w = c.turn(s.load(c.w), true), y(c.y.count());
            c.visit([&](size_t to, size_t from, size_t kernel) {
                for (size_t i = 0; i < ins; i++)
                    add(outs, x[from + i], &w[c.turned(kernel, i)], &y[to]);
            });
            s.store(c.y, std::move(y));
        };
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return [c, adds](state &s) {
            values x = adds ? s.load(c.x) : values(c.x.count()), w = s.load(c.w), y = s.load(c.y);
            c.visit([&](size_t to, size_t from, size_t kernel) {
                for (size_t k = 0; k < c.outs(); k++)
                    add(c.ins(), y[to + k], &w[kernel + k * c.next()], &x[from]);
            });
            s.store(c.x, std::move(x));
        };
    default:
        return [c, ins, outs](state &s) {
            values x = s.load(c.x), w(c.w.count()), y = s.load(c.y);
            c.visit([&](size_t to, size_t from, size_t kernel) {
                for (size_t i = 0; i < ins; i++)
                    add(outs, x[from + i], &y[to], &w[c.turned(kernel, i)]);
            });
            s.store(c.w, c.turn(w, false));
        };
    }
}

/* An operand as large as the result, or a vector of channels. */
size_t within(const tensor &operand, const tensor &whole, size_t i)
{
    return operand.count() == whole.count() ? i : i % (size_t) whole.size[1];
}

bool spreads(const tensor &operand, const tensor &whole)
{
    bool same = true, vector = operand.size[0] == 1 && operand.size[1] == whole.size[1] &&
                               operand.size[2] == 1 && operand.size[3] == 1;
    for (int i = 0; i < 4; i++)
        same = same && operand.size[i] == whole.size[i];
    return same || vector;
}

step combine(const tensor &x, const tensor &b, const tensor &y, float (*how)(float, float))
{
    if (!spreads(x, y) || !spreads(b, y))
        broken("cuDNN: operands of a pointwise operation differ in size");
    return [=](state &s) {
        values first = s.load(x), second = s.load(b), result(y.count());
        for (size_t i = 0; i < result.size(); i++)
            result[i] = how(first[within(x, y, i)], second[within(b, y, i)]);
        s.store(y, std::move(result));
    };
}

step point(const thing &operation)
{
    cudnnPointwiseMode_t mode = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                                    ->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    if (mode == CUDNN_POINTWISE_RELU_BWD)
        return combine(tensor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC),
                       tensor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                       tensor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC),
                       [](float d, float x) { return x > 0 ? d : 0; });
    tensor x = tensor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
           y = tensor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    if (mode == CUDNN_POINTWISE_RELU_FWD)
        return combine(x, x, y, [](float a, float) { return a > 0 ? a : 0; });
    tensor b = tensor_of(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return combine(x, b, y, [](float p, float q) { return p + q; });
    case CUDNN_POINTWISE_SUB:
        return combine(x, b, y, [](float p, float q) { return p - q; });
    case CUDNN_POINTWISE_MUL:
        return combine(x, b, y, [](float p, float q) { return p * q; });
    default:
        broken("cuDNN: pointwise mode %d is not emulated", (int) mode);
    }
}

size_t channel_of(const tensor &t, size_t i)
{
    return i % (size_t) t.size[1];
}

step take_moments(const thing &operation)
{
    tensor x = tensor_of(operation, CUDNN_ATTR_OPERATION_GENSTATS_XDESC),
           sum = tensor_of(operation, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC),
           squares = tensor_of(operation, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC);
    return [=](state &s) {
        values v = s.load(x), first(sum.count()), second(squares.count());
        for (size_t i = 0; i < v.size(); i++) {
            first[channel_of(x, i)] += v[i];
            second[channel_of(x, i)] += v[i] * v[i];
        }
        s.store(sum, std::move(first));
        s.store(squares, std::move(second));
    };
}

/* The gradients of scale and bias, and the three vectors of which
 * dx = eq_dy dy + eq_x x + eq_bias is made. */
step sum_norm(const thing &o)
{
    tensor x = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC),
           dy = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC),
           mean = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC),
           inverse = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC),
           scale = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC),
           diff_scale = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC),
           diff_bias = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC),
           eq_dy = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC),
           eq_x = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC),
           eq_bias = tensor_of(o, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS);
    return [=](state &s) {
        values v = s.load(x), d = s.load(dy), m = s.load(mean), r = s.load(inverse),
               g = s.load(scale);
        values scales(m.size()), biases(m.size()), a(m.size()), b(m.size()), c(m.size());
        float count = (float) (v.size() / m.size());
        for (size_t i = 0; i < v.size(); i++) {
            size_t k = channel_of(x, i);
            scales[k] += d[i] * (v[i] - m[k]) * r[k];
            biases[k] += d[i];
        }
        for (size_t k = 0; k < m.size(); k++) {
            a[k] = g[k] * r[k];
            b[k] = -g[k] * r[k] * r[k] * scales[k] / count;
            c[k] = -g[k] * r[k] * biases[k] / count - b[k] * m[k];
        }
        s.store(diff_scale, std::move(scales));
        s.store(diff_bias, std::move(biases));
        s.store(eq_dy, std::move(a));
        s.store(eq_x, std::move(b));
        s.store(eq_bias, std::move(c));
    };
}

step step_of(const thing &operation)
{
    way names;
    if (way_of(operation.type, &names))
        return convolve(operation, names);
    switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return point(operation);
    case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR:
        return take_moments(operation);
    case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR:
        return sum_norm(operation);
    default:
        broken("cuDNN: operation %d is not emulated", (int) operation.type);
    }
}

/* ---- finalizing ---- */

cudnnStatus_t finalize(thing &t)
{
    way names;
    switch (t.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        for (int64_t size : t.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)) {
            if (size <= 0)
                return CUDNN_STATUS_BAD_PARAM;
        }
        break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        t.put<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                       {workspace_of(*t.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG))});
        break;
    default:
        if (way_of(t.type, &names) && !convolution_of(t, names).fits())
            return CUDNN_STATUS_BAD_PARAM;
    }
    t.final = true;
    return CUDNN_STATUS_SUCCESS;
}

size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_INT64:
        return sizeof(int64_t);
    case CUDNN_TYPE_FLOAT:
        return sizeof(float);
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
        return sizeof(void *);
    default:
        return sizeof(int); /* enumerations */
    }
}

struct plan {
    std::vector<step> steps;
    std::vector<tensor> tensors; /* in memory */
    size_t workspace;
};

void add_tensors(const thing &t, std::map<int64_t, tensor> &found)
{
    if (t.type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        tensor one = tensor_of(t);
        if (!one.inside)
            found[one.id] = one;
    }
    for (const auto &list : t.parts) {
        for (const reference &part : list.second)
            add_tensors(*part, found);
    }
}

const thing &graph_of(const thing &plan)
{
    return *plan.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
                ->part(CUDNN_ATTR_ENGINECFG_ENGINE)
                ->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
}

/* The convolution that a graph is made of, and how much goes with it. */
std::string name_of(const thing &plan)
{
    const std::vector<reference> &all = graph_of(plan).parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    std::string name = "graph";
    for (const reference &operation : all) {
        if (operation->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
            name = "convolution forward";
        if (operation->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
            name = "convolution data";
        if (operation->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
            name = "convolution weights";
    }
    return all.size() > 1 ? name + ", " + std::to_string(all.size() - 1) + " more" : name;
}

plan plan_of(const thing &t)
{
    const thing &graph = graph_of(t);
    std::map<int64_t, tensor> found;
    plan p = {};
    for (const reference &operation : graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS))
        p.steps.push_back(step_of(*operation));
    add_tensors(graph, found);
    for (const auto &one : found)
        p.tensors.push_back(one.second);
    p.workspace = (size_t) t.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
    return p;
}

/* Bytes read and written; what is added to is both. */
size_t traffic_of(const thing &made, const plan &p)
{
    size_t all = 0;
    for (const tensor &one : p.tensors)
        all += one.count() * bytes_of(one.type);
    for (const reference &operation : graph_of(made).parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
        way names;
        if (way_of(operation->type, &names) && operation->one<float>(names.beta) != 0) {
            tensor sum = tensor_of(*operation, names.x);
            all += sum.count() * bytes_of(sum.type);
        }
    }
    return all;
}

/* Tensors, each of them dense, and the workspace do not overlap; none of ours is computed in
 * place. */
void check_apart(const plan &p, const state &s, void *workspace)
{
    std::map<const char *, size_t> places;
    if (p.workspace > 0)
        places[(const char *) workspace] = p.workspace;
    for (const tensor &one : p.tensors) {
        const char *at = (const char *) s.pointers.at(one.id);
        if (!places.emplace(at, one.count() * bytes_of(one.type)).second)
            broken("cudnnBackendExecute: two tensors lie at one place");
    }
    const char *end = nullptr;
    for (const auto &place : places) {
        if (place.first < end)
            broken("cudnnBackendExecute: tensors or the workspace overlap");
        end = place.first + place.second;
    }
}

} // namespace

extern "C" {

const char *cudnnGetErrorString(cudnnStatus_t)
{
    return "an emulated error";
}

void cudnnGetLastErrorString(char *text, size_t size)
{
    if (size > 0)
        *text = '\0';
}

size_t cudnnGetVersion(void)
{
    return 91900;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    *out = (cudnnHandle_t) new handle{current_device(), nullptr};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t stream)
{
    ((handle *) h)->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    *out = new reference(std::make_shared<thing>(thing{type, false, {}, {}}));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    delete (reference *) descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    return refuses("cudnnBackendFinalize") ? CUDNN_STATUS_INTERNAL_ERROR
                                           : finalize(*of(descriptor));
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *from)
{
    thing &t = *of(descriptor);
    if (t.final)
        return CUDNN_STATUS_BAD_PARAM;
    if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        t.values[name].assign((const char *) from,
                              (const char *) from + (size_t) count * size_of(type));
        return CUDNN_STATUS_SUCCESS;
    }
    t.parts[name].clear();
    for (int64_t i = 0; i < count; i++) {
        const reference &part = of(((const cudnnBackendDescriptor_t *) from)[i]);
        if (!part->final)
            return CUDNN_STATUS_BAD_PARAM;
        t.parts[name].push_back(part);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room,
                                       int64_t *count, void *to)
{
    thing &t = *of(descriptor);
    if (!t.final)
        return CUDNN_STATUS_BAD_PARAM;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
        t.parts[name] = propose(t);
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE &&
        t.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == INEXACT)
        t.put<cudnnBackendNumericalNote_t>(
            name, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC});
    if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE &&
        t.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == COMPILED)
        t.put<cudnnBackendBehaviorNote_t>(name, {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION});
    if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        size_t size = size_of(type), bytes = t.values[name].size();
        *count = (int64_t) (bytes / size);
        memcpy(to, t.values[name].data(),
               bytes < (size_t) room * size ? bytes : (size_t) room * size);
        return CUDNN_STATUS_SUCCESS;
    }
    const std::vector<reference> &parts = t.parts[name];
    *count = (int64_t) parts.size();
    for (int64_t i = 0; i < room && i < *count; i++)
        of(((cudnnBackendDescriptor_t *) to)[i]) = parts[(size_t) i];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan_descriptor,
                                  cudnnBackendDescriptor_t pack)
{
    turn t;
    count_library();
    handle *own = (handle *) h;
    const thing &made = *of(plan_descriptor), &with = *of(pack);
    int64_t engine = engine_of(*made.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
    if (own->device != current_device())
        broken("cudnnBackendExecute: a handle of another device");
    if (engine == INEXACT || engine == GREEDY)
        broken("an engine was executed that is %s",
               engine == INEXACT ? "not deterministic" : "greedy");
    const char *compiles = getenv("HPC_TRAIN_CUDNN_COMPILE");
    if (engine == COMPILED && (compiles == nullptr || strcmp(compiles, "1") != 0))
        broken("an engine was executed that is compiled");
    if (engine == BROKEN || refuses("cudnnBackendExecute") || is_faulty(own->device))
        return CUDNN_STATUS_EXECUTION_FAILED;
    std::vector<int64_t> ids = with.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    std::vector<void *> pointers = with.all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    void *workspace = with.one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    plan p = plan_of(made);
    if (ids.size() != pointers.size() || ids.size() != p.tensors.size())
        return CUDNN_STATUS_BAD_PARAM;
    state start;
    for (size_t i = 0; i < ids.size(); i++) {
        start.pointers[ids[i]] = pointers[i];
        if (device_of(pointers[i]) != own->device)
            broken("cudnnBackendExecute: tensor %d is not in memory of the device", (int) ids[i]);
        if ((uintptr_t) pointers[i] % 16 != 0)
            broken("cudnnBackendExecute: tensor %d is not aligned as it was said", (int) ids[i]);
    }
    for (const tensor &one : p.tensors) {
        if (start.pointers.count(one.id) == 0)
            return CUDNN_STATUS_BAD_PARAM;
    }
    if (p.workspace > 0 && device_of(workspace) != own->device)
        broken("cudnnBackendExecute: the workspace is not in memory of the device");
    check_apart(p, start, workspace);
    std::string name = name_of(made);
    size_t traffic = traffic_of(made, p);
    enqueue(own->stream, with_workspace(workspace, p.workspace, [p, start, name, traffic] {
                count_traffic(name, traffic);
                state s = start;
                for (const step &one : p.steps)
                    one(s);
            }));
    return CUDNN_STATUS_SUCCESS;
}
}
