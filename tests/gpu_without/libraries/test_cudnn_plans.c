/* What cuDNN has for convolutions on a GPU that is not there: its own library proposes engines and
 * makes plans from a description of a device (cuDNN 9.11 or later), and runs none of them. The GPU
 * module's files are in this program; in place of a device's handle they give cuDNN the
 * description, and what they measure is made up. Engines that are compiled when a plan is made are
 * not used. */
#include "nn/backend/cuda/choices.h"
#include "nn/backend/cuda/conv2d_parts.h"
#include "nn/backend/cuda/cuda.h"
#include "nn/backend/cuda/dnn_parts.h"
#include "nn/backend/cuda/proof.h"
#include "nn/backend/cuda/tune.h"
#include "nn/backend/norm_line.h"
#include "nn/graph/graph.h"
#include "nn/graph/rng.h"
#include "tests/unit/unit.h"

#include <unistd.h>

#if CUDNN_VERSION < 91100 /* then nothing is asked for */
#define CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR CUDNN_BACKEND_TENSOR_DESCRIPTOR
#define CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION CUDNN_ATTR_TENSOR_DATA_TYPE
#define CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP CUDNN_ATTR_EXECUTION_PLAN_HANDLE
#define CUDNN_ATTR_ENGINEHEUR_DEVICEPROP CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH
#define CUDNN_ATTR_ENGINE_DEVICEPROP CUDNN_ATTR_ENGINE_OPERATION_GRAPH
#endif

/* As the driver describes it; CUDA's documentation and the data sheet have the same numbers. */
static const char h100[] =
    "{\"deviceName\":\"NVIDIA H100 80GB HBM3\",\"cudaDeviceId\":0,\"deviceVer\":900,"
    "\"driverVer\":13000,\"multiProcessorCount\":132,\"warpSize\":32,\"regsPerBlock\":65536,"
    "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"maxGridSize\":[2147483647,65535,65535],"
    "\"maxBlockSize\":[1024,1024,64],\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,"
    "\"l2CacheSize\":52428800,\"totalGlobalMem\":85029158912,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":2619000,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1}";

static cudnnBackendDescriptor_t device;

/* Each time another one: nothing is known of it but what the choices say. */
static void use_new_gpu(void)
{
    static hpct_cuda gpus[8];
    static int next;
    assert_true(next < 8);
    hpct_gpu_here = &gpus[next++];
    *hpct_gpu_here = (hpct_cuda){.major = 9, .multiprocessors = 132};
}

/* ---- in place of a device ---- */

cudnnStatus_t __real_cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values);
cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values);

