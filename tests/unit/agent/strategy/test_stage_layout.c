/* Who has which stage, and how many micro-batches a step is cut into. */
#include "agent/strategy/stage_layout.h"
#include "tests/unit/unit.h"

#include <hpctrain/hpctrain.h>

/* So many operations. */
static hpct_model *chain(int operations)
{
    hpct_model *model = hpct_model_new("chain", HPCT_SHAPE(8));
    for (int i = 0; i < operations; i++)
        hpct_model_add_dense(model, &(hpct_dense){.units = 8});
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                        &(hpct_optimizer){0}),
                     HPCT_OK);
    return model;
}

static void expect(const hpct_model *model, hpct_strategy_options options, int ranks, int samples,
                   hpct_strategy_stage_layout expected)
{
    hpct_strategy_stage_layout found;
    if (hpct_strategy_stage_layout_find(&found, model, &options, ranks, samples) != HPCT_OK)
        fail_msg("%d ranks: %s", ranks, hpct_last_error());
    assert_int_equal(found.stages, expected.stages);
    assert_int_equal(found.replicas, expected.replicas);
    assert_int_equal(found.micro_batches, expected.micro_batches);
}

TEST(ranks_become_stages_times_replicas)
{
    hpct_model *model = chain(6);
    hpct_strategy_options none = {0}, three = {.stages = 3}, cut = {.micro_batches = 9};
    expect(model, none, 1, 64, (hpct_strategy_stage_layout){1, 1, 1});
    expect(model, none, 4, 256, (hpct_strategy_stage_layout){4, 1, 16}); /* the first from 12 on */
    expect(model, none, 6, 240, (hpct_strategy_stage_layout){6, 1, 20});
    expect(model, none, 8, 240,
           (hpct_strategy_stage_layout){4, 2, 12}); /* no more than 6 operations */
    expect(model, three, 6, 64, (hpct_strategy_stage_layout){3, 2, 8});
    expect(model, cut, 2, 64, (hpct_strategy_stage_layout){2, 1, 9});
    hpct_model_free(model);
}

static void refuse(const hpct_model *model, hpct_strategy_options options, int ranks, int samples,
                   const char *message)
{
    hpct_strategy_stage_layout found;
    assert_int_equal(hpct_strategy_stage_layout_find(&found, model, &options, ranks, samples),
                     HPCT_ERR_CONFIG);
    if (strstr(hpct_last_error(), message) == NULL)
        fail_msg("'%s' instead of '%s'", hpct_last_error(), message);
}

TEST(impossible_combinations_are_refused)
{
    hpct_model *model = chain(6);
    refuse(model, (hpct_strategy_options){0}, 7, 64, "no divisor of 7 ranks");
    refuse(model, (hpct_strategy_options){.stages = 7}, 7, 64, "has 6 operations");
    refuse(model, (hpct_strategy_options){.stages = 4}, 6, 64, "6 ranks cannot share 4 stages");
    refuse(model, (hpct_strategy_options){.stages = 2, .micro_batches = 17}, 8, 64,
           "16 samples of a step");
    hpct_model_free(model);
}

/* The bubble is a fifth at most, wherever there are 4 samples for each piece. */
TEST(defaults_leave_little_idle)
{
    for (int stages = 2; stages <= 16; stages++) {
        for (int samples = 1; samples <= 1024; samples++) {
            int m = hpct_strategy_stage_layout_default(stages, samples), least = 4 * (stages - 1);
            assert_true(m >= 1 && (m == 1 || samples / m >= 4));
            assert_true(m <= 2 * least);
            if (samples >= 4 * least) {
                assert_true(5 * (stages - 1) <= m + stages - 1);
                for (int less = least; less < m; less++)
                    assert_true(samples % less != 0);
                assert_true(samples % m == 0 || m == least);
            }
        }
    }
}

TEST(pieces_and_what_is_in_flight)
{
    hpct_strategy_stage_layout layout = {.stages = 4, .replicas = 2, .micro_batches = 8};
    assert_int_equal(hpct_strategy_stage_layout_pieces(&layout, 64), 8);
    assert_int_equal(hpct_strategy_stage_layout_pieces(&layout, 11),
                     5); /* each replica has 5 samples */
    assert_int_equal(hpct_strategy_stage_layout_pieces(&layout, 1), 1);
    for (int stage = 0; stage < 4; stage++)
        assert_int_equal(hpct_strategy_stage_layout_in_flight(&layout, stage, 8), 4 - stage);
    assert_int_equal(hpct_strategy_stage_layout_in_flight(&layout, 0, 2), 2);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return unit_run(NULL, NULL);
}
