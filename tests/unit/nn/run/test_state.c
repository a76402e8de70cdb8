/* nn/run/state: a model that receives another's state trains on with the same bits. */
#include "nn/plan/run.h"
#include "nn/run/state.h"
#include "tests/unit/nn/nn_small.h"

#define STEPS 9
#define CUT 3 /* with gradient accumulation in the middle of an update */

/* Copies the whole state. */
static void copy_state(const hpct_model *from, hpct_model *to)
{
    hpct_run_state_list list;
    double numbers[HPCT_RUN_STATE_NUMBERS];
    assert_int_equal(hpct_run_state_list_make(&list, from), HPCT_OK);
    float *floats = malloc(list.largest * sizeof *floats);
    for (int i = 0; i < list.count; i++) {
        const hpct_run_state_value *v = &list.values[i];
        assert_int_equal(hpct_run_state_get(from, v->param, v->slot, floats), HPCT_OK);
        assert_int_equal(hpct_run_state_put(to, v->param, v->slot, floats), HPCT_OK);
    }
    assert_int_equal(hpct_run_state_get_numbers(from, numbers), HPCT_OK);
    assert_int_equal(hpct_run_state_put_numbers(to, numbers), HPCT_OK);
    free(floats);
    hpct_run_state_list_free(&list);
}

TEST(state_continues_with_the_same_bits)
{
    for (int k = 0; k < SMALL_OPTIMIZERS; k++) {
        for (int built = 0; built < 2; built++) {
            hpct_model *a = small_ready_with(small_backend(), &small_optimizers[k]);
            hpct_model *b = small_ready_with(small_backend(), &small_optimizers[k]);
            for (uint32_t t = 0; t < CUT; t++)
                small_step(a, 8, t);
            small_step(b, 8, 77); /* its own state goes */
            if (!built)
                assert_int_equal(hpct_model_unbuild(b), HPCT_OK);
            copy_state(a, b);
            if (!built)
                small_build(b, (hpct_run_build_options){.backend = small_backend()});
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

TEST(values_have_names_and_kinds)
{
    const hpct_optimizer adam = {.kind = HPCT_ADAM, .gradient_accumulation_steps = 2};
    hpct_model *model = small_ready_with("ref", &adam);
    hpct_run_state_list list;
    int slots = 0, weights = 0, moving = 0;
    assert_int_equal(hpct_run_state_list_make(&list, model), HPCT_OK);
    for (int i = 0; i < list.count; i++) {
        const char *name = list.values[i].name;
        slots += strncmp(name, "optimizer/momentum/", 19) == 0 ||
                 strncmp(name, "optimizer/velocity/", 19) == 0 ||
                 strncmp(name, "optimizer/accumulated/", 22) == 0;
        weights += strncmp(name, "weights/", 8) == 0;
        moving += list.values[i].is_state;
        assert_true(list.values[i].count <= list.largest);
    }
    assert_int_equal(slots + weights, list.count);
    assert_int_equal(slots, 3 * (weights - moving));
    hpct_run_state_list_free(&list);
    hpct_model_free(model);
}

/* Of every trained parameter as many floats are left as it has values, and the rest stay 0. */
TEST(padding_is_marked)
{
    static const char *const backends[] = {"ref", "cpu"};
    for (int b = 0; b < 2; b++) {
        hpct_model *model = small_ready(backends[b], 0.9);
        size_t count, padding = 0;
        const float *weights = hpct_model_parameters(model, &count);
        uint32_t *bits = calloc(count / 32 + 1, sizeof *bits);
        bool any;
        for (uint32_t t = 0; t < 3; t++)
            small_step(model, 8, t);
        assert_int_equal(hpct_model_mark_padding(model, bits, &any), HPCT_OK);
        for (int i = 0; i < model->num_params; i++) {
            const hpct_graph_param *p = &model->params[i];
            size_t at = model->run->arenas.param_offsets[i], left = 0,
                   floats = model->run->nodes[p->node].op->param_floats[p->index];
            for (size_t k = at; k < at + floats && !p->state; k++) {
                bool marked = (bits[k / 32] >> k % 32 & 1) != 0;
                left += !marked;
                padding += marked;
                assert_true(!marked || weights[k] == 0);
            }
            assert_true(p->state || left == hpct_graph_shape_count(&p->shape));
        }
        assert_true(any == (padding > 0));
        if (b == 1)
            printf("# %zu of %zu floats are padding\n", padding, count);
        free(bits);
        hpct_model_free(model);
    }
}
