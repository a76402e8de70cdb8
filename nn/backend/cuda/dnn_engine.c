/* cuDNN's engine configurations for a graph, proposed by its heuristics, and their plans.
 *
 * A configuration is named by its engine's index and its knobs ("e12 k2=1 k5=3"); the name is kept,
 * and the configuration made from it again. Those that cannot be finalized, are not exact or need
 * too much workspace are skipped. */
#include "nn/backend/cuda/dnn_parts.h"

#include "base/progress.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RESULTS 64 /* of one heuristic, at most */

typedef hpct_dnn_descriptor descriptor;

_Thread_local int hpct_dnn_troubles;

bool hpct_dnn_worked(cudnnStatus_t error)
{
    int category = CUDNN_STATUS_CATEGORY((int) error);
    if (error != CUDNN_STATUS_SUCCESS && category != CUDNN_STATUS_NOT_SUPPORTED &&
        category != CUDNN_STATUS_BAD_PARAM)
        hpct_dnn_troubles++;
    return error == CUDNN_STATUS_SUCCESS;
}

void hpct_dnn_destroy_all(descriptor *descriptors, int count)
{
    for (int i = 0; i < count; i++) {
        if (descriptors[i] != NULL)
            cudnnBackendDestroyDescriptor(descriptors[i]);
        descriptors[i] = NULL;
    }
}

/* Creates `count` descriptors, or none on failure. */
static bool create_all(cudnnBackendDescriptorType_t type, int count, descriptor *out)
{
    for (int i = 0; i < count; i++) {
        if (!hpct_dnn_create(type, &out[i])) {
            hpct_dnn_destroy_all(out, i);
            return false;
        }
    }
    return true;
}

/* An integer attribute of a plan, engine or knob. */
static bool get_int64(descriptor of, cudnnBackendAttributeName_t name, int64_t *value)
{
    int64_t count = 0;
    return hpct_dnn_get(of, name, CUDNN_TYPE_INT64, 1, &count, value) && count == 1;
}

/* Deterministic, without reduced-precision accumulation or operands: 16-bit partial sums overflow
 * when gradients are summed over a batch. */
static bool is_exact(descriptor engine)
{
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    if (!hpct_dnn_get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes))
        return false;
    for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++) {
        if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
            notes[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
            notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)
            return false;
    }
    return true;
}

/* Not used: anew in each process, and in ResNet-50 on an H200 no faster. */
static bool is_compiled(descriptor engine)
{
    cudnnBackendBehaviorNote_t notes[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t count = 0;
    if (!hpct_dnn_get(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                      CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &count, notes))
        return false;
    for (int64_t i = 0; i < count && i < CUDNN_BEHAVIOR_NOTE_TYPE_COUNT; i++) {
        if (notes[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)
            return true;
    }
    return false;
}

/* "e12 k2=1 k5=3" */
static bool write_name(int64_t engine, const descriptor *knobs, int64_t count,
                       char name[HPCT_DNN_NAME_SIZE])
{
    size_t used = (size_t) snprintf(name, HPCT_DNN_NAME_SIZE, "e%" PRId64, engine);
    for (int64_t i = 0; i < count; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        int64_t value = 0, got = 0;
        if (!hpct_dnn_get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &got,
                          &type) ||
            !get_int64(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &value))
            return false;
        used += (size_t) snprintf(name + used, HPCT_DNN_NAME_SIZE - used, " k%d=%" PRId64,
                                  (int) type, value);
        if (used >= HPCT_DNN_NAME_SIZE)
            return false;
    }
    return true;
}

/* The configuration's name; false if it is not available, or the engine is not exact or compiled at
 * run time. */
static bool name_config(descriptor config, char name[HPCT_DNN_NAME_SIZE])
{
    descriptor engine[1], knobs[CUDNN_KNOB_TYPE_COUNTS];
    int64_t count = 0, number = 0;
    bool good = false;
    if (!create_all(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1, engine))
        return false;
    if (create_all(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, knobs)) {
        good = hpct_dnn_get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            &count, engine) &&
               get_int64(engine[0], CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &number) && is_exact(engine[0]);
        good = good && !is_compiled(engine[0]) &&
               hpct_dnn_get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                            CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, &count, knobs);
        good = good && count <= CUDNN_KNOB_TYPE_COUNTS && write_name(number, knobs, count, name);
        hpct_dnn_destroy_all(knobs, CUDNN_KNOB_TYPE_COUNTS);
    }
    hpct_dnn_destroy_all(engine, 1);
    return good;
}

