/* Launches that were recorded: seeds, steps and rates come from the device's memory, whatever the
 * call said. */
#include "tests/gpu_without/kernels/cuda_backend.h"
#include "tests/unit/unit.h"

#include "nn/backend/cuda/ops.h"
#include "nn/backend/cuda/update.h"

#include <string.h>

#define COUNT 192

static hpct_cuda_moment now;

static void record(bool recording)
{
    hpct_cuda_gpu.now = &now;
    hpct_cuda_gpu.recording = recording;
}

static void drop(uint64_t seed, int64_t step, int64_t first, float *dst)
{
    static const float ones[COUNT] = {[0] = 1, [COUNT / 2] = 2, [COUNT - 1] = 3};
    hpct_op_spec spec = {.kind = HPCT_OP_DROPOUT, .rate = 0.5F, .dense = {.out = COUNT / 2}};
    int sizes[] = {2};
    hpct_op_build build = {.batch_sizes = sizes, .num_batch_sizes = 1, .stream = 7};
    float src[COUNT];
    hpct_op *op;
    for (int i = 0; i < COUNT; i++)
        src[i] = ones[i] + 1;
    assert_int_equal(hpct_cuda_make_own(&op, &spec, &build), HPCT_OK);
    hpct_op_call call = {.n = 2,
                         .src = (const float *[]){src},
                         .dst = dst,
                         .seed = seed,
                         .step = step,
                         .first_sample = first,
                         .training = true};
    assert_int_equal(op->class->forward(op, &call), HPCT_OK);
    op->class->destroy(op);
}

TEST(draws_are_those_of_the_moment)
{
    float called[COUNT], replayed[COUNT], other[COUNT];
    drop(5, 3, 2, called);
    drop(5, 4, 2, other);
    assert_memory_not_equal(called, other, sizeof called);
    assert_int_equal(
        hpct_cuda_launch_moment((hpct_cuda_moment){.seed = 5, .step = 3, .first_sample = 2}, &now),
        cudaSuccess);
    record(true);
    drop(99, 98, 97, replayed);
    record(false);
    assert_memory_equal(called, replayed, sizeof called);
}

typedef struct arenas {
    float param[COUNT], grad[COUNT], slots[2][COUNT];
} arenas;

static void update(hpct_optimizer_kind kind, float rate, float bias_1, float bias_2, arenas *to,
                   bool recording)
{
    hpct_backend_update_range ranges[] = {{.offset = 0, .count = 64, .adapt = true},
                                          {.offset = 64, .count = COUNT - 64, .adapt = false}};
    hpct_backend_update_call call = {.kind = kind,
                                     .learning_rate = rate,
                                     .weight_decay = 0.01F,
                                     .momentum = 0.9F,
                                     .epsilon = 1e-7F,
                                     .trust_coefficient = 0.001F,
                                     .mix_1 = 0.1F,
                                     .mix_2 = 0.01F,
                                     .bias_1 = bias_1,
                                     .bias_2 = bias_2,
                                     .grad_scale = 1,
                                     .param = to->param,
                                     .grad = to->grad,
                                     .slot = {to->slots[0], to->slots[1]},
                                     .ranges = ranges,
                                     .num_ranges = 2};
    for (int i = 0; i < COUNT; i++) {
        to->param[i] = 0.01F * (float) (i % 17) - 0.05F;
        to->grad[i] = 0.02F * (float) (i % 11) - 0.1F;
        to->slots[0][i] = 0.001F * (float) (i % 5);
        to->slots[1][i] = 0.002F * (float) (i % 3);
    }
    if (!recording) { /* what a replay then goes by */
        hpct_cuda_update_args args = hpct_cuda_update_args_of(&call);
        now = (hpct_cuda_moment){
            .rate = args.rate, .decay = args.decay, .bias_1 = args.bias_1, .bias_2 = args.bias_2};
    }
    record(recording);
    assert_int_equal(hpct_cuda_update(&call), HPCT_OK);
    record(false);
}

TEST(rates_are_those_of_the_moment)
{
    static arenas called, replayed, other;
    for (int kind = 0; kind < HPCT_OPTIMIZER_KINDS; kind++) {
        update((hpct_optimizer_kind) kind, 0.3F, 0.7F, 0.8F, &other, false);
        update((hpct_optimizer_kind) kind, 0.1F, 0.19F, 0.02F, &called, false);
        assert_memory_not_equal(called.param, other.param, sizeof called.param);
        update((hpct_optimizer_kind) kind, 0.3F, 0.7F, 0.8F, &replayed, true);
        assert_memory_equal(called.param, replayed.param, sizeof called.param);
        assert_memory_equal(called.slots, replayed.slots, sizeof called.slots);
    }
}

/* So that nothing is told between them. */
TEST(steps_of_one_rate_are_alike)
{
    for (int kind = 0; kind < HPCT_OPTIMIZER_KINDS; kind++) {
        hpct_backend_update_call first = {.kind = (hpct_optimizer_kind) kind,
                                          .learning_rate = 0.1F,
                                          .bias_1 = 0.1F,
                                          .bias_2 = 0.01F},
                                 second = first;
        second.bias_1 = 0.19F;
        second.bias_2 = 0.02F;
        hpct_cuda_update_args a = hpct_cuda_update_args_of(&first),
                              b = hpct_cuda_update_args_of(&second);
        bool alike = kind == HPCT_SGD || kind == HPCT_LARS || kind == HPCT_RMSPROP;
        assert_int_equal(a.rate == b.rate && a.bias_1 == b.bias_1 && a.bias_2 == b.bias_2, alike);
    }
}
