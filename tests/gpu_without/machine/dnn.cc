/* cuDNN's backend API: descriptors, engines to choose from, and plans that are executed.
 *
 * Of each graph there are engines that suit, and some that do not and must not be executed: not
 * deterministic, with too large a workspace; and one that is wrong at the right edge.
 * HPC_TRAIN_TEST_ENGINES=SEED: a quarter of the graphs, by chance, have none. */
#include "tests/gpu_without/machine/dnn.h"

#include <stdlib.h>

using namespace emulated;
using namespace emulated::dnn;

namespace
{

reference &of(cudnnBackendDescriptor_t descriptor)
{
    return *(reference *) descriptor;
}

struct handle {
    int device;
    cudaStream_t stream;
};

/* ---- engines ---- */

enum engine { PLAIN, WITH_KNOBS, INEXACT, GREEDY, BROKEN, SLOW, COMPILED, LAST_RESORT, WRONG };

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

/* What the last operation writes. */
tensor result_of(const thing &graph)
{
    const thing &last = *graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).back();
    switch (last.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return tensor_of(last, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return tensor_of(last, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return tensor_of(last, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
    default:
        return tensor_of(last, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    }
}

void spoil(state &s, const tensor &result)
{
    values v = s.load(result);
    size_t channels = (size_t) result.size[1], width = (size_t) result.size[3];
    for (size_t i = 0; i < v.size(); i++) {
        if (i / channels % width == width - 1)
            v[i] += 1 + v[i] * v[i];
    }
    s.store(result, v);
}

std::vector<reference> propose(const thing &heuristic)
{
    const reference &graph = heuristic.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    if (!has_engines(*graph))
        return {};
    switch (heuristic.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE)) {
    case CUDNN_HEUR_MODE_A: {
        return {make_config(graph, WRONG, -1),     make_config(graph, INEXACT, -1),
                make_config(graph, WITH_KNOBS, 1), make_config(graph, GREEDY, -1),
                make_config(graph, WITH_KNOBS, 3), make_config(graph, BROKEN, -1),
                make_config(graph, COMPILED, -1),  make_config(graph, PLAIN, -1),
                make_config(graph, SLOW, -1)};
    }
    default:
        return {make_config(graph, LAST_RESORT, -1)};
    }
}

/* ---- finalizing ---- */

cudnnStatus_t finalize(thing &t)
{
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
        if (!fits(t))
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
    for (const reference &operation : graph_of(made).parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS))
        all += bytes_added_to(*operation);
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
    if (engine == COMPILED)
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
    bool wrong = engine == WRONG;
    tensor result = wrong ? result_of(graph_of(made)) : tensor{};
    enqueue(own->stream,
            with_workspace(workspace, p.workspace, [p, start, name, traffic, wrong, result] {
                count_traffic(name, traffic);
                state s = start;
                for (const step &one : p.steps)
                    one(s);
                if (wrong)
                    spoil(s, result);
            }));
    return CUDNN_STATUS_SUCCESS;
}
}
