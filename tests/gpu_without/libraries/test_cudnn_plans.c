/* Convolutions of drawn sizes on a described H100, and choices that are kept: what the GPU module
 * asks cuDNN for, and what it asks no second time. (Those of models:
 * tests/gpu_without/cudnn_accepts.) */
#include "nn/backend/cuda/conv2d_parts.h"
#include "nn/backend/cuda/dnn_parts.h"
#include "nn/graph/graph.h"
#include "nn/graph/rng.h"
#include "tests/gpu_without/libraries/described_gpu.h"
#include "tests/unit/unit.h"

#include <unistd.h>

static hpct_cuda_choices *choices;
static int proposed, made, taken;

/* Each time another device: nothing is known of it but what the choices say. */
static void open_device(const char *path)
{
    assert_int_equal(hpct_cuda_choices_open(&choices, path, "a device"), HPCT_OK);
    assert_int_equal(described_gpu_open("sm_90_h100", choices), HPCT_OK);
}

static void close_device(void)
{
    hpct_cuda_choices_close(choices);
    described_gpu_close();
}

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

static struct {
    bool has[HPCT_DNN_WAYS]; /* the convolution at hand */
    char key[MOST_KEYS][HPCT_DNN_KEY_SIZE];
    int keys;
} finds;

hpct_status __real_hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char *why);
hpct_status __wrap_hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char *why);
/* Graphs are freed there, so that what they were is asked before. */
hpct_status __wrap_hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char *why)
{
    hpct_dnn_way way = graph->claim.way;
    assert_int_equal(graph->status, HPCT_OK);
    if (finds.keys < MOST_KEYS)
        snprintf(finds.key[finds.keys++], HPCT_DNN_KEY_SIZE, "%s", graph->key);
    hpct_status status = __real_hpct_dnn_find(out, graph, why);
    finds.has[way] |= *out != NULL;
    return status;
}

/* Builds an operation, whose plans are then found or not. */
static void build_convolution(const hpct_op_spec *spec, const hpct_op_build *build)
{
    const hpct_graph_window *w = &spec->window;
    hpct_op *op = NULL;
    memset(finds.has, 0, sizeof finds.has);
    assert_int_equal(hpct_cuda_make_conv2d(&op, spec, build), HPCT_OK);
    if (!finds.has[HPCT_DNN_FORWARD] || !finds.has[HPCT_DNN_WEIGHTS] ||
        (build->needs_diff_src && !finds.has[HPCT_DNN_DATA]))
        fail_msg("%s: cuDNN has no engine for a convolution %dx%dx%d to %dx%dx%d, kernel %dx%d, "
                 "strides %d and %d, dilations %d and %d, %d groups: %s%s%s missing",
                 hpct_precision_name(build->values), w->in_h, w->in_w, w->in_c, w->out_h, w->out_w,
                 w->out_c, w->kernel_h, w->kernel_w, w->stride_h, w->stride_w, w->dilation_h,
                 w->dilation_w, w->groups, finds.has[HPCT_DNN_FORWARD] ? "" : "forward ",
                 finds.has[HPCT_DNN_DATA] ? "" : "data ",
                 finds.has[HPCT_DNN_WEIGHTS] ? "" : "weights ");
    op->class->destroy(op);
}

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(7, 1, draws++) * (float) (high - low + 1));
}

/* One axis of a window: padding as Keras' "same" has it, or none. */
static void draw_axis(int kernel, int dilation, int stride, bool same, int *in, int *out, int *pad)
{
    int reach = hpct_graph_window_reach(kernel, dilation);
    *in = pick(same ? 1 : reach, 40);
    *out = same ? (*in + stride - 1) / stride : (*in - reach) / stride + 1;
    int missing = same ? (*out - 1) * stride + reach - *in : 0;
    *pad = missing > 0 ? missing / 2 : 0;
}

