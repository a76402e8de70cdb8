/* Conv2D of every backend against the reference, with all that is fused into it. */
#include "tests/unit/nn/backend/ops_check.h"
#include "tests/unit/unit.h"

#include "nn/backend/norm_line.h"

#include <math.h>

TEST(conv2d_matches)
{
    for (int i = 0; i < unit_cases(150); i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 20, 40);
        c.fuse_update = i % 3 == 0;
        check_case(&c);
    }
}

/* Whose source others read, too: its gradient is added to theirs, if they have any. */
TEST(conv2d_adding_to_a_shared_gradient_matches)
{
    int cases = unit_cases(120), asked = 0;
    added = 0;
    for (int i = 0; i < cases; i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 20, 40);
        c.needs_diff_src = c.shares_src = true;
        c.add = i % 2 == 0;
        asked += c.add;
        check_case(&c);
    }
    print_message("%d of %d convolutions added to gradients\n", added, asked);
}

/* And what another operation made. */
TEST(conv2d_with_fused_add_matches)
{
    if (wanted() == NULL || wanted()->fuses == NULL)
        skip();
    for (int i = 0; i < unit_cases(100); i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 20, 40);
        c.spec.relu = false;
        c.adds = true;
        c.adds_relu = pick(0, 1) == 1;
        check_case(&c);
    }
}

/* Of one cell of one picture: what is added has the shape of a bias, besides which there is one. */
TEST(conv2d_of_one_cell_with_fused_add_matches)
{
    if (wanted() == NULL || wanted()->fuses == NULL)
        skip();
    for (int i = 0; i < 4; i++) {
        nn_case c = {
            .spec = {.kind = HPCT_OP_CONV2D,
                     .window = nn_window((int[]){3, 3, 8}, 16, (int[]){3, 3}, (int[]){1, 1}, false),
                     .no_bias = i / 2 == 1},
            .n = 1,
            .needs_diff_src = true,
            .adds = true,
            .adds_relu = i % 2 == 1};
        check_case(&c);
    }
}

TEST(conv2d_names_its_kernels)
{
    const hpct_backend *backend = wanted();
    int batch = 4;
    char text[160] = "";
    if (backend == NULL || backend->fuses == NULL)
        skip();
    hpct_op_spec spec = {.kind = HPCT_OP_CONV2D,
                         .window =
                             nn_window((int[]){9, 9, 8}, 16, (int[]){3, 3}, (int[]){2, 2}, true)};
    hpct_op_build build = {
        .batch_sizes = &batch, .num_batch_sizes = 1, .training = true, .needs_diff_src = true};
    hpct_op *op = NULL;
    assert_int_equal(backend->make_op(&op, &spec, &build), HPCT_OK);
    if (op->class->describe == NULL) /* not the module */
        print_message("it does not say\n");
    else
        op->class->describe(op, 0, text, sizeof text);
    print_message("forward, data, kernel: %s%s%s\n", text, op->slow != NULL ? "; slow: " : "",
                  op->slow != NULL ? op->slow : "");
    int engines = 0, own = 0;
    for (const char *at = text; *at != '\0'; at++) {
        engines += *at == 'e' && at[1] >= '0' && at[1] <= '9';
        own += strncmp(at, "own, direct", 11) == 0;
    }
    if (op->class->describe != NULL)
        assert_int_equal(engines + own, 3);
    assert_true((op->slow != NULL) == (own > 0 || strstr(text, "padded") != NULL));
    op->class->destroy(op);
}

static void bias_has_no_gradient(const nn_result *r)
{
    for (size_t k = 0; k < r->param_count[1] && r->num_params > 1; k++)
        assert_true(r->grad[1][k] == 0);
}

TEST(conv2d_leaves_its_bias_to_a_batch_norm)
{
    const hpct_backend *backend = wanted();
    int cases = unit_cases(60);
    if (backend == NULL || backend->fuses == NULL)
        skip();
    for (int i = 0; i < cases; i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 20, 40);
        c.spec.window.out_c = (c.spec.window.out_c + 7) / 8 * 8;
        c.spec.relu = false;
        c.leaves_bias = !c.spec.no_bias; /* as of what is normalized */
        c.values = i % 2 == 0 ? HPCT_BF16 : HPCT_FP16;
        c.precision = c.values;
        nn_result *r = nn_case_run(&c, backend, (uint64_t) i, NULL, 1);
        if (r == NULL)
            fail_msg("%s", hpct_last_error());
        bias_has_no_gradient(r);
        nn_result_free(r);
    }
}

