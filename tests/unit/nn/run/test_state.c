/* nn/run/state: a model that receives another's state trains on with the same bits. */
#include "nn/plan/run.h"
#include "nn/run/state.h"
#include "tests/unit/nn/nn_small.h"

#define STEPS 9
#define CUT 3 /* with gradient accumulation in the middle of an update */

static void state_continues_with_the_same_bits(void **state)
{
    (void) state;
    for (int k = 0; k < SMALL_OPTIMIZERS; k++) {
        for (int built = 0; built < 2; built++) {
            hpct_state *saved = NULL;
            hpct_model *a = small_ready_with(small_backend(), &small_optimizers[k]);
            hpct_model *b = small_ready_with(small_backend(), &small_optimizers[k]);
            assert_int_equal(hpct_state_new(&saved, a, false), HPCT_OK);
            for (uint32_t t = 0; t < CUT; t++)
                small_step(a, 8, t);
            small_step(b, 8, 77); /* its own state goes */
            assert_int_equal(hpct_state_take(saved, a), HPCT_OK);
            if (!built)
                assert_int_equal(hpct_model_unbuild(b), HPCT_OK);
            assert_int_equal(hpct_state_put(saved, b), HPCT_OK);
            hpct_state_free(saved);
            if (!built)
                small_build(b, (hpct_build_options){.backend = small_backend()});
            for (uint32_t t = CUT; t < STEPS; t++) {
                double one = small_step(a, 8, t), two = small_step(b, 8, t);
                if (one != two)
                    fail_msg("optimizer %d, step %u: loss %.17g, continued %.17g", k, t, one, two);
            }
            assert_same_weights(a, b, 0);
            hpct_model_free(a);
            hpct_model_free(b);
        }
    }
}

static void tensors_have_names_and_kinds(void **state)
{
    (void) state;
    const hpct_optimizer adam = {.kind = HPCT_ADAM, .gradient_accumulation_steps = 2};
    hpct_model *model = small_ready_with("ref", &adam);
    hpct_state *all = NULL, *states = NULL;
    int slots = 0, weights = 0, moving = 0;
    assert_int_equal(hpct_state_new(&all, model, false), HPCT_OK);
    assert_int_equal(hpct_state_new(&states, model, true), HPCT_OK);
    for (int i = 0; i < all->num_tensors; i++) {
        const char *name = all->tensors[i].name;
        slots += strncmp(name, "optimizer/momentum/", 19) == 0 ||
                 strncmp(name, "optimizer/velocity/", 19) == 0 ||
                 strncmp(name, "optimizer/accumulated/", 22) == 0;
        weights += strncmp(name, "weights/", 8) == 0;
        moving += all->tensors[i].is_state;
    }
    assert_int_equal(slots + weights, all->num_tensors);
    assert_int_equal(slots, 3 * (weights - moving));
    assert_int_equal(states->num_tensors, moving);
    hpct_state_free(all);
    hpct_state_free(states);
    hpct_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_continues_with_the_same_bits),
        cmocka_unit_test(tensors_have_names_and_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