/* Makes the configuration with that name. */
static bool make_config(const hpct_dnn_graph *graph, const char *name, descriptor *config)
{
    descriptor engine[1], knobs[CUDNN_KNOB_TYPE_COUNTS];
    int64_t number = 0, value = 0;
    int used = 0, type = 0, count = 0;
    *config = NULL;
    if (sscanf(name, "e%" SCNd64 "%n", &number, &used) != 1 ||
        !create_all(CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1, engine))
        return false;
    bool good =
        hpct_dnn_set(engine[0], CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                     &graph->graph) &&
        hpct_dnn_set(engine[0], CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number) &&
        hpct_dnn_finalize(engine[0]);
    for (name += used; good && sscanf(name, " k%d=%" SCNd64 "%n", &type, &value, &used) == 2;
         name += used) {
        cudnnBackendKnobType_t knob = (cudnnBackendKnobType_t) type;
        good = count < CUDNN_KNOB_TYPE_COUNTS &&
               hpct_dnn_create(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[count]);
        if (!good)
            break;
        descriptor choice = knobs[count++];
        good =
            hpct_dnn_set(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                         &knob) &&
            hpct_dnn_set(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value) &&
            hpct_dnn_finalize(choice);
    }
    good = good && *name == '\0' && hpct_dnn_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, config) &&
           hpct_dnn_set(*config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                        engine);
    if (good && count > 0)
        good = hpct_dnn_set(*config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                            CUDNN_TYPE_BACKEND_DESCRIPTOR, count, knobs);
    good = good && hpct_dnn_finalize(*config);
    if (!good)
        hpct_dnn_destroy_all(config, 1);
    hpct_dnn_destroy_all(knobs, count);
    hpct_dnn_destroy_all(engine, 1);
    return good;
}

/* cuDNN loads and unloads NVRTC for each plan that may need it, which takes longer than most plans
 * (12 ms with cuDNN 9.19): keeps it loaded from the first plan on. Without NVRTC this has no
 * effect. (The one found from this module is loaded: LD_LIBRARY_PATH and configure's folder precede
 * cuDNN's.) */
static void keep_compiler(void)
{
    static bool tried; /* protected by hpct_cuda_tune_lock */
    char name[32];
    snprintf(name, sizeof name, "libnvrtc.so.%d", CUDART_VERSION / 1000);
    if (!tried)
        dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    tried = true;
}

/* Makes the configuration's execution plan, if possible with an acceptable workspace. */
static bool make_plan(hpct_dnn_candidate *c, size_t workspace_limit)
{
    int64_t bytes = 0;
    keep_compiler();
    bool good = hpct_dnn_create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &c->plan) &&
                hpct_dnn_set(c->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                             &hpct_cuda_gpu.dnn) &&
                hpct_dnn_set(c->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c->config) &&
                hpct_dnn_finalize(c->plan) &&
                get_int64(c->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, &bytes) &&
                bytes >= 0 && (uint64_t) bytes <= workspace_limit;
    if (good)
        c->workspace_bytes = (size_t) bytes;
    else
        hpct_dnn_destroy_all(&c->plan, 1);
    return good;
}

void hpct_dnn_candidate_drop(hpct_dnn_candidate *c)
{
    hpct_dnn_destroy_all(&c->plan, 1);
    hpct_dnn_destroy_all(&c->config, 1);
}

static bool is_known(const hpct_dnn_candidate *known, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(known[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool has_engine_of(const hpct_dnn_candidate *known, int count, const char *name)
{
    size_t length = strcspn(name, " ");
    for (int i = 0; i < count; i++) {
        if (strcspn(known[i].name, " ") == length && strncmp(known[i].name, name, length) == 0)
            return true;
    }
    return false;
}

/* Moves suitable configurations to the candidates; their entries become NULL. `again`: also further
 * ones of engines that candidates already have. */
static void take_some(descriptor *configs, int64_t results, bool again, size_t workspace_limit,
                      int most, hpct_dnn_candidate *out, int *count)
{
    for (int i = 0; i < results && i < MOST_RESULTS && *count < most; i++) {
        hpct_dnn_candidate *c = &out[*count];
        *c = (hpct_dnn_candidate){.config = configs[i]};
        if (configs[i] == NULL || !name_config(c->config, c->name) ||
            is_known(out, *count, c->name) || (!again && has_engine_of(out, *count, c->name)))
            continue;
        hpct_count_progress();
        if (make_plan(c, workspace_limit)) {
            configs[i] = NULL; /* owned by the candidate now */
            (*count)++;
        }
    }
}

void hpct_dnn_propose(const hpct_dnn_graph *graph, cudnnBackendHeurMode_t mode,
                      size_t workspace_limit, int most, hpct_dnn_candidate *out, int *count)
{
    descriptor heuristic[1], configs[MOST_RESULTS];
    int64_t results = 0;
    if (!create_all(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 1, heuristic))
        return;
    if (hpct_dnn_set(heuristic[0], CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->graph) &&
        hpct_dnn_set(heuristic[0], CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) &&
        hpct_dnn_finalize(heuristic[0]) &&
        create_all(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, MOST_RESULTS, configs)) {
        /* queried once, with room for all: cuDNN checks every configuration in each query, even in
         * one for their number */
        if (!hpct_dnn_get(heuristic[0], CUDNN_ATTR_ENGINEHEUR_RESULTS,
                          CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST_RESULTS, &results, configs))
            results = 0;
        take_some(configs, results, false, workspace_limit, most / 2, out, count);
        take_some(configs, results, true, workspace_limit, most, out, count);
        hpct_dnn_destroy_all(configs, MOST_RESULTS);
    }
    hpct_dnn_destroy_all(heuristic, 1);
}

bool hpct_dnn_candidate_make(const hpct_dnn_graph *graph, const char *name, size_t workspace_limit,
                             hpct_dnn_candidate *out)
{
    *out = (hpct_dnn_candidate){0};
    snprintf(out->name, sizeof out->name, "%s", name);
    if (make_config(graph, name, &out->config) && make_plan(out, workspace_limit))
        return true;
    hpct_dnn_candidate_drop(out);
    return false;
}
