/* Branches: gradients that are sums, and the memory they share, over drawn graphs; joins; names;
 * what leads nowhere. */
#include "nn/backend/cpu/backend.h"
#include "nn/graph/rng.h"
#include "nn/run/run.h"
#include "nn/run/step.h"
#include "tests/unit/nn/nn_case.h"
#include "tests/unit/unit.h"

#include <math.h>

#define MAX_TENSORS 64
#define BATCH 3

static uint64_t draws;

static int pick(int low, int high)
{
    return low + (int) (hpct_graph_uniform(5, 9, draws++) * (float) (high - low + 1));
}

static void compile(hpct_model *model)
{
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    if (hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd) !=
        HPCT_OK)
        fail_msg("%s", hpct_last_error());
    assert_int_equal(hpct_model_initialize(model, 3), HPCT_OK);
}

static void build(hpct_model *model, const char *backend)
{
    int batch = BATCH;
    hpct_run_build_options options = {
        .backend = backend, .batch_sizes = &batch, .num_batch_sizes = 1};
    if (hpct_model_build(model, &options) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
}

/* ---- a step with memory for every tensor, gradients always added one by one ---- */

typedef struct plain {
    float *value[MAX_TENSORS], *diff[MAX_TENSORS]; /* by root */
} plain;

static int root_of(const hpct_model *model, int tensor)
{
    return model->tensors[tensor].root;
}

static size_t floats_of(const hpct_model *model, int tensor)
{
    return hpct_graph_shape_count(&model->tensors[tensor].shape) * BATCH;
}

static void plain_forward(const hpct_model *model, plain *p)
{
    p->value[0] = hpct_model_input((hpct_model *) (uintptr_t) model);
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        const hpct_run_node *built = &model->run->nodes[i];
        const float *src[HPCT_GRAPH_NODE_MAX_INPUTS];
        for (int k = 0; k < node->num_inputs; k++)
            src[k] = p->value[root_of(model, node->inputs[k])];
        hpct_op_call call = {.n = BATCH,
                             .src = src,
                             .dst = p->value[node->output],
                             .param = built->param,
                             .scratch = model->run->plan.scratch,
                             .workspace = built->workspace,
                             .training = true};
        assert_int_equal(built->op->class->forward(built->op, &call), HPCT_OK);
    }
}

/* `grad` takes the place of the gradient arena. */
static void plain_backward(const hpct_model *model, plain *p, float *grad)
{
    float *part = hpct_backend_host_allocate(1 << 20);
    for (int i = model->num_nodes - 1; i >= 0; i--) {
        const hpct_graph_node *node = &model->nodes[i];
        const hpct_run_node *built = &model->run->nodes[i];
        float *grads[HPCT_OP_MAX_PARAMS] = {NULL};
        const float *src[HPCT_GRAPH_NODE_MAX_INPUTS];
        float *diff_src[HPCT_GRAPH_NODE_MAX_INPUTS] = {NULL}, *diff_dst = p->diff[node->output];
        bool add[HPCT_GRAPH_NODE_MAX_INPUTS] = {false};
        if (!built->backward)
            continue;
        for (int k = 0; k < node->num_params; k++)
            grads[k] = model->params[node->first_param + k].state
                           ? NULL
                           : grad + model->run->arenas.param_offsets[node->first_param + k];
        size_t at = 0;
        for (int k = 0; k < node->num_inputs; k++) {
            src[k] = p->value[root_of(model, node->inputs[k])];
            if (model->run->requires_grad[root_of(model, node->inputs[k])])
                diff_src[k] = part + at;
            at += floats_of(model, node->inputs[k]);
        }
        hpct_op_call call = {.n = BATCH,
                             .src = src,
                             .dst = p->value[node->output],
                             .diff_dst = diff_dst,
                             .diff_src = diff_src,
                             .add = add,
                             .param = built->param,
                             .grad = grads,
                             .scratch = model->run->plan.scratch,
                             .workspace = built->workspace};
        assert_int_equal(built->op->class->backward(built->op, &call), HPCT_OK);
        for (int k = 0; k < node->num_inputs; k++) {
            float *sum = p->diff[root_of(model, node->inputs[k])];
            for (size_t j = 0; diff_src[k] != NULL && j < floats_of(model, node->inputs[k]); j++)
                sum[j] += diff_src[k][j];
        }
    }
    hpct_backend_host_release(part);
}