static cudnnStatus_t describe(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name)
{
    return __real_cudnnBackendSetAttribute(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
}

cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void *values)
{
    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
        return describe(of, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
    cudnnStatus_t error = CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
        error = describe(of, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
    if (name == CUDNN_ATTR_ENGINE_OPERATION_GRAPH)
        error = describe(of, CUDNN_ATTR_ENGINE_DEVICEPROP);
    return error != CUDNN_STATUS_SUCCESS
               ? error
               : __real_cudnnBackendSetAttribute(of, name, type, count, values);
}

static hpct_choices *choices;
static int measured, proposed, made, taken;

void __real_hpct_dnn_propose(const hpct_dnn_graph *graph, cudnnBackendHeurMode_t mode,
                             size_t workspace_limit, int most, hpct_dnn_candidate *out, int *count);
void __wrap_hpct_dnn_propose(const hpct_dnn_graph *graph, cudnnBackendHeurMode_t mode,
                             size_t workspace_limit, int most, hpct_dnn_candidate *out, int *count);
void __wrap_hpct_dnn_propose(const hpct_dnn_graph *graph, cudnnBackendHeurMode_t mode,
                             size_t workspace_limit, int most, hpct_dnn_candidate *out, int *count)
{
    proposed++;
    __real_hpct_dnn_propose(graph, mode, workspace_limit, most, out, count);
}

hpct_status __wrap_hpct_tune_choices(hpct_choices **out);
hpct_status __wrap_hpct_tune_choices(hpct_choices **out)
{
    *out = choices;
    return HPCT_OK;
}

/* Addresses that nobody reads. */
void *__wrap_hpct_tune_memory(size_t bytes);
void *__wrap_hpct_tune_memory(size_t bytes)
{
    (void) bytes;
    return (void *) (uintptr_t) 0x10000;
}

void __wrap_hpct_tune_release(void *memory);
void __wrap_hpct_tune_release(void *memory)
{
    (void) memory;
}

hpct_status __wrap_hpct_tune_time(hpct_status (*run)(void *argument), void *argument, double best,
                                  double *seconds);
hpct_status __wrap_hpct_tune_time(hpct_status (*run)(void *argument), void *argument, double best,
                                  double *seconds)
{
    (void) run;
    (void) argument;
    (void) best;
    *seconds = 1e-3 + 1e-6 * measured++; /* the first proposal is the fastest */
    return HPCT_OK;
}

/* Nothing is computed. */
hpct_status __wrap_hpct_proof_open(hpct_proof *proof, const hpct_dnn_graph *graph,
                                   void *const *pointers, void *memory);
hpct_status __wrap_hpct_proof_open(hpct_proof *proof, const hpct_dnn_graph *graph,
                                   void *const *pointers, void *memory)
{
    (void) graph;
    (void) pointers;
    (void) memory;
    *proof = (hpct_proof){0};
    return HPCT_OK;
}

/* Own kernels are not among what is looked at here. */
hpct_status __wrap_hpct_conv_take_small(const hpct_conv *conv, int n, bool backward, double besides,
                                        hpct_conv_stage *s);
hpct_status __wrap_hpct_conv_take_small(const hpct_conv *conv, int n, bool backward, double besides,
                                        hpct_conv_stage *s)
{
    (void) conv;
    (void) n;
    (void) backward;
    (void) besides;
    (void) s;
    return HPCT_OK;
}

#define LIMIT ((size_t) 1 << 30)

hpct_status __wrap_hpct_tune_workspace_limit(size_t *bytes);
hpct_status __wrap_hpct_tune_workspace_limit(size_t *bytes)
{
    *bytes = LIMIT;
    return HPCT_OK;
}

bool __real_hpct_dnn_candidate_make(const hpct_dnn_graph *graph, const char *name,
                                    size_t workspace_limit, hpct_dnn_candidate *out);
bool __wrap_hpct_dnn_candidate_make(const hpct_dnn_graph *graph, const char *name,
                                    size_t workspace_limit, hpct_dnn_candidate *out);
bool __wrap_hpct_dnn_candidate_make(const hpct_dnn_graph *graph, const char *name,
                                    size_t workspace_limit, hpct_dnn_candidate *out)
{
    made++;
    return __real_hpct_dnn_candidate_make(graph, name, workspace_limit, out);
}

hpct_status __real_hpct_dnn_take(hpct_dnn_plan **plan);
hpct_status __wrap_hpct_dnn_take(hpct_dnn_plan **plan);
hpct_status __wrap_hpct_dnn_take(hpct_dnn_plan **plan)
{
    hpct_status status = __real_hpct_dnn_take(plan);
    taken += *plan != NULL;
    return status;
}

/* ---- what was looked for, and found ---- */

#define MOST_KEYS 100 /* the first ones */
enum { FORWARD, DATA, WEIGHTS, FUSED, ADDED, LOOKED_FOR };

static struct {
    int asked[LOOKED_FOR], found[LOOKED_FOR];
    bool has[WEIGHTS + 1]; /* the convolution at hand */
    char key[MOST_KEYS][HPCT_DNN_KEY_SIZE];
    int keys;
} finds;

hpct_status __real_hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char *why);
hpct_status __wrap_hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char *why);
/* Graphs are freed there, so that what they were is asked before. */
hpct_status __wrap_hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char *why)
{
    const char *key = graph->key;
    int way = strstr(key, "convolution forward") != NULL ? FORWARD
              : strstr(key, "convolution data") != NULL  ? DATA
                                                         : WEIGHTS,
        what = strstr(key, " added") != NULL      ? ADDED
               : strstr(key, "pointwise") != NULL ? FUSED
                                                  : way;
    assert_int_equal(graph->status, HPCT_OK);
    if (finds.keys < MOST_KEYS)
        snprintf(finds.key[finds.keys++], HPCT_DNN_KEY_SIZE, "%s", key);
    hpct_status status = __real_hpct_dnn_find(out, graph, why);
    finds.asked[what]++;
    finds.found[what] += *out != NULL;
    finds.has[way] |= *out != NULL && what != ADDED;
    return status;
}

static int open_device(void **state)
{
    (void) state;
    assert_int_equal(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(__real_cudnnBackendSetAttribute(device,
                                                     CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                                     CUDNN_TYPE_CHAR, (int64_t) sizeof h100, h100),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnBackendFinalize(device), CUDNN_STATUS_SUCCESS);
    return 0;
}

static int close_device(void **state)
{
    (void) state;
    cudnnBackendDestroyDescriptor(device);
    return 0;
}

/* ---- the models ---- */

static hpct_model *builtin(const char *name)
{
    const hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    hpct_model *model;
    assert_int_equal(hpct_model_builtin(&model, name), HPCT_OK);
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &sgd),
                     HPCT_OK);
    return model;
}

