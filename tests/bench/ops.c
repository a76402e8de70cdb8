/* tests/bench/ops.c - forward and backward time of single operations on every backend, by the
 * driver that the unit tests compare them with (tests/unit/nn/nn_case.h).
 *
 *   ops [BACKEND [REPEAT]] */
#include "nn/backends/backends.h"
#include "tests/unit/nn/nn_case.h"

#include <stdlib.h>
#include <string.h>

#define CONV(NAME, N, H, W, C, OUT, KERNEL, STRIDE, SAME, DIFF)                                    \
    {                                                                                              \
        NAME, HPCT_OP_CONV2D, N, {H, W, C}, OUT, KERNEL, STRIDE, SAME, DIFF                        \
    }

static const struct {
    const char *name;
    hpct_op_kind kind;
    int n, in[3], out, kernel, stride;
    bool same, diff;
} cases[] = {
    CONV("mnist-cnn conv2d", 64, 28, 28, 1, 32, 3, 1, false, false),
    {"mnist-cnn dense", HPCT_OP_DENSE, 64, {21632, 0, 0}, 128, 0, 0, false, true},
    {"mnist-cnn dense_1", HPCT_OP_DENSE, 64, {128, 0, 0}, 10, 0, 0, false, true},
    CONV("mnist-convnet conv2d", 100, 28, 28, 1, 32, 5, 1, false, false),
    {"mnist-convnet max_pooling2d", HPCT_OP_MAX_POOL2D, 100, {24, 24, 32}, 32, 2, 2, false, true},
    CONV("mnist-convnet conv2d_1", 100, 12, 12, 32, 64, 5, 1, false, true),
    CONV("resnet50v2 conv1", 32, 134, 134, 3, 64, 7, 2, false, false),
    CONV("resnet50v2 32x32 64-64 3x3", 32, 32, 32, 64, 64, 3, 1, true, true),
    CONV("resnet50v2 32x32 64-256 1x1", 32, 32, 32, 64, 256, 1, 1, false, true),
    CONV("resnet50v2 32x32 256-64 1x1", 32, 32, 32, 256, 64, 1, 1, false, true),
    CONV("resnet50v2 32x32 64-64 3x3/2", 32, 34, 34, 64, 64, 3, 2, false, true),
    CONV("resnet50v2 16x16 128-128 3x3", 32, 16, 16, 128, 128, 3, 1, true, true),
    CONV("resnet50v2 16x16 128-512 1x1", 32, 16, 16, 128, 512, 1, 1, false, true),
    CONV("resnet50v2 16x16 512-128 1x1", 32, 16, 16, 512, 128, 1, 1, false, true),
    CONV("resnet50v2 8x8 256-256 3x3", 32, 8, 8, 256, 256, 3, 1, true, true),
    CONV("resnet50v2 8x8 1024-256 1x1", 32, 8, 8, 1024, 256, 1, 1, false, true),
    CONV("resnet50v2 4x4 512-512 3x3", 32, 4, 4, 512, 512, 3, 1, true, true),
    CONV("resnet50v2 4x4 512-2048 1x1", 32, 4, 4, 512, 2048, 1, 1, false, true),
};

static double flops(const nn_case *c)
{
    const hpct_graph_window *w = &c->spec.window;
    if (c->spec.kind == HPCT_OP_CONV2D)
        return 2.0 * c->n * w->out_h * w->out_w * w->out_c * w->kernel_h * w->kernel_w * w->in_c;
    if (c->spec.kind == HPCT_OP_DENSE)
        return 2.0 * c->n * c->spec.dense.in * c->spec.dense.out;
    return 0;
}

int main(int argc, char **argv)
{
    const hpct_backend *backend;
    int repeat = argc > 2 ? atoi(argv[2]) : 20;
    if (hpct_backend_find(&backend, argc > 1 ? argv[1] : "cpu") != HPCT_OK || repeat < 1) {
        fprintf(stderr, "ops: %s\n", hpct_last_error());
        return HPCT_ERR_USAGE;
    }
    printf("%-30s %12s %10s %12s %10s\n", "", "forward ms", "GFLOP/s", "backward ms", "GFLOP/s");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nn_case c = {.spec = {.kind = cases[i].kind, .relu = cases[i].kind != HPCT_OP_MAX_POOL2D},
                     .n = cases[i].n,
                     .needs_diff_src = cases[i].diff};
        if (cases[i].kind == HPCT_OP_DENSE) {
            c.spec.dense.rows = 1;
            c.spec.dense.in = cases[i].in[0];
            c.spec.dense.out = cases[i].out;
        } else {
            int kernel[2] = {cases[i].kernel, cases[i].kernel},
                strides[2] = {cases[i].stride, cases[i].stride};
            c.spec.window = nn_window(cases[i].in, cases[i].out, kernel, strides, cases[i].same);
        }
        nn_result *r = nn_case_run(&c, backend, 1, NULL, repeat);
        if (r == NULL) {
            fprintf(stderr, "ops: %s: %s\n", cases[i].name, hpct_last_error());
            return HPCT_ERR_INTERNAL;
        }
        double work = flops(&c) * 1e-9;
        printf("%-30s %12.3f %10.1f %12.3f %10.1f\n", cases[i].name, r->forward_seconds * 1e3,
               work / r->forward_seconds, r->backward_seconds * 1e3,
               work * (cases[i].diff ? 2 : 1) / r->backward_seconds);
        nn_result_free(r);
    }
    return 0;
}
