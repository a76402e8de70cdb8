/* Every operation but Conv2D, of every backend against the reference. With NN_OPS_ON_HOST the GPU's
 * kernels on the host. */
#include "tests/unit/nn/backend/ops_check.h"
#include "tests/unit/unit.h"

#include <math.h>

TEST(max_pool2d_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(120)); i++) {
        nn_case c = random_window_case(HPCT_OP_MAX_POOL2D, 40, 0);
        check_case(&c);
    }
}

TEST(average_pool2d_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(40)); i++) {
        nn_case c = random_window_case(HPCT_OP_AVERAGE_POOL2D, 40, 0);
        check_case(&c);
    }
}

TEST(max_pool2d_of_equal_values_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(40)); i++) {
        nn_case c = random_window_case(HPCT_OP_MAX_POOL2D, 40, 0);
        c.small_integers = 2;
        check_case(&c);
    }
}

TEST(dense_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(120)); i++) {
        nn_case c = {.n = pick(1, 70), .other_n = pick(0, 1) * pick(1, 70)};
        c.precision = pick_precision();
        c.spec.kind = HPCT_OP_DENSE;
        c.spec.relu = pick(0, 1) == 1;
        c.spec.no_bias = pick(0, 3) == 0;
        c.spec.dense.rows = pick(0, 3) == 0 ? pick(2, 4) : 1;
        c.spec.dense.in = i % 20 == 0 ? pick(4000, 9000) : pick(1, 300); /* block by block */
        c.spec.dense.out = pick(1, 70);
        c.needs_diff_src = pick(0, 1) == 1;
        c.fuse_update = pick(0, 1) == 1;
        check_case(&c);
    }
}

TEST(activations_match)
{
    static const hpct_op_kind kinds[] = {HPCT_OP_SOFTMAX,
                                         HPCT_GRAPH_ELEMENT_ROWS(HPCT_OP_OF_ELEMENT)};
    const int num = (int) (sizeof kinds / sizeof *kinds);
    for (int i = 0; i < unit_cases(nn_cases(110)); i++) {
        nn_case c = {.n = pick(1, 30),
                     .other_n = pick(0, 1) * pick(1, 30),
                     .needs_diff_src = true,
                     .small_integers = pick(0, 1) * 9}; /* 0 and 6 among them: ReLU6 bends there */
        c.spec.kind = kinds[i % num];
        c.spec.slope = (float) pick(-2, 3) / 4;
        c.spec.threshold = (float) pick(0, 1) / 2; /* between whole numbers: there it jumps */
        c.spec.most = pick(0, 1) == 0 ? INFINITY : 0.75f;
        c.spec.dense.rows = pick(1, 40);
        c.spec.dense.in = c.spec.dense.out = pick(1, 100);
        check_case(&c);
    }
}

TEST(add_and_concatenate_match)
{
    for (int i = 0; i < unit_cases(nn_cases(80)); i++) {
        nn_case c = {.n = pick(1, 30), .needs_diff_src = true, .add = pick(0, 1) == 1};
        bool round = pick(0, 1) == 1;
        c.spec.kind = i % 2 == 0 ? HPCT_OP_ADD : HPCT_OP_CONCATENATE;
        c.spec.relu = i % 2 == 0 && pick(0, 1) == 1;
        c.spec.join.rows = pick(1, 60);
        c.spec.join.count = pick(2, HPCT_GRAPH_NODE_MAX_INPUTS);
        for (int k = 0; k < c.spec.join.count; k++)
            c.spec.join.size[k] = i % 2 == 0 && k > 0 ? c.spec.join.size[0]
                                  : round             ? HPCT_GRAPH_CHANNEL_BLOCK * pick(1, 3)
                                                      : pick(1, 50);
        check_case(&c);
    }
}

TEST(multiply_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(60)); i++) {
        nn_case c = {.n = pick(1, 9), .needs_diff_src = true, .add = pick(0, 1) == 1};
        c.spec.kind = HPCT_OP_MULTIPLY;
        c.spec.join.rows = i % 10 == 0 ? pick(200, 300) : pick(1, 60);
        c.spec.join.count = 2;
        c.spec.join.size[0] = c.spec.join.size[1] = pick_channels(70);
        c.spec.join.broadcasts = i % 2 == 0;
        check_case(&c);
    }
}

TEST(normalization_and_prelu_match)
{
    for (int i = 0; i < unit_cases(nn_cases(60)); i++) {
        nn_case c = {.n = pick(1, 9), .needs_diff_src = pick(0, 3) > 0};
        c.add = c.needs_diff_src && pick(0, 1) == 1;
        c.spec.kind = i % 2 == 0 ? HPCT_OP_NORMALIZATION : HPCT_OP_PRELU;
        c.spec.line.given = i % 4 == 0;
        c.spec.line.shared = pick(0, 1) == 1;
        c.spec.line.rows = pick(1, 60);
        c.spec.line.channels = pick(1, c.spec.line.given ? HPCT_MAX_GIVEN : 70);
        for (int k = 0; k < HPCT_MAX_GIVEN; k++) {
            c.spec.line.mean[k] = (float) pick(-3, 3) / 4;
            c.spec.line.scale[k] = (float) pick(1, 8) / 4;
            c.spec.line.offset[k] = (float) pick(-3, 3) / 4;
        }
        check_case(&c);
    }
}