/* Sums in another order: a rounding error of the largest numbers, or of those that went into it
 * where they cancel out (the gradient of a bias before a normalization is zero). */
static bool is_rounding(const float *got, const float *expected, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs((double) expected[i]));
    return nn_difference(got, expected, count) * largest <= 2e-5 * largest + 1e-5;
}

/* The model's own step against the plain one, both with the backend's operations. Every buffer is
 * NaN before the model's own. */
static void check_gradients(hpct_model *model)
{
    plain p = {.value = {NULL}};
    hpct_backend_batch_sums sums, expected_sums;
    hpct_run *run = model->run;
    int classes = run->loss.classes, loss = root_of(model, run->loss.tensor);
    assert_true(model->num_tensors <= MAX_TENSORS);
    hpct_shape shape = hpct_model_input_shape(model);
    float *input = hpct_model_input(model);
    for (size_t i = 0; i < BATCH * hpct_graph_shape_count(&shape); i++)
        input[i] = hpct_graph_uniform(draws, 3, i) - 0.5f;
    for (int s = 0; s < BATCH; s++)
        run->input.labels[s] = pick(0, classes - 1);
    for (int t = 1; t < model->num_tensors; t++) {
        p.value[t] = hpct_backend_host_allocate(floats_of(model, t) * sizeof(float));
        p.diff[t] = hpct_backend_host_allocate(floats_of(model, t) * sizeof(float));
    }
    float *kept = hpct_backend_host_allocate(run->arenas.state_floats * sizeof *kept);
    memcpy(kept, run->arenas.states, run->arenas.state_floats * sizeof *kept);
    plain_forward(model, &p);
    memcpy(run->arenas.states, kept, run->arenas.state_floats * sizeof *kept);
    hpct_backend_host_release(kept);
    hpct_backend_loss_call call = {.form = run->loss.form,
                                   .n = BATCH,
                                   .classes = classes,
                                   .src = p.value[loss],
                                   .labels = run->input.labels,
                                   .scale = 1,
                                   .diff_src = p.diff[loss],
                                   .sums = &expected_sums};
    assert_int_equal(run->backend->loss(&call), HPCT_OK);
    float *expected = hpct_backend_host_allocate(run->arenas.floats * sizeof *expected);
    plain_backward(model, &p, expected);

    memset(run->plan.block, 0xff, run->plan.block_bytes);
    assert_int_equal(hpct_model_forward(model, BATCH, true), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, BATCH, 1, &sums), HPCT_OK);
    assert_true(sums.loss == expected_sums.loss);
    assert_int_equal(hpct_model_backward(model, BATCH), HPCT_OK);
    for (int i = 0; i < model->num_params; i++) {
        if (model->params[i].state)
            continue;
        size_t at = run->arenas.param_offsets[i],
               count = hpct_graph_shape_count(&model->params[i].shape);
        if (!is_rounding(run->arenas.gradients + at, expected + at, count))
            fail_msg("%s on %s: gradient %g, not %g", model->params[i].name, run->backend->name,
                     (double) run->arenas.gradients[at], (double) expected[at]);
    }
    for (int t = 1; t < model->num_tensors; t++) {
        hpct_backend_host_release(p.value[t]);
        hpct_backend_host_release(p.diff[t]);
    }
    hpct_backend_host_release(expected);
}

/* ---- drawn graphs ---- */

static bool same_shape(const hpct_model *model, int a, int b)
{
    const hpct_shape *x = &model->tensors[a].shape, *y = &model->tensors[b].shape;
    return x->size[0] == y->size[0] && x->size[1] == y->size[1] && x->size[2] == y->size[2];
}

static void draw_add(hpct_model *model, const int *heads, int num)
{
    int chosen[4] = {heads[pick(0, num - 1)]}, count = 1, wanted = pick(2, 4);
    for (int tries = 0; tries < 20 && count < wanted; tries++) {
        int other = heads[pick(0, num - 1)];
        if (same_shape(model, other, chosen[0]))
            chosen[count++] = other;
    }
    if (count > 1)
        hpct_model_add_add(model, chosen, count);
    else
        hpct_model_add_activation(model, HPCT_RELU);
}

/* With `blocks` most convolutions have as many filters as a block of channels. Few have half as
 * many: what these read and write has no blocks, nor then what is joined with it. */
