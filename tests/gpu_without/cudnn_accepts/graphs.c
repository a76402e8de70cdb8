/* Collects what hpct_dnn_find is asked for while a model is planned. */
#include "tests/gpu_without/cudnn_accepts/graphs.h"

#include "base/status.h"
#include "nn/backend/cuda/dnn_parts.h"
#include "nn/backend/module.h"
#include "nn/graph/graph.h"
#include "nn/plan/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int batch_sizes[] = {256, 17};
#define GROWTH 256

const char *const accepts_devices[DEVICES_ALL + 1] = {
    "sm_70_v100", "sm_75_t4",   "sm_80_a100",  "sm_86_a10",      "sm_89_l4",
    "sm_90_h100", "sm_90_h200", "sm_100_b200", "sm_120_rtx5090", NULL};

const char *const accepts_kind_names[ACCEPTS_KINDS] = {
    [ACCEPTS_FORWARD] = "forward",
    [ACCEPTS_FUSED] = "forward, bias and/or ReLU",
    [ACCEPTS_SUM] = "forward, sum, bias and/or ReLU",
    [ACCEPTS_DATA] = "gradient of the source",
    [ACCEPTS_ADDED] = "the same, added",
    [ACCEPTS_WEIGHTS] = "gradient of the kernel"};

accepts_graph *accepts_graphs;
int accepts_num_graphs;
static int at_device, at_model;
static accepts_answer *asked; /* of the graph that is looked for; NULL: none */

void accepts_engines_add(accepts_engines *e, int number)
{
    int at = e->count;
    for (int i = 0; i < e->count; i++) {
        if (e->number[i] == number)
            return;
    }
    if (e->count == MOST_ENGINES)
        return;
    for (e->count++; at > 0 && e->number[at - 1] > number; at--)
        e->number[at] = e->number[at - 1];
    e->number[at] = number;
}

void accepts_forget(void)
{
    for (int i = 0; i < accepts_num_graphs; i++)
        free(accepts_graphs[i].key);
    free(accepts_graphs);
    accepts_graphs = NULL;
    accepts_num_graphs = 0;
}

/* ---- what a graph is ---- */

static accepts_kind kind_of(const hpct_dnn_claim *c)
{
    if (c->way == HPCT_DNN_WEIGHTS)
        return ACCEPTS_WEIGHTS;
    if (c->way == HPCT_DNN_DATA)
        return c->added ? ACCEPTS_ADDED : ACCEPTS_DATA;
    return c->other >= 0 ? ACCEPTS_SUM : c->bias >= 0 || c->relu ? ACCEPTS_FUSED : ACCEPTS_FORWARD;
}

static hpct_precision precision_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT ? HPCT_FP32 : type == CUDNN_DATA_HALF ? HPCT_FP16 : HPCT_BF16;
}

static void write_shape(const hpct_dnn_graph *graph, char *text, size_t size)
{
    const hpct_dnn_claim *c = &graph->claim;
    const int64_t *src = graph->size[c->src], *kernel = graph->size[c->kernel],
                  *dst = graph->size[c->dst];
    const hpct_dnn_window *w = &c->window;
    snprintf(text, size,
             "%" PRId64 "×%" PRId64 "×%" PRId64 " to %" PRId64 "×%" PRId64 "×%" PRId64
             ", kernel %" PRId64 "×%" PRId64 ", stride %" PRId64 ", padding %" PRId64
             " and %" PRId64 ", %" PRId64 " groups",
             src[2], src[3], src[1], dst[2], dst[3], dst[1], kernel[2], kernel[3], w->stride[0],
             w->pad_before[0], w->pad_after[0], src[1] / kernel[1]);
}

static bool is_uneven(const hpct_dnn_graph *graph)
{
    const hpct_dnn_window *w = &graph->claim.window;
    return w->pad_before[0] != w->pad_after[0] || w->pad_before[1] != w->pad_after[1];
}

static void describe(accepts_graph *g, const hpct_dnn_graph *graph)
{
    const hpct_dnn_claim *c = &graph->claim;
    g->kind = kind_of(c);
    g->precision = precision_of(graph->type[c->src]);
    g->uneven = is_uneven(graph);
    write_shape(graph, g->shape, sizeof g->shape);
}

/* The entry of this graph, a new one if there is none; NULL without memory. */
static accepts_graph *entry_of(const hpct_dnn_graph *graph)
{
    for (int i = 0; i < accepts_num_graphs; i++) {
        if (strcmp(accepts_graphs[i].key, graph->key) == 0)
            return &accepts_graphs[i];
    }
    if (accepts_num_graphs % GROWTH == 0) {
        size_t count = (size_t) accepts_num_graphs + GROWTH;
        accepts_graph *more = realloc(accepts_graphs, count * sizeof *more);
        if (more == NULL)
            return NULL;
        accepts_graphs = more;
    }
    accepts_graph *g = &accepts_graphs[accepts_num_graphs];
    *g = (accepts_graph){.key = strdup(graph->key)};
    if (g->key == NULL)
        return NULL;
    accepts_num_graphs++;
    describe(g, graph);
    return g;
}

bool accepts_is_last(const accepts_graph *g)
{
    return (g->kind == ACCEPTS_FORWARD || g->kind == ACCEPTS_DATA || g->kind == ACCEPTS_WEIGHTS) &&
           !g->uneven;
}

