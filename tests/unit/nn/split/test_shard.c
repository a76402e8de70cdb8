/* Models in parts (nn/split/shard.h): drawn graphs, and what is known of others. */
#include "nn/backend/cpu/backend.h"
#include "nn/plan/run.h"
#include "tests/unit/nn/split/shard_models.h"
#include "tests/unit/nn/split/shard_parts.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

static void try_graphs(const char *backend, int seeds)
{
    int rows = 0, columns = 0, back = 0;
    bool adds;
    for (int seed = 0; seed < seeds; seed++) {
        shard_scenario s = {.backend = backend,
                            .make = shard_draw_model,
                            .seed = (uint64_t) seed,
                            .parts = 2 + seed % 3,
                            .samples = SHARD_SAMPLES,
                            .form = HPCT_SPLIT_SHARD_ROWS,
                            .fuse = seed % 2 == 0};
        shard_most_vectors = seed % 3 == 2 ? 4 : 0;
        rows += shard_try_parts(&s, &adds);
        s.form = HPCT_SPLIT_SHARD_COLUMNS;
        columns += shard_try_parts(&s, &adds);
        s.form = HPCT_SPLIT_SHARD_BACK;
        s.parts = 2 + seed % (SHARD_MOST_PARTS - 1);
        back += shard_try_parts(&s, &adds);
    }
    shard_most_vectors = 0;
    print_message("%s: %d graphs by rows, %d by columns, %d in their last layers, of %d\n", backend,
                  rows, columns, back, seeds);
    assert_true(rows > seeds / 4 && columns > seeds / 4 && back > seeds / 4);
}

TEST(test_ref)
{
    try_graphs("ref", getenv("HPC_TRAIN_LONG") != NULL ? 400 : unit_cases(24));
}

TEST(test_cpu)
{
    try_graphs("cpu", getenv("HPC_TRAIN_LONG") != NULL ? 400 : unit_cases(40));
}

TEST(test_two_splits)
{
    bool adds = false;
    for (int parts = 2; parts < 2 + unit_cases(2); parts++) {
        assert_true(shard_try_parts(&(shard_scenario){.backend = "cpu",
                                                      .make = shard_deep_model,
                                                      .seed = 1,
                                                      .parts = parts,
                                                      .samples = 1024,
                                                      .form = HPCT_SPLIT_SHARD_COLUMNS,
                                                      .fuse = true},
                                    &adds));
        assert_true(adds);
    }
}

TEST(test_dense_before)
{
    bool adds;
    assert_true(shard_try_parts(&(shard_scenario){.backend = "cpu",
                                                  .make = shard_narrow_model,
                                                  .seed = 1,
                                                  .parts = 3,
                                                  .samples = SHARD_SAMPLES,
                                                  .form = HPCT_SPLIT_SHARD_COLUMNS,
                                                  .fuse = true},
                                &adds));
}

/* By channels, every part of 16 would compute all vectors. */
TEST(test_cells)
{
    bool adds;
    for (int parts = 3; parts <= 4; parts++) {
        for (int seed = 0; seed < 4; seed++)
            assert_true(shard_try_parts(&(shard_scenario){.backend = seed < 2 ? "cpu" : "ref",
                                                          .make = shard_picture_model,
                                                          .seed = (uint64_t) seed,
                                                          .parts = parts,
                                                          .samples = 256,
                                                          .form = HPCT_SPLIT_SHARD_ROWS,
                                                          .fuse = true,
                                                          .cells = 42 / parts},
                                        &adds));
    }
}

TEST(test_separable)
{
    static const hpct_split_shard_form forms[] = {HPCT_SPLIT_SHARD_ROWS, HPCT_SPLIT_SHARD_COLUMNS,
                                                  HPCT_SPLIT_SHARD_BACK};
    bool adds;
    int split = 0;
    for (int seed = 0; seed < 24; seed++)
        split += shard_try_parts(&(shard_scenario){.backend = seed % 4 < 2 ? "cpu" : "ref",
                                                   .make = shard_separable_model,
                                                   .seed = (uint64_t) seed,
                                                   .parts = 2 + seed % 3,
                                                   .samples = SHARD_SAMPLES,
                                                   .form = forms[seed % 3],
                                                   .fuse = seed < 12},
                                 &adds);
    print_message("%d of 24 separable models\n", split);
    assert_true(split > 20);
}