static int draw_filters(bool blocks)
{
    if (!blocks)
        return pick(3, 4);
    return pick(0, 7) == 0 ? HPCT_GRAPH_CHANNEL_BLOCK / 2 : HPCT_GRAPH_CHANNEL_BLOCK;
}

static void draw_layer(hpct_model *model, const int *heads, int num, bool blocks)
{
    int window = pick(1, 2);
    hpct_model_set_head(model, heads[pick(num > 3 ? num - 3 : 0, num - 1)]);
    switch (pick(0, 8)) {
    case 0:
    case 1:
        hpct_model_add_conv2d(model,
                              &(hpct_conv2d){.filters = draw_filters(blocks),
                                             .kernel = {window, window},
                                             .padding = HPCT_SAME,
                                             .activation = pick(0, 1) ? HPCT_RELU : HPCT_LINEAR});
        break;
    case 2:
        hpct_model_add_max_pool2d(
            model, &(hpct_max_pool2d){.pool = {2, 2}, .strides = {1, 1}, .padding = HPCT_SAME});
        break;
    case 3:
        hpct_model_add_activation(model, pick(0, 3) == 0 ? HPCT_LINEAR : HPCT_RELU);
        break;
    case 4:
        hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
        if (pick(0, 1) == 1)
            hpct_model_add_activation(model, HPCT_RELU);
        break;
    case 5:
        hpct_model_add_zero_padding2d(model, &(hpct_zero_padding2d){{{1, 0}, {0, 1}}});
        hpct_model_add_conv2d(
            model,
            &(hpct_conv2d){.filters = blocks ? HPCT_GRAPH_CHANNEL_BLOCK : 3, .kernel = {2, 2}});
        break;
    case 6:
        hpct_model_add_concatenate(model, (int[]){heads[pick(0, num - 1)], hpct_model_head(model)},
                                   2);
        break;
    default:
        draw_add(model, heads, num);
    }
}

/* All that has no reader is joined in the end. The pictures of one that is drawn for blocks lie
 * between two normalizations, which are the borders of those. */
static hpct_model *draw_model(bool blocks)
{
    int heads[MAX_TENSORS] = {0}, num = 1, open[MAX_TENSORS], num_open = 0;
    hpct_model *model =
        hpct_model_new("drawn", HPCT_SHAPE(4, 4, blocks ? HPCT_GRAPH_CHANNEL_BLOCK : 3));
    int layers = pick(1, 16);
    if (blocks) {
        hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
        heads[0] = hpct_model_head(model);
    }
    for (int i = 0; i < layers; i++) {
        draw_layer(model, heads, num, blocks);
        heads[num++] = hpct_model_head(model);
    }
    for (int t = 0; t < model->num_tensors; t++) {
        if (!model->tensors[t].read)
            open[num_open++] = t;
    }
    while (num_open > 1) {
        int count = num_open < HPCT_GRAPH_NODE_MAX_INPUTS ? num_open : HPCT_GRAPH_NODE_MAX_INPUTS;
        num_open -= count;
        hpct_model_add_concatenate(model, open + num_open, count);
        open[num_open++] = hpct_model_head(model);
    }
    hpct_model_set_head(model, open[0]);
    if (blocks)
        hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3});
    return model;
}

/* Both backends have the same outputs with the same weights and input. In check_gradients a layout
 * that two operations take differently is wrong on both sides alike; the reference has but one. */
static void check_outputs(hpct_model *model)
{
    enum { MOST = BATCH * 3 };
    float outputs[2][MOST];
    size_t count = BATCH * hpct_graph_shape_count(&model->tensors[model->output].shape);
    assert_true(count <= MOST);
    for (int b = 0; b < 2; b++) {
        build(model, b == 0 ? "ref" : "cpu");
        hpct_shape shape = hpct_model_input_shape(model);
        float *input = hpct_model_input(model);
        for (size_t i = 0; i < BATCH * hpct_graph_shape_count(&shape); i++)
            input[i] = hpct_graph_uniform(draws, 3, i) - 0.5f;
        assert_int_equal(hpct_model_forward(model, BATCH, true), HPCT_OK);
        memcpy(outputs[b], hpct_model_output(model), count * sizeof(float));
    }
    assert_true(nn_difference(outputs[1], outputs[0], count) <= 1e-4);
}

