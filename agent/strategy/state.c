/* What most strategies do alike. */
#include "agent/strategy/state.h"

#include "base/status.h"

hpct_model *hpct_strategy_model(const hpct_strategy *strategy, int k)
{
    const struct hpct_state_ops *ops = strategy->ops->state;
    if (ops != NULL && ops->model != NULL)
        return ops->model(strategy, k);
    return k == 0 ? strategy->model : NULL;
}

/* Work on one model, on its device. */
typedef struct visit {
    const hpct_state_value *value;
    float *taken;
    const float *given;
    const double *numbers;
} visit;

static hpct_status take_value(hpct_model *model, const visit *v)
{
    return hpct_state_get(model, v->value->param, v->value->slot, v->taken);
}

static hpct_status put_value(hpct_model *model, const visit *v)
{
    return hpct_state_put(model, v->value->param, v->value->slot, v->given);
}

static hpct_status put_numbers(hpct_model *model, const visit *v)
{
    return hpct_state_put_numbers(model, v->numbers);
}

/* The thread is back at the first model's device afterwards. */
static hpct_status visit_model(const hpct_strategy *strategy, int k, const visit *v,
                               hpct_status (*work)(hpct_model *, const visit *))
{
    const struct hpct_state_ops *ops = strategy->ops->state;
    hpct_model *model = hpct_strategy_model(strategy, k);
    if (ops->enter == NULL || k == 0)
        return work(model, v);
    HPCT_TRY(ops->enter(strategy, k));
    hpct_status status = work(model, v), back = ops->enter(strategy, 0);
    return status != HPCT_OK ? status : back;
}

hpct_status hpct_strategy_get(hpct_strategy *strategy, const hpct_state_value *value, int copy,
                              float *floats)
{
    const struct hpct_state_ops *ops = strategy->ops->state;
    const visit v = {.value = value, .taken = floats};
    return ops->get != NULL ? ops->get(strategy, value, copy, floats)
                            : visit_model(strategy, copy, &v, take_value);
}

hpct_status hpct_strategy_put(hpct_strategy *strategy, const hpct_state_value *value, int copy,
                              const float *floats)
{
    const struct hpct_state_ops *ops = strategy->ops->state;
    const visit v = {.value = value, .given = floats};
    if (ops->put != NULL)
        return ops->put(strategy, value, copy, floats);
    for (int k = 0; hpct_strategy_model(strategy, k) != NULL; k++) {
        if (copy == k || copy == HPCT_STATE_ALL)
            HPCT_TRY(visit_model(strategy, k, &v, put_value));
    }
    return HPCT_OK;
}

hpct_status hpct_strategy_get_numbers(hpct_strategy *strategy, double *numbers)
{
    return hpct_state_get_numbers(hpct_strategy_model(strategy, 0), numbers);
}

hpct_status hpct_strategy_put_numbers(hpct_strategy *strategy, const double *numbers)
{
    const visit v = {.numbers = numbers};
    for (int k = 0; hpct_strategy_model(strategy, k) != NULL; k++)
        HPCT_TRY(visit_model(strategy, k, &v, put_numbers));
    return HPCT_OK;
}

hpct_state_share hpct_state_equal(const hpct_state_value *value, bool first)
{
    return (hpct_state_share){.rows = first ? value->shape.size[0] : 0};
}

hpct_state_share hpct_state_own(const hpct_state_value *value, int copies, bool first)
{
    bool adds = value->is_accumulated || value->slot == HPCT_STATE_RESIDUE;
    return (hpct_state_share){
        .differs = true, .adds = adds, .copies = copies, .rows = first ? value->shape.size[0] : 0};
}
