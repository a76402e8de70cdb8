/* Dense and Conv2D in bf16: what is known of oneDNN's releases, and products of all inner sizes
 * against the reference. HPC_TRAIN_WITHOUT=unpadded makes all of them go the way round that the
 * table of known faults takes (products.t). */
#include "nn/backend/cpu/backend.h"
#include "tests/unit/nn/backend/ops_check.h"
#include "tests/unit/unit.h"

#include "nn/backend/cpu/shim.h"
#include "nn/backend/without.h"

#include <math.h>

static size_t depth(int version, bool amx, size_t k)
{
    return hpct_cpu_product_depth(&(hpct_cpu_onednn){.version = version, .amx = amx}, k);
}

TEST(one_more_is_known_for_2_6_to_2_7_3_and_3_0)
{
    const int bad[] = {20600, 20603, 20700, 20703, 30000, 30001},
              good[] = {20704, 20705, 30100, 30200, 30602};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(depth(bad[i], true, 63), 64);
        assert_int_equal(depth(bad[i], true, 95), 96);
        assert_int_equal(depth(bad[i], true, 1503), 1504);
        assert_int_equal(depth(bad[i], true, 31), 31);
        assert_int_equal(depth(bad[i], true, 62), 62);
        assert_int_equal(depth(bad[i], true, 64), 64);
        assert_int_equal(depth(bad[i], false, 63), 63);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(depth(good[i], true, 63), 63);
}

TEST(whole_tiles_are_known_for_3_7_to_3_14)
{
    const int bad[] = {30700, 30702, 30800, 31201, 31300, 31400, 31402};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(depth(bad[i], true, 33), 64);
        assert_int_equal(depth(bad[i], true, 63), 64);
        assert_int_equal(depth(bad[i], true, 784), 800);
        assert_int_equal(depth(bad[i], true, 1), 1);
        assert_int_equal(depth(bad[i], true, 31), 31);
        assert_int_equal(depth(bad[i], true, 32), 32);
        assert_int_equal(depth(bad[i], true, 128), 128);
        assert_int_equal(depth(bad[i], false, 784), 784);
    }
    assert_int_equal(depth(30602, true, 784), 784);
    assert_int_equal(depth(31500, true, 784), 784);
}

static bool is_bad(int version, const char *name, int inner, int stride, int out_w)
{
    hpct_cpu_conv_choice choice = {.name = name,
                                   .bf16 = true,
                                   .inner = inner,
                                   .in_c = 12,
                                   .in_w = 1,
                                   .out_c = 16,
                                   .out_w = out_w,
                                   .stride_h = stride,
                                   .stride_w = stride};
    return hpct_cpu_conv_is_known_bad(&(hpct_cpu_onednn){.version = version}, &choice);
}

TEST(implementations_of_convolutions_are_known)
{
    assert_true(is_bad(20603, "brgconv:avx512_core_bf16", 575, 1, 6));
    assert_true(is_bad(31201, "brg_conv_bwd_d:avx512_core_bf16", 7, 1, 6));
    assert_false(is_bad(20603, "brgconv:avx512_core_bf16", 576, 1, 6));
    assert_false(is_bad(20603, "jit_bf16:avx512_core_bf16", 575, 1, 6));
    assert_true(is_bad(20603, "jit_bf16:avx512_core_bf16", 0, 2, 1));
    assert_false(is_bad(20603, "jit_bf16:avx512_core_bf16", 0, 1, 1));
    assert_true(is_bad(20603, "jit_1x1:avx2", 12, 2, 6));
    assert_false(is_bad(20603, "jit_1x1:avx2", 12, 1, 6));
    assert_false(is_bad(20603, "jit_1x1:avx512_core", 12, 2, 6));
    assert_true(is_bad(30702, "brg_conv_fwd:avx512_core_amx", 12, 3, 6));
    assert_true(is_bad(30702, "brg_conv_fwd:avx512_core_amx", 12, 2, 1));
    assert_false(is_bad(30702, "brg_conv_fwd:avx512_core_amx", 12, 2, 6));
    assert_false(is_bad(20603, "brgconv:avx512_core_amx", 12, 3, 6));
}

static void skip_without_bf16(void)
{
    if (hpct_cpu_backend.check_precision(HPCT_BF16) == HPCT_OK)
        return;
    print_message("# not a processor with bf16\n");
    skip();
}