/* Channels that no vector divides, groups, strides, holes, paddings that differ. */
static void drawn_convolutions_have_engines(void **state)
{
    const int cases = unit_cases(15), batch_size = 32;
    open_device("");
    for (int i = 0; i < cases; i++) {
        int groups = pick(0, 3) == 0 ? pick(2, 4) : 1, holes = pick(0, 3) == 0 ? 2 : 1;
        bool same = pick(0, 1) == 0;
        hpct_graph_window w = {.in_c = groups * pick(1, 40),
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
            build_convolution(&spec, &build);
        }
    }
    close_device();
}

/* The two convolutions of MNIST's network; the first has no gradient of its source. */
static int build_some(void)
{
    static const hpct_graph_window windows[] = {{.in_h = 28,
                                                 .in_w = 28,
                                                 .in_c = 1,
                                                 .out_h = 24,
                                                 .out_w = 24,
                                                 .out_c = 32,
                                                 .kernel_h = 5,
                                                 .kernel_w = 5,
                                                 .stride_h = 1,
                                                 .stride_w = 1,
                                                 .dilation_h = 1,
                                                 .dilation_w = 1,
                                                 .groups = 1},
                                                {.in_h = 12,
                                                 .in_w = 12,
                                                 .in_c = 32,
                                                 .out_h = 8,
                                                 .out_w = 8,
                                                 .out_c = 64,
                                                 .kernel_h = 5,
                                                 .kernel_w = 5,
                                                 .stride_h = 1,
                                                 .stride_w = 1,
                                                 .dilation_h = 1,
                                                 .dilation_w = 1,
                                                 .groups = 1}};
    const int batch_size = 64;
    for (int i = 0; i < 2; i++) {
        hpct_op_spec spec = {.kind = HPCT_OP_CONV2D, .window = windows[i], .relu = true};
        hpct_op_build build = {.precision = HPCT_FP16,
                               .values = HPCT_FP16,
                               .batch_sizes = &batch_size,
                               .num_batch_sizes = 1,
                               .training = true,
                               .needs_diff_src = i > 0};
        build_convolution(&spec, &build);
    }
    return 2;
}

/* As if an earlier run had found another cuDNN's engines for each graph. */
static void keep_others(void)
{
    for (int i = 0; i < finds.keys; i++)
        assert_int_equal(hpct_cuda_choices_keep(choices, finds.key[i], "1000 e9999 k2=4"), HPCT_OK);
}

/* Names that were written are made plans of again: nothing is asked for or measured, and none is
 * made but of what is taken. Others are looked for anew. */
static void choices_are_made_again(void **state)
{
    char path[] = "/tmp/hpct-dnn-XXXXXX";
    int file = mkstemp(path), count;
    assert_true(file >= 0);
    close(file);
    for (int round = 0; round < 3; round++) {
        open_device(path);
        if (round == 2)
            keep_others();
        proposed = made = taken = described_gpu_measured = 0;
        memset(&finds, 0, sizeof finds);
        count = build_some();
        assert_int_equal(hpct_cuda_choices_write(choices), HPCT_OK);
        close_device();
        print_message("# round %d: asked %d times, measured %d plans, made %d of kept names\n",
                      round, proposed, described_gpu_measured, made);
        assert_int_equal(taken, 3 * count - 1); /* the first has no gradient of its source */
        if (round == 0)
            assert_true(described_gpu_measured > 5);
        else if (round == 1)
            assert_true(proposed == 0 && described_gpu_measured == 0 && made == taken);
        else
            assert_true(made > 0 && proposed > 0 && described_gpu_measured > 5);
    }
    unlink(path);
}

static void skips(void **state)
{
    print_message("# cuDNN takes descriptions of devices from 9.11 on\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest none[] = {cmocka_unit_test(skips)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_convolutions_have_engines),
        cmocka_unit_test(choices_are_made_again),
    };
    return described_gpu_supported() ? cmocka_run_group_tests(tests, NULL, NULL)
                                     : cmocka_run_group_tests(none, NULL, NULL);
}