TEST(test_blocks)
{
    bool adds = false;
    const hpct_op_spec wide = {
        .kind = HPCT_OP_CONV2D,
        .window = {.in_c = 16, .out_c = 16, .kernel_h = 1, .kernel_w = 1, .groups = 1}};
    bool blocks = hpct_cpu_backend.blocking(&wide, HPCT_FP32) == HPCT_BACKEND_BLOCKS_ALL;
    for (int seed = 0; seed < 12; seed++)
        assert_true(shard_try_parts(&(shard_scenario){.backend = "cpu",
                                                      .make = shard_deep_convolutions,
                                                      .seed = (uint64_t) seed,
                                                      .parts = 2 + seed % 3,
                                                      .samples = SHARD_SAMPLES,
                                                      .form = HPCT_SPLIT_SHARD_BACK,
                                                      .blocks = blocks && seed % 3 != 1},
                                    &adds));
    assert_true(adds);
}

/* Ranks whose processors want blocks and ranks whose do not agree on a plain layout, in which
 * nobody gathers blocks. */
TEST(test_plain)
{
    hpct_model *whole = shard_deep_convolutions(0);
    hpct_split_shard *shard = NULL;
    hpct_run_build_options options = shard_options_for("cpu", false);
    const hpct_split_shard_options part = {
        .parts = 2, .samples = SHARD_SAMPLES, .form = HPCT_SPLIT_SHARD_BACK};
    assert_int_equal(hpct_split_shard_open(&shard, whole, &part), HPCT_OK);
    whole->scaling.scale = 512;
    assert_int_equal(hpct_split_shard_take(shard, whole), HPCT_OK);
    assert_true(hpct_split_shard_model(shard)->scaling.scale == 512);
    assert_int_equal(hpct_model_build(hpct_split_shard_model(shard), &options), HPCT_OK);
    int blocks = shard_gathers_in_blocks(shard);
    uint64_t own = hpct_split_shard_fingerprint(shard);
    options.plain_layout = true;
    assert_int_equal(hpct_model_build(hpct_split_shard_model(shard), &options), HPCT_OK);
    assert_int_equal(shard_gathers_in_blocks(shard), 0);
    assert_true(blocks == 0 || hpct_split_shard_fingerprint(shard) != own);
    hpct_split_shard_close(shard);
    hpct_model_free(whole);
}

/* Norms of parameters of which each part has some, and of others, shorten what would be longer. */
TEST(test_clipping)
{
    bool adds;
    for (int i = 0; i < 4; i++) {
        shard_clipnorm = i < 2 ? 0.01 : 0;
        shard_global_clipnorm = i < 2 ? 0 : 0.02;
        for (int form = HPCT_SPLIT_SHARD_ROWS; form <= HPCT_SPLIT_SHARD_COLUMNS; form++)
            assert_true(shard_try_parts(&(shard_scenario){.backend = i % 2 == 0 ? "cpu" : "ref",
                                                          .make = shard_picture_model,
                                                          .parts = 3,
                                                          .samples = SHARD_SAMPLES,
                                                          .form = (hpct_split_shard_form) form},
                                        &adds));
    }
    shard_clipnorm = shard_global_clipnorm = 0;
}

/* ---- what cannot be ---- */

static hpct_status refused(int parts, hpct_split_shard_form form)
{
    hpct_model *model = hpct_model_new("small", HPCT_SHAPE(30));
    hpct_split_shard *shard = NULL;
    hpct_model_add_dense(model, &(hpct_dense){.units = 200, .activation = HPCT_RELU});
    hpct_model_add_dense(model, &(hpct_dense){.units = SHARD_CLASSES});
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                        &(hpct_optimizer){.learning_rate = 0.1}),
                     HPCT_OK);
    hpct_status status = hpct_split_shard_open(
        &shard, model,
        &(hpct_split_shard_options){
            .part = 1, .parts = parts, .samples = SHARD_SAMPLES, .form = form});
    hpct_split_shard_close(shard);
    hpct_model_free(model);
    return status;
}

TEST(test_refused)
{
    assert_int_equal(refused(2, HPCT_SPLIT_SHARD_COLUMNS), HPCT_OK);
    assert_int_equal(refused(201, HPCT_SPLIT_SHARD_AUTO), HPCT_ERR_CONFIG); /* 200 columns */
    assert_non_null(strstr(hpct_last_error(), "201 parts"));
    assert_int_equal(refused(1, HPCT_SPLIT_SHARD_AUTO), HPCT_ERR_USAGE);
}