/* Operations that could have all pictures in blocks, but have none: the built ones of the cpu. */
static int count_kept_plain(const hpct_model *model)
{
    int kept = 0;
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        const hpct_shape *shape = &model->tensors[node->output].shape;
        bool can = hpct_cpu_backend.blocking(&node->spec, HPCT_FP32) == HPCT_BACKEND_BLOCKS_ALL &&
                   shape->rank == 3 && shape->size[2] % HPCT_GRAPH_CHANNEL_BLOCK == 0;
        kept += can && !model->run->nodes[i].op->spec.dst_blocks;
    }
    return kept;
}

TEST(drawn_graphs_have_right_gradients)
{
    int passed = 0, added = 0, added_after = 0, blocks = 0, borders = 0, kept = 0;
    for (int i = 0; i < unit_cases(120); i++) {
        hpct_model *model = draw_model(i % 4 == 1);
        compile(model);
        build(model, i % 2 == 0 ? "ref" : "cpu");
        check_gradients(model);
        if (i % 4 == 1) {
            check_outputs(model);
            kept += count_kept_plain(model);
        }
        for (int k = 0; k < model->num_nodes; k++) {
            const hpct_op_spec *spec = &model->run->nodes[k].op->spec;
            blocks += spec->src_blocks && spec->dst_blocks;
            borders += spec->src_blocks != spec->dst_blocks;
            for (int j = 0; j < model->nodes[k].num_inputs; j++) {
                passed += model->run->nodes[k].mode[j] == HPCT_RUN_DIFF_PASS;
                added += model->run->nodes[k].mode[j] == HPCT_RUN_DIFF_ADD;
                added_after += model->run->nodes[k].mode[j] == HPCT_RUN_DIFF_ADD_AFTER;
            }
        }
        hpct_model_free(model);
    }
    int least = unit_cases(20); /* it is not an empty test */
    assert_true(passed > least && added > least && added_after > least);
    print_message("with blocks %d, between both %d, without for a neighbour's sake %d\n", blocks,
                  borders, kept);
    if (hpct_cpu_backend.blocking(&(hpct_op_spec){.kind = HPCT_OP_RELU}, HPCT_FP32) !=
        HPCT_BACKEND_BLOCKS_NEVER)
        assert_true(blocks > 0 && borders > 0 && kept > 0);
}

/* ---- one residual block after the other ---- */

static void residual(hpct_model *model)
{
    int shortcut = hpct_model_head(model);
    hpct_conv2d conv = {.filters = 4, .kernel = {3, 3}, .padding = HPCT_SAME};
    hpct_model_add_conv2d(model, &conv);
    hpct_model_add_activation(model, HPCT_RELU);
    hpct_model_add_conv2d(model, &conv);
    hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
}

static size_t plan_of_residuals(int blocks, int *copies)
{
    hpct_model *model = hpct_model_new("residual", HPCT_SHAPE(8, 8, 4));
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 4, .kernel = {1, 1}});
    for (int i = 0; i < blocks; i++)
        residual(model);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3});
    compile(model);
    build(model, "cpu");
    check_gradients(model);
    *copies = 0;
    for (int i = 0; i < model->num_nodes; i++) {
        for (int k = 0; k < model->nodes[i].num_inputs && model->nodes[i].num_inputs > 1; k++)
            *copies += model->run->nodes[i].mode[k] != HPCT_RUN_DIFF_PASS;
    }
    size_t bytes = model->run->plan.block_bytes;
    hpct_model_free(model);
    return bytes;
}

TEST(residual_blocks_copy_no_gradient)
{
    int copies;
    size_t two = plan_of_residuals(2, &copies);
    assert_int_equal(copies, 0);
    size_t three = plan_of_residuals(3, &copies);
    assert_int_equal(copies, 0);
    /* one more block keeps four more activations for backward, and no more gradients */
    assert_true(three - two <= (size_t) 4 * BATCH * 8 * 8 * 4 * sizeof(float));
}

/* ---- fusing ---- */

static int count_nodes(const hpct_model *model, hpct_op_kind kind)
{
    int count = 0;
    for (int i = 0; i < model->num_nodes; i++)
        count += model->nodes[i].spec.kind == kind;
    return count;
}