static bool is_new(const hpct_model *model, int node)
{
    const hpct_op_spec *spec = &model->nodes[node].spec;
    for (int i = 0; i < node; i++) {
        const hpct_op_spec *other = &model->nodes[i].spec;
        if (other->kind == spec->kind && other->relu == spec->relu &&
            other->no_bias == spec->no_bias &&
            memcmp(&other->window, &spec->window, sizeof spec->window) == 0)
            return false;
    }
    return true;
}

/* Builds an operation of it, whose plans are then found or not. */
static void build_convolution(const char *name, const hpct_op_spec *spec,
                              const hpct_op_build *build)
{
    const hpct_window *w = &spec->window;
    hpct_op *op = NULL;
    memset(finds.has, 0, sizeof finds.has);
    assert_int_equal(hpct_cuda_make_conv2d(&op, spec, build), HPCT_OK);
    if (!finds.has[FORWARD] || !finds.has[WEIGHTS] || (build->needs_diff_src && !finds.has[DATA]))
        fail_msg(
            "%s, %s: cuDNN has no engine for a convolution %dx%dx%d to %dx%dx%d, kernel %dx%d, "
            "strides %d and %d, dilations %d and %d, %d groups: %s%s%s missing",
            name, hpct_precision_name(build->values), w->in_h, w->in_w, w->in_c, w->out_h, w->out_w,
            w->out_c, w->kernel_h, w->kernel_w, w->stride_h, w->stride_w, w->dilation_h,
            w->dilation_w, w->groups, finds.has[FORWARD] ? "" : "forward ",
            finds.has[DATA] ? "" : "data ", finds.has[WEIGHTS] ? "" : "weights ");
    op->class->destroy(op);
}

/* One for each convolution that is not like one before it; how many. */
static int build_convolutions(const char *name, hpct_precision values, int batch_size, bool adds)
{
    hpct_model *model = builtin(name);
    int count = 0;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_op_spec *spec = &model->nodes[i].spec;
        if (spec->kind != HPCT_OP_CONV2D || !is_new(model, i) ||
            (adds && (spec->relu || spec->no_bias)))
            continue;
        hpct_op_build build = {.precision = values,
                               .values = values,
                               .batch_sizes = &batch_size,
                               .num_batch_sizes = 1,
                               .training = true,
                               .needs_diff_src = count > 0, /* no picture has a gradient */
                               .shares_src = count > 0,
                               .adds = adds,
                               .adds_relu = adds};
        build_convolution(name, spec, &build);
        count++;
    }
    hpct_model_free(model);
    return count;
}

static const char *const models[] = {"mnist-cnn", "mnist-convnet", "resnet50", "resnet50v2"};
#define MODELS (sizeof models / sizeof *models)

/* None is left to the direct kernels, which are slow. */
static void every_convolution_has_engines(void **state)
{
    (void) state;
    use_new_gpu();
    assert_int_equal(hpct_choices_open(&choices, "", "a device"), HPCT_OK);
    for (int values = 0; values < HPCT_PRECISIONS; values++) {
        int count = 0;
        memset(&finds, 0, sizeof finds);
        for (size_t m = 0; m < MODELS; m++)
            count += build_convolutions(models[m], (hpct_precision) values, 64, false);
        print_message("# %s: %d convolutions; engines found for %d of %d graphs forward, %d of %d "
                      "data, %d of %d data added, %d of %d weights, %d of %d with bias or ReLU\n",
                      hpct_precision_name((hpct_precision) values), count, finds.found[FORWARD],
                      finds.asked[FORWARD], finds.found[DATA], finds.asked[DATA],
                      finds.found[ADDED], finds.asked[ADDED], finds.found[WEIGHTS],
                      finds.asked[WEIGHTS], finds.found[FUSED], finds.asked[FUSED]);
        assert_true(count > 40);
        assert_true(finds.asked[ADDED] > 40);
        assert_int_equal(finds.found[ADDED], finds.asked[ADDED]);
    }
    hpct_choices_close(choices);
}

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_uniform(7, 1, draws++) * (float) (high - low + 1));
}

/* One axis of a window: padding as Keras' "same" has it, or none. */
static void draw_axis(int kernel, int dilation, int stride, bool same, int *in, int *out, int *pad)
{
    int reach = hpct_window_reach(kernel, dilation);
    *in = pick(same ? 1 : reach, 40);
    *out = same ? (*in + stride - 1) / stride : (*in - reach) / stride + 1;
    int missing = same ? (*out - 1) * stride + reach - *in : 0;
    *pad = missing > 0 ? missing / 2 : 0;
}