/* ---- listening ---- */

hpct_status __real_hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char *why);
hpct_status __wrap_hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char *why);
/* Graphs are freed there, so that what they were is asked before. Those that are more than a
 * convolution and what follows it are refused here, unasked: they are not in a step by default. */
hpct_status __wrap_hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char *why)
{
    *out = NULL;
    if (!graph->claim.whole) {
        hpct_dnn_graph_free(graph);
        return HPCT_OK;
    }
    accepts_graph *g = graph->status == HPCT_OK ? entry_of(graph) : NULL;
    if (g == NULL) {
        hpct_status status = graph->status == HPCT_OK ? hpct_fail_memory(0) : graph->status;
        hpct_dnn_graph_free(graph);
        return status;
    }
    asked = &g->answer[at_device];
    hpct_status status = __real_hpct_dnn_find(out, graph, why);
    asked->models |= 1U << at_model;
    asked->accepted = *out != NULL;
    asked = NULL;
    return status;
}

static int engine_of(const hpct_dnn_candidate *c)
{
    int engine = -1;
    sscanf(c->name, "e%d", &engine);
    return engine;
}

static bool is_compiled(hpct_dnn_descriptor engine)
{
    cudnnBackendBehaviorNote_t notes[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t count = 0;
    cudnnStatus_t error =
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                 CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &count, notes);
    for (int64_t i = 0; error == CUDNN_STATUS_SUCCESS && i < count; i++) {
        if (notes[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)
            return true;
    }
    return false;
}

/* Heuristics do not propose them without a driver; but the library says which engines there are. */
static void list_compiled(const hpct_dnn_graph *graph, accepts_engines *out)
{
    int64_t engines = 0, count = 0;
    if (cudnnBackendGetAttribute(graph->graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                                 CUDNN_TYPE_INT64, 1, &count, &engines) != CUDNN_STATUS_SUCCESS)
        return;
    for (int64_t i = 0; i < engines; i++) {
        hpct_dnn_descriptor engine = NULL;
        if (hpct_dnn_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) &&
            cudnnBackendSetAttribute(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                     &graph->graph) == CUDNN_STATUS_SUCCESS &&
            cudnnBackendSetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                     &i) == CUDNN_STATUS_SUCCESS &&
            cudnnBackendFinalize(engine) == CUDNN_STATUS_SUCCESS && is_compiled(engine))
            accepts_engines_add(out, (int) i);
        hpct_dnn_destroy_all(&engine, 1);
    }
}

/* Seen on an H200 with cuDNN 9.19, where paddings differ between two ends. */
static bool is_wrong(accepts_kind kind, int engine)
{
    return kind == ACCEPTS_WEIGHTS
               ? engine == 1 || engine == 18
               : (kind == ACCEPTS_DATA || kind == ACCEPTS_ADDED) && engine == 50;
}

/* As the proof on a device does (nn/backend/cuda/self_test.h). */
static void drop_wrong(const hpct_dnn_graph *graph, int from, hpct_dnn_candidate *all, int *count)
{
    int kept = from;
    for (int i = from; i < *count; i++) {
        if (is_uneven(graph) && is_wrong(kind_of(&graph->claim), engine_of(&all[i]))) {
            accepts_engines_add(&asked->wrong, engine_of(&all[i]));
            hpct_dnn_candidate_drop(&all[i]);
            continue;
        }
        all[kept++] = all[i];
    }
    *count = kept;
}

void __real_hpct_dnn_propose(const hpct_dnn_graph *graph, cudnnBackendHeurMode_t mode,
                             size_t workspace_limit, int most, hpct_dnn_candidate *out, int *count);
void __wrap_hpct_dnn_propose(const hpct_dnn_graph *graph, cudnnBackendHeurMode_t mode,
                             size_t workspace_limit, int most, hpct_dnn_candidate *out, int *count);
void __wrap_hpct_dnn_propose(const hpct_dnn_graph *graph, cudnnBackendHeurMode_t mode,
                             size_t workspace_limit, int most, hpct_dnn_candidate *out, int *count)
{
    int before = *count;
    __real_hpct_dnn_propose(graph, mode, workspace_limit, most, out, count);
    if (asked == NULL)
        return;
    if (asked->models == 0 && mode == CUDNN_HEUR_MODE_A)
        list_compiled(graph, &asked->compiled);
    drop_wrong(graph, before, out, count);
    for (int i = before; i < *count; i++)
        accepts_engines_add(&asked->engines, engine_of(&out[i]));
    if (before == 0 && *count > 0)
        asked->workspace_bytes = out[0].workspace_bytes;
}

/* ---- asking ---- */

void accepts_listen(int device, int model)
{
    at_device = device;
    at_model = model;
}

hpct_status accepts_ask(int device, int model, hpct_precision precision)
{
    const hpct_run_build_options options = {.batch_sizes = batch_sizes, .num_batch_sizes = 2};
    hpct_run_memory_plan plan;
    hpct_model *made = NULL;
    accepts_listen(device, model);
    hpct_status status = accepts_model(&made, accepts_models[model], precision);
    if (status == HPCT_OK) {
        made->backend = &hpct_cuda_backend;
        status = hpct_model_plan(made, &options, &plan);
    }
    hpct_model_free(made);
    return status;
}