/* Random channels and rows, with and without gamma and beta. */
TEST(batch_norm_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(80)); i++) {
        nn_case c = {.n = pick(1, 20), .needs_diff_src = pick(0, 3) > 0};
        c.add = c.needs_diff_src && pick(0, 1) == 1;
        c.spec.kind = HPCT_OP_BATCH_NORM;
        c.spec.relu = pick(0, 1) == 1;
        c.spec.norm.rows = pick(0, 3) == 0 ? pick(2, 400) : pick(2, 50);
        c.spec.norm.channels = pick(0, 1) == 0 ? pick(1, 100) : 16 * pick(1, 12);
        c.spec.norm.no_scale = pick(0, 3) == 0;
        c.spec.norm.no_center = pick(0, 3) == 0;
        c.spec.norm.momentum = 0.9f;
        c.spec.norm.epsilon = 1e-3f;
        c.inference = c.forward_only = pick(0, 4) == 0;
        check_case(&c);
    }
}

/* Padding, and cropping, which is padding that is negative on some sides. */
TEST(pad2d_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(80)); i++) {
        bool crops = i % 2 == 1;
        nn_case c = {.n = pick(1, 9), .needs_diff_src = true, .add = pick(0, 1) == 1};
        hpct_graph_window *w = &c.spec.window;
        c.spec.kind = HPCT_OP_PAD2D;
        *w = (hpct_graph_window){.in_h = pick(crops ? 5 : 1, 9),
                                 .in_w = pick(crops ? 5 : 1, 9),
                                 .in_c = pick_channels(20),
                                 .kernel_h = 1,
                                 .kernel_w = 1,
                                 .stride_h = 1,
                                 .stride_w = 1,
                                 .dilation_h = 1,
                                 .dilation_w = 1,
                                 .pad_top = crops ? -pick(0, 2) : pick(0, 3),
                                 .pad_left = crops ? pick(-2, 1) : pick(0, 3),
                                 .groups = 1};
        w->out_h = w->in_h + w->pad_top + (crops ? -pick(0, 2) : pick(0, 3));
        w->out_w = w->in_w + w->pad_left + (crops ? -pick(0, 2) : pick(0, 3));
        w->out_c = w->in_c;
        check_case(&c);
    }
}

/* Layer normalization, and groups of channels over pictures; some larger than a warp's share. */
TEST(group_norm_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(80)); i++) {
        nn_case c = {.n = pick(1, 9), .needs_diff_src = pick(0, 3) > 0};
        bool layer = i % 2 == 0;
        c.add = c.needs_diff_src && pick(0, 1) == 1;
        c.spec.kind = HPCT_OP_GROUP_NORM;
        c.spec.group.rows = layer ? pick(1, 30) : 1;
        c.spec.group.groups = layer ? 1 : pick(1, 8);
        c.spec.group.cells = layer ? 1 : i % 20 == 1 ? pick(700, 900) : pick(1, 30);
        c.spec.group.channels = c.spec.group.groups * (layer                    ? pick(2, 300)
                                                       : c.spec.group.cells < 2 ? 7
                                                                                : pick(1, 40));
        c.spec.group.no_scale = pick(0, 3) == 0;
        c.spec.group.no_center = pick(0, 3) == 0;
        c.spec.group.epsilon = 1e-3f;
        c.inference = c.forward_only = pick(0, 4) == 0;
        check_case(&c);
    }
}

/* By the backend's Conv2D, of a window from the result to the source. */
TEST(conv2d_transpose_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(60)); i++) {
        int kernel[2] = {pick(1, 5), pick(1, 5)}, strides[2] = {pick(1, 3), pick(1, 3)};
        nn_case c = {.n = pick(1, 9), .other_n = pick(0, 1) * pick(1, 9)};
        c.needs_diff_src = pick(0, 3) > 0;
        c.plain_layout = pick(0, 1) == 1;
        c.inference = c.forward_only = pick(0, 4) == 0;
        c.spec.kind = HPCT_OP_CONV2D_TRANSPOSE;
        c.spec.no_bias = pick(0, 3) == 0;
        int in[3] = {pick(kernel[0], 9), pick(kernel[1], 9), pick_channels(20)};
        c.spec.window = nn_window(in, pick_channels(20), kernel, strides, pick(0, 1) == 1);
        check_case(&c);
    }
}

TEST(permute_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(40)); i++) {
        nn_case c = {.n = pick(1, 9), .needs_diff_src = true, .add = pick(0, 1) == 1};
        int rank = c.spec.permute.rank = pick(1, HPCT_MAX_RANK);
        c.spec.kind = HPCT_OP_PERMUTE;
        for (int k = 0; k < rank; k++) {
            int from = pick(0, k);
            c.spec.permute.size[k] = pick(1, 7);
            c.spec.permute.axes[k] = c.spec.permute.axes[from];
            c.spec.permute.axes[from] = k;
        }
        check_case(&c);
    }
}