/* Channels that no vector divides, groups, strides, holes, paddings that differ. */
static void drawn_convolutions_have_engines(void **state)
{
    (void) state;
    const int cases = unit_cases(15), batch_size = 32;
    use_new_gpu();
    assert_int_equal(hpct_choices_open(&choices, "", "a device"), HPCT_OK);
    for (int i = 0; i < cases; i++) {
        int groups = pick(0, 3) == 0 ? pick(2, 4) : 1, holes = pick(0, 3) == 0 ? 2 : 1;
        bool same = pick(0, 1) == 0;
        hpct_window w = {.in_c = groups * pick(1, 40),
                         .out_c = groups * pick(1, 40),
                         .kernel_h = pick(1, 5),
                         .kernel_w = pick(1, 5),
                         .stride_h = holes > 1 ? 1 : pick(1, 3),
                         .stride_w = holes > 1 ? 1 : pick(1, 3),
                         .dilation_h = holes,
                         .dilation_w = holes,
                         .groups = groups};
        draw_axis(w.kernel_h, holes, w.stride_h, same, &w.in_h, &w.out_h, &w.pad_top);
        draw_axis(w.kernel_w, holes, w.stride_w, same, &w.in_w, &w.out_w, &w.pad_left);
        hpct_op_spec spec = {.kind = HPCT_OP_CONV2D,
                             .window = w,
                             .relu = pick(0, 1) == 0,
                             .no_bias = pick(0, 1) == 0};
        for (int values = 0; values < HPCT_PRECISIONS; values++) {
            hpct_op_build build = {.precision = (hpct_precision) values,
                                   .values = (hpct_precision) values,
                                   .batch_sizes = &batch_size,
                                   .num_batch_sizes = 1,
                                   .training = true,
                                   .needs_diff_src = true};
            build_convolution("drawn", &spec, &build);
        }
    }
    hpct_choices_close(choices);
}

/* The sum with a bias, a shortcut and ReLU behind it is one engine's. (Without a bias it is one
 * that is compiled.) */
static void sums_are_in_the_engine(void **state)
{
    (void) state;
    use_new_gpu();
    assert_int_equal(hpct_choices_open(&choices, "", "a device"), HPCT_OK);
    for (int values = 0; values < HPCT_PRECISIONS; values++) {
        memset(&finds, 0, sizeof finds);
        build_convolutions("resnet50v2", (hpct_precision) values, 64, true);
        print_message("# %s: engines found for %d of %d sums\n",
                      hpct_precision_name((hpct_precision) values), finds.found[FUSED],
                      finds.asked[FUSED]);
        assert_true(finds.asked[FUSED] > 5);
        assert_int_equal(finds.found[FUSED], finds.asked[FUSED]);
    }
    hpct_choices_close(choices);
}

/* As if an earlier run had found another cuDNN's engines for each graph. */
static void keep_others(void)
{
    for (int i = 0; i < finds.keys; i++)
        assert_int_equal(hpct_choices_keep(choices, finds.key[i], "1000 e9999 k2=4"), HPCT_OK);
}

/* Names that were written are made plans of again: nothing is asked for or measured, not even where
 * there was nothing, and none is made but of what is taken. Others are looked for anew. */
static void choices_are_made_again(void **state)
{
    (void) state;
    char path[] = "/tmp/hpct-dnn-XXXXXX";
    int file = mkstemp(path), count;
    assert_true(file >= 0);
    close(file);
    for (int round = 0; round < 3; round++) {
        use_new_gpu();
        assert_int_equal(hpct_choices_open(&choices, path, "a device"), HPCT_OK);
        if (round == 2)
            keep_others();
        measured = proposed = made = taken = 0;
        memset(&finds, 0, sizeof finds);
        count = build_convolutions("mnist-convnet", HPCT_FP16, 64, false);
        assert_int_equal(hpct_choices_write(choices), HPCT_OK);
        hpct_choices_close(choices);
        print_message("# round %d: asked %d times, measured %d plans, made %d of kept names\n",
                      round, proposed, measured, made);
        assert_int_equal(taken, 3 * count - 1); /* the first has no gradient of its source */
        if (round == 0)
            assert_true(measured > 5);
        else if (round == 1)
            assert_true(proposed == 0 && measured == 0 && made == taken);
        else
            assert_true(made > taken && measured > 5);
    }
    unlink(path);
}

static void skips(void **state)
{
    (void) state;
    print_message("# cuDNN takes descriptions of devices from 9.11 on\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest none[] = {cmocka_unit_test(skips)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_convolution_has_engines),
        cmocka_unit_test(drawn_convolutions_have_engines),
        cmocka_unit_test(sums_are_in_the_engine),
        cmocka_unit_test(choices_are_made_again),
    };
    if (cudnnGetVersion() < 91100 || CUDNN_VERSION < 91100)
        return cmocka_run_group_tests(none, NULL, NULL);
    return cmocka_run_group_tests(tests, open_device, close_device);
}