/* Padding and ReLUs vanish where one operation reads or makes them, and only there. */
TEST(operations_are_fused)
{
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(5, 6, 3));
    hpct_model_add_zero_padding2d(m, &(hpct_zero_padding2d){{{1, 1}, {2, 0}}});
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 4, .kernel = {3, 3}, .no_bias = true});
    hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){0});
    int norm = hpct_model_head(m);
    hpct_model_add_activation(m, HPCT_RELU); /* the norm has another reader: not fused */
    hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){.no_scale = true});
    hpct_model_add_activation(m, HPCT_RELU); /* fused */
    hpct_model_add_add(m, (int[]){norm, hpct_model_head(m)}, 2);
    hpct_model_add_activation(m, HPCT_RELU); /* fused */
    hpct_model_add_zero_padding2d(m, &(hpct_zero_padding2d){{{3, 0}, {0, 0}}});
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 4, .kernel = {3, 3}}); /* too much padding */
    hpct_model_add_zero_padding2d(m, &(hpct_zero_padding2d){{{1, 1}, {1, 1}}}); /* a maximum's */
    hpct_model_add_max_pool2d(m, &(hpct_max_pool2d){.pool = {3, 3}, .strides = {2, 2}});
    hpct_model_add_zero_padding2d(m, &(hpct_zero_padding2d){{{1, 1}, {1, 1}}});
    hpct_model_add_max_pool2d(/* has cells around it that are not there, besides the zeros */
                              m, &(hpct_max_pool2d){
                                     .pool = {2, 2}, .strides = {2, 2}, .padding = HPCT_SAME});
    hpct_model_add_global_average_pool2d(m);
    hpct_model_add_dense(m, &(hpct_dense){.units = 3});
    for (int backend = 0; backend < 2; backend++) {
        compile(m);
        assert_int_equal(count_nodes(m, HPCT_OP_PAD2D), 2);
        assert_int_equal(count_nodes(m, HPCT_OP_RELU), 1);
        build(m, backend == 0 ? "ref" : "cpu");
        check_gradients(m);
    }
    assert_int_equal(m->num_layers, 16);
    assert_string_equal(m->layers[m->nodes[m->params[3].node].layer].name, "batch_normalization");
    assert_string_equal(m->params[3].name, "batch_normalization/moving_mean");
    assert_true(m->params[3].state && !m->params[2].state);
    assert_int_equal(hpct_model_count_parameters(m) - hpct_model_count_trainable(m), 16);
    hpct_model_free(m);
}

/* LayerScale is a convolution over one column of all cells, not over the image that is padded. */
TEST(padding_is_not_fused_to_a_layer_scale)
{
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(2, 2, 3));
    hpct_model_add_zero_padding2d(m, &(hpct_zero_padding2d){{{0, 0}, {0, 0}}});
    hpct_model_add_layer_scale(m, 2);
    hpct_model_add_flatten(m);
    compile(m);
    assert_int_equal(count_nodes(m, HPCT_OP_PAD2D), 1);
    for (int backend = 0; backend < 2; backend++) {
        build(m, backend == 0 ? "ref" : "cpu");
        for (int i = 0; i < BATCH * 12; i++)
            hpct_model_input(m)[i] = (float) i;
        assert_int_equal(hpct_model_forward(m, BATCH, false), HPCT_OK);
        for (int i = 0; i < BATCH * 12; i++)
            assert_true(hpct_model_output(m)[i] == 2 * (float) i);
    }
    hpct_model_free(m);
}

/* Moving statistics come from the batches, and are what inference takes. */
TEST(moving_statistics_are_keras)
{
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(2));
    hpct_model_add_batch_normalization(m, &(hpct_batch_normalization){.momentum = 0.75});
    compile(m);
    build(m, "cpu");
    const float x[BATCH * 2] = {1, 10, 2, 20, 6, 30};
    memcpy(hpct_model_input(m), x, sizeof x);
    size_t count;
    float *states = hpct_model_states(m, &count), values[2];
    assert_true(count >= 4 && states != NULL);
    assert_int_equal(hpct_model_forward(m, BATCH, true), HPCT_OK);
    assert_int_equal(hpct_run_param_get(m, 2, values), HPCT_OK);
    assert_true(fabsf(values[0] - 0.25f * 3) < 1e-6f && fabsf(values[1] - 0.25f * 20) < 1e-5f);
    assert_int_equal(hpct_run_param_get(m, 3, values), HPCT_OK); /* biased: 14/3 and 200/3 */
    assert_true(fabsf(values[0] - (0.75f + 0.25f * 14 / 3)) < 1e-6f);
    assert_true(fabsf(values[1] - (0.75f + 0.25f * 200 / 3)) < 1e-4f);
    assert_int_equal(hpct_model_forward(m, BATCH, false), HPCT_OK);
    float expected = (6 - 0.75f) / sqrtf(0.75f + 0.25f * 14 / 3 + 1e-3f);
    assert_true(fabsf(hpct_model_output(m)[4] - expected) < 1e-5f);
    hpct_backend_batch_sums sums;
    memset(hpct_model_labels(m), 0, BATCH * sizeof(int32_t));
    assert_int_equal(hpct_model_loss(m, BATCH, 1, &sums), HPCT_ERR_USAGE);
    assert_string_equal(hpct_last_error(), "model m: a gradient needs a forward for training");
    hpct_model_free(m);
}