/* Of a picture narrower than the stride, at the last stage of a network for larger ones. */
TEST(narrow_pictures_match)
{
    skip_without_bf16();
    for (int i = 0; i < 24; i++) {
        int picture[3] = {i % 4 + 1, i % 2 + 1, 8 * (i % 3 + 1)}, kernel[2] = {3, 3},
            steps[2] = {2 + i % 2, 2 + i % 2};
        nn_case c = {.n = 1 + i % 3, .precision = HPCT_BF16, .needs_diff_src = true};
        c.spec.kind = HPCT_OP_CONV2D;
        c.spec.window = nn_window(picture, 16, kernel, steps, true);
        draws++; /* other numbers */
        check_case(&c);
    }
}

/* The inner sizes are `in` forward, `out` for the gradient of the source, `n` for the kernel's. */
static void check_dense(int n, int in, int out, bool fuse)
{
    nn_case c = {.n = n, .precision = HPCT_BF16, .needs_diff_src = true, .fuse_update = fuse};
    c.spec.kind = HPCT_OP_DENSE;
    c.spec.dense.rows = 1;
    c.spec.dense.in = in;
    c.spec.dense.out = out;
    draws++; /* other numbers */
    check_case(&c);
}

/* Shapes that end in SIGILL, or are wrong, with oneDNN 2.6.3 on AMX. */
TEST(inner_sizes_of_63_match)
{
    static const int shapes[][2] = {{142, 39}, {43, 73}, {65, 16},  {80, 100},
                                    {129, 7},  {144, 9}, {267, 50}, {43, 79}};
    skip_without_bf16();
    if (!hpct_cpu_shim_library().amx && !hpct_backend_without(HPCT_BACKEND_WITHOUT_UNPADDED)) {
        print_message("# not a processor with AMX, where these are known to go wrong\n");
        skip();
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_dense(63, shapes[i][0], shapes[i][1], i % 2 == 0);
        check_dense(shapes[i][0], 63, shapes[i][1], i % 2 == 0);
        check_dense(shapes[i][0], shapes[i][1], 63, i % 2 == 0);
    }
    check_dense(63, 63, 63, true);
}

/* One more, so that the kernels of two batch sizes, and zeros behind another number of rows, lie in
 * the same memory. */
static void check_random_dense(int k)
{
    nn_case c = {.n = pick(1, 150), .other_n = pick(0, 1) * pick(1, 150), .precision = HPCT_BF16};
    int *sides[] = {&c.n, &c.spec.dense.in, &c.spec.dense.out};
    c.spec.kind = HPCT_OP_DENSE;
    c.spec.relu = pick(0, 1) == 1;
    c.spec.no_bias = pick(0, 3) == 0;
    c.spec.dense.rows = pick(0, 5) == 0 ? 2 : 1;
    c.spec.dense.in = pick(1, 150);
    c.spec.dense.out = pick(1, 100);
    *sides[pick(0, 2)] = k;
    c.needs_diff_src = pick(0, 4) > 0;
    c.fuse_update = pick(0, 1) == 1;
    check_case(&c);
}

/* 1x1 with steps of 1 is a product, others are oneDNN's convolutions. */
static void check_random_conv2d(int k)
{
    int side = pick(0, 2) == 0 ? 3 : 1, step = pick(0, 3) == 0 ? 2 : 1, in[3], out = pick(1, 100),
        kernel[2] = {side, side}, strides[2] = {step, step};
    in[0] = pick(1, 9);
    in[1] = pick(1, 9);
    in[2] = pick(5, 100);
    *(pick(0, 1) == 0 ? &in[2] : &out) = k > 4 ? k : 5;
    nn_case c = {.n = pick(1, 3), .precision = HPCT_BF16, .needs_diff_src = pick(0, 4) > 0};
    c.spec.kind = HPCT_OP_CONV2D;
    c.spec.window = nn_window(in, out, kernel, strides, true);
    c.spec.relu = pick(0, 1) == 1;
    check_case(&c);
}