/* Multiples of 16, where oneDNN's blocked kernels work. */
TEST(conv2d_of_16n_channels_matches)
{
    for (int i = 0; i < unit_cases(40); i++) {
        nn_case c = random_window_case(HPCT_OP_CONV2D, 1, 1);
        int in[3] = {c.spec.window.in_h, c.spec.window.in_w, 16 * pick(1, 3)};
        int kernel[2] = {c.spec.window.kernel_h, c.spec.window.kernel_w};
        int strides[2] = {c.spec.window.stride_h, c.spec.window.stride_w};
        c.spec.window = nn_window(in, 16 * pick(1, 4), kernel, strides, pick(0, 1) == 1);
        check_case(&c);
    }
}

/* Dilated and grouped ones, and depthwise ones, whose groups have one channel. */
TEST(grouped_and_dilated_conv2d_matches)
{
    for (int i = 0; i < unit_cases(40); i++) {
        nn_case c = {.n = pick(1, 5), .other_n = pick(0, 2) == 0 ? pick(1, 9) : 0};
        int kernel[2] = {pick(1, 4), pick(1, 4)}, strides[2] = {1, 1}, dilation[2] = {1, 1};
        int *apart = pick(0, 2) == 0 ? strides : dilation;
        apart[0] = pick(1, 3);
        apart[1] = pick(1, 3);
        int groups = pick(1, 3) == 1 ? 1 : pick(2, 20), each = pick(0, 2) == 0 ? 1 : pick(1, 17);
        int in[3] = {pick(hpct_graph_window_reach(kernel[0], dilation[0]), 14),
                     pick(hpct_graph_window_reach(kernel[1], dilation[1]), 14), groups * each};
        c.spec.kind = HPCT_OP_CONV2D;
        c.spec.window = nn_dilated_window(in, groups * pick(1, 4), kernel, strides, dilation,
                                          groups, pick(0, 1) == 1);
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 1) == 1;
        c.needs_diff_src = pick(0, 1) == 1;
        c.plain_layout = pick(0, 3) == 0;
        check_case(&c);
    }
}

/* First layers: few input channels, nothing to pass back. */
TEST(conv2d_of_few_input_channels_matches)
{
    for (int i = 0; i < unit_cases(60); i++) {
        int kernel[2] = {pick(1, 7), pick(1, 7)}, strides[2] = {pick(1, 2), pick(1, 2)};
        int in[3] = {pick(kernel[0], 20), pick(kernel[1], 30), pick(1, 4)};
        nn_case c = {.n = pick(1, 9), .other_n = pick(0, 1) * pick(1, 12)};
        c.spec.kind = HPCT_OP_CONV2D;
        c.spec.window = nn_window(in, 16 * pick(1, 5), kernel, strides, false);
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 1) == 1;
        check_case(&c);
    }
}

/* One column of results from windows that leave columns out, and strides above 2: oneDNN 3's kernel
 * for AMX is wrong there. */
TEST(conv2d_of_one_output_column_matches)
{
    for (int i = 0; i < unit_cases(60); i++) {
        nn_case c = {.n = pick(1, 5), .other_n = pick(0, 2) == 0 ? pick(1, 9) : 0};
        int kernel[2] = {pick(1, 5), pick(1, 5)}, strides[2] = {pick(1, 4), pick(2, 4)};
        int columns = pick(0, 1) == 0 ? 1 : pick(1, 9);
        int in[3] = {pick(kernel[0], 24), kernel[1] + (columns - 1) * strides[1], pick(5, 40)};
        c.spec.kind = HPCT_OP_CONV2D;
        c.spec.window = nn_window(in, pick(3, 40), kernel, strides, false);
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 1) == 1;
        assert_true(c.spec.window.out_w == columns);
        check_case(&c);
    }
}

/* Some of the output's cells alone, from any cell of a row to any. */
TEST(conv2d_of_some_output_cells_matches)
{
    for (int i = 0; i < unit_cases(60); i++) {
        nn_case c = {.n = pick(1, 5), .other_n = pick(0, 2) == 0 ? pick(1, 9) : 0};
        int kernel[2] = {pick(1, 4), pick(1, 4)}, strides[2] = {pick(1, 2), pick(1, 2)};
        int in[3] = {pick(kernel[0], 14), pick(kernel[1], 30), pick(1, 4)};
        hpct_graph_window *w = &c.spec.window;
        c.spec.kind = HPCT_OP_CONV2D;
        *w = nn_window(in, 16 * pick(1, 3), kernel, strides, false);
        w->first_cell = pick(0, w->out_h * w->out_w - 1);
        w->cells = pick(1, w->out_h * w->out_w - w->first_cell);
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 1) == 1;
        assert_true(hpct_graph_window_is_small(w));
        check_case(&c);
    }
}

TEST(both_16_bit_types_were_tried)
{
    values_of_16_bits_were_tried(unit_cases(400));
}