/* ---- describing ---- */

TEST(joins_have_shapes_and_names)
{
    hpct_model *m = hpct_model_new("m", HPCT_SHAPE(2, 3, 4));
    assert_int_equal(hpct_model_head(m), 0);
    hpct_model_name_layer(m, "left");
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 5, .kernel = {1, 1}});
    int left = hpct_model_head(m);
    hpct_model_set_head(m, 0);
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 5, .kernel = {1, 1}});
    int right = hpct_model_head(m);
    hpct_model_add_add(m, (int[]){left, right}, 2);
    hpct_model_add_concatenate(m, (int[]){0, hpct_model_head(m), left}, 3);
    hpct_shape shape = hpct_model_output_shape(m);
    assert_true(shape.rank == 3 && shape.size[0] == 2 && shape.size[1] == 3 && shape.size[2] == 14);
    const char *names[] = {"left", "conv2d", "add", "concatenate"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(m->layers[i].name, names[i]);
    assert_string_equal(m->params[0].name, "left/kernel");
    assert_int_equal(m->layers[3].num_inputs, 3);
    assert_int_equal(m->layers[3].inputs[2], left);
    assert_int_equal(m->layers[0].tensor, left);
    hpct_model_free(m);
}

static void two_branches(hpct_model *m)
{
    hpct_model_add_conv2d(m, &(hpct_conv2d){.filters = 5, .kernel = {1, 1}});
    hpct_model_set_head(m, 0);
}
static void added_misfits(hpct_model *m)
{
    two_branches(m);
    hpct_model_add_add(m, (int[]){0, 1}, 2);
}
static void concatenated_misfits(hpct_model *m)
{
    hpct_model_add_flatten(m);
    hpct_model_add_concatenate(m, (int[]){0, hpct_model_head(m)}, 2);
}
static void lonely_add(hpct_model *m)
{
    hpct_model_add_add(m, (int[]){0}, 1);
}
static void unknown_tensor(hpct_model *m)
{
    hpct_model_add_add(m, (int[]){0, 7}, 2);
}
static void unknown_head(hpct_model *m)
{
    hpct_model_add_flatten(m);
    hpct_model_set_head(m, -1);
}
static void dead_branch(hpct_model *m)
{
    two_branches(m);
    hpct_model_add_flatten(m);
}
static void same_name(hpct_model *m)
{
    hpct_model_name_layer(m, "flatten");
    hpct_model_add_activation(m, HPCT_RELU);
    hpct_model_add_flatten(m);
}
static void empty_name(hpct_model *m)
{
    hpct_model_add_flatten(m);
    hpct_model_name_layer(m, "");
}

TEST(faults_are_named)
{
    static const struct {
        void (*describe)(hpct_model *);
        const char *message;
    } cases[] = {
        {added_misfits, "add: 2x3x4 and 2x3x5 cannot be added"},
        {concatenated_misfits, "concatenate: 2x3x4 and 24 cannot be concatenated"},
        {lonely_add, "add: it joins 2 to 8 tensors, not 1"},
        {unknown_tensor, "add: there is no tensor 7"},
        {unknown_head, "flatten: the layer after it cannot read tensor -1: there is none"},
        {dead_branch, "conv2d: nothing reads its output, which is not model m's"},
        {same_name, "flatten: there is a layer of this name already"},
        {empty_name, "flatten: the next layer's name \"\" must have 1 to 63 characters"},
    };
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hpct_model *m = hpct_model_new("m", HPCT_SHAPE(2, 3, 4));
        cases[i].describe(m);
        assert_int_equal(hpct_model_compile(m, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY, &sgd),
                         HPCT_ERR_USAGE);
        assert_string_equal(hpct_last_error(), cases[i].message);
        hpct_model_free(m);
    }
}