/* Whole channels of a picture, and whole samples. */
TEST(dropout_of_rows_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(30)); i++) {
        nn_case c = {.n = pick(1, 30), .needs_diff_src = true, .inference = pick(0, 4) == 0};
        c.spec.kind = HPCT_OP_DROPOUT;
        c.spec.rate = pick(0, 10) == 0 ? 1 : pick(1, 9) / 10.0;
        c.spec.dense.rows = pick(2, 90);
        c.spec.dense.in = c.spec.dense.out = i % 2 == 0 ? 1 : pick(1, 200);
        check_case(&c);
    }
}

TEST(gaussian_noise_matches)
{
    for (int i = 0; i < unit_cases(nn_cases(20)); i++) {
        nn_case c = {.n = pick(1, 9), .needs_diff_src = true, .inference = pick(0, 4) == 0};
        c.add = pick(0, 1) == 1;
        c.spec.kind = HPCT_OP_GAUSSIAN_NOISE;
        c.spec.rate = pick(1, 20) / 10.0;
        c.spec.dense.rows = 1;
        c.spec.dense.in = c.spec.dense.out = pick(1, 500);
        check_case(&c);
    }
}

TEST(dropout_and_rescaling_match)
{
    for (int i = 0; i < unit_cases(nn_cases(40)); i++) {
        nn_case c = {.n = pick(1, 30), .needs_diff_src = true, .inference = pick(0, 4) == 0};
        c.spec.kind = i % 2 == 0 ? HPCT_OP_DROPOUT : HPCT_OP_RESCALING;
        c.spec.rate = pick(0, 10) == 0 ? 1 : pick(1, 9) / 10.0;
        c.spec.scale = (float) pick(1, 5) / 3;
        c.spec.offset = (float) pick(-2, 2);
        c.spec.dense.rows = 1;
        c.spec.dense.in = c.spec.dense.out = pick(1, 2000);
        check_case(&c);
    }
}

/* RANDOM_CROP has no backward. */
TEST(resizing_and_crop_match)
{
    for (int i = 0; i < unit_cases(nn_cases(40)); i++) {
        bool crops = i % 2 == 1, larger = pick(0, 1) == 1; /* only then a crop is drawn */
        nn_case c = {.n = pick(1, 9),
                     .needs_diff_src = !crops,
                     .forward_only = crops,
                     .inference = pick(0, 2) == 0};
        hpct_graph_picture *p = &c.spec.picture;
        c.spec.kind = crops ? HPCT_OP_RANDOM_CROP : HPCT_OP_RESIZING;
        *p = (hpct_graph_picture){.in_h = pick(1, 20), .in_w = pick(1, 20), .channels = pick(1, 5)};
        p->nearest = !crops && pick(0, 1) == 1;
        p->out_h = larger ? pick(1, p->in_h) : pick(1, 30);
        p->out_w = larger ? pick(1, p->in_w) : pick(1, 30);
        check_case(&c);
    }
}

static double pick_part(int low)
{
    return pick(low, 100) / 100.0;
}

/* There is no backward. Images of equal values too, whose contrast is 0. */
TEST(variations_match)
{
    for (int i = 0; i < unit_cases(144); i++) {
        nn_case c = {.n = pick(1, 9), .inference = pick(0, 9) == 0, .forward_only = true};
        hpct_graph_picture *p = &c.spec.picture;
        hpct_graph_variation *v = &p->variation;
        v->kind = (hpct_graph_variation_kind) (i % 6);
        c.spec.kind = v->kind == HPCT_GRAPH_VARY_FLIP      ? HPCT_OP_RANDOM_FLIP
                      : v->kind < HPCT_GRAPH_VARY_CONTRAST ? HPCT_OP_RANDOM_AFFINE
                                                           : HPCT_OP_RANDOM_TONE;
        v->horizontal = pick(0, 1) == 1;
        v->vertical = pick(0, 1) == 1;
        c.small_integers = pick(0, 9) == 0;
        p->in_h = p->out_h = i % 30 == 8 ? pick(80, 90) : pick(1, 20);
        p->in_w = p->out_w = pick(1, 20);
        p->channels = pick(1, 5);
        for (int k = 0; k < 2; k++) {
            v->low[k] = pick_part(-99);
            v->high[k] = v->low[k] + pick_part(0);
        }
        v->square = pick(0, 1) == 1;
        v->nearest = v->kind == HPCT_GRAPH_VARY_FLIP || pick(0, 3) == 0;
        v->fill = (hpct_fill_mode) pick(HPCT_FILL_REFLECT, HPCT_FILL_WRAP);
        v->fill_value = (float) pick_part(-100);
        v->least = -0.5f;
        v->most = 0.75f;
        check_case(&c);
    }
}

TEST(blocked_layouts_were_tried)
{
    blocks_were_tried(unit_cases(nn_cases(150)));
}

TEST(both_16_bit_types_were_tried)
{
    values_of_16_bits_were_tried(unit_cases(nn_cases(400)));
}