/* All inner sizes to 1500 in check-long; some of each remainder elsewhere. */
TEST(random_products_match)
{
    bool all = getenv("HPC_TRAIN_LONG") != NULL;
    int products = 0;
    skip_without_bf16();
    for (int k = 1; k <= 1500; k += all ? 1 : pick(1, 50)) {
        check_random_dense(k);
        if (all || products % 5 == 0)
            check_random_conv2d(k);
        products++;
    }
    print_message("# %d inner sizes to 1500\n", products);
}

/* ---- a NaN in one sample ---- */

static float *filled(size_t count, float value)
{
    float *memory = hpct_backend_host_allocate(count * sizeof *memory);
    assert_non_null(memory);
    for (size_t i = 0; i < count; i++)
        memory[i] = value;
    return memory;
}

static void *nans(size_t bytes)
{
    return memset(hpct_backend_host_allocate(bytes + 64), 0xff, bytes + 64);
}

static void forward(hpct_op *op, int batch, const float *src, float *kernel, float *dst)
{
    float bias[128] = {0}, *param[] = {kernel, bias};
    void *copies = nans(op->copies_bytes), *workspace = nans(op->workspace_bytes),
         *scratch = nans(op->scratch_bytes);
    hpct_op_call call = {.n = batch,
                         .src = (const float *const[]){src},
                         .dst = dst,
                         .param = param,
                         .copies = copies,
                         .workspace = workspace,
                         .scratch = scratch};
    if (op->class->refresh != NULL)
        assert_int_equal(op->class->refresh(op, &call), HPCT_OK);
    assert_int_equal(op->class->forward(op, &call), HPCT_OK);
    hpct_backend_host_release(copies);
    hpct_backend_host_release(workspace);
    hpct_backend_host_release(scratch);
}

/* All numbers are 1, and in one sample after the other NaN or infinite. */
static void check_samples(const hpct_op_spec *spec, int batch)
{
    size_t in = hpct_op_src_floats(spec, 0), out = hpct_op_dst_floats(spec);
    hpct_op_build build = {.precision = HPCT_BF16, .batch_sizes = &batch, .num_batch_sizes = 1};
    hpct_op *op;
    assert_int_equal(hpct_cpu_backend.make_op(&op, spec, &build), HPCT_OK);
    float *src = filled((size_t) batch * in, 1), *dst = filled((size_t) batch * out, 0),
          *kernel = filled(op->param_floats[HPCT_OP_KERNEL], 0),
          *keras = filled(hpct_op_param_floats(spec, HPCT_OP_KERNEL), 1),
          *clean = filled((size_t) batch * out, 0);
    assert_int_equal(hpct_op_import(op, HPCT_OP_KERNEL, keras, kernel), HPCT_OK);
    forward(op, batch, src, kernel, clean);
    for (int spoilt = 0; spoilt < batch; spoilt++) {
        for (size_t i = 0; i < in; i++)
            src[(size_t) spoilt * in + i] = spoilt % 2 == 0 ? NAN : INFINITY;
        forward(op, batch, src, kernel, dst);
        for (int s = 0; s < batch; s++) {
            bool same =
                memcmp(dst + (size_t) s * out, clean + (size_t) s * out, out * sizeof *dst) == 0;
            if (same == (s == spoilt))
                fail_msg("%d inputs: sample %d of %d is %s", (int) in, s, batch,
                         same ? "not spoilt by itself" : "spoilt by another");
        }
        for (size_t i = 0; i < in; i++)
            src[(size_t) spoilt * in + i] = 1;
    }
    hpct_backend_host_release(src);
    hpct_backend_host_release(dst);
    hpct_backend_host_release(kernel);
    hpct_backend_host_release(keras);
    hpct_backend_host_release(clean);
    op->class->destroy(op);
}

TEST(a_sample_spoils_no_other)
{
    const int in[] = {1, 5, 31, 33, 47, 48, 63, 64, 95, 784, 833};
    skip_without_bf16();
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        hpct_op_spec spec = {.kind = HPCT_OP_DENSE, .dense = {.rows = 1, .in = in[i], .out = 5}};
        check_samples(&spec, 48);
    }
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        for (int side = 1; side <= 5; side += 2) {
            int picture[3] = {4, 4, in[i]}, kernel[2] = {side, side}, steps[2] = {1, 1};
            hpct_op_spec spec = {.kind = HPCT_OP_CONV2D,
                                 .window = nn_window(picture, 5, kernel, steps, true)};
            check_samples(&spec, 3);
        }
    }
}
