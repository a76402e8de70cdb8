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

hpct_status hpct_strategy_get(hpct_strategy *strategy, const hpct_state_value *value, int copy,
                              float *floats)
{
    const struct hpct_state_ops *ops = strategy->ops->state;
    return ops->get != NULL ? ops->get(strategy, value, copy, floats)
                            : hpct_state_get(hpct_strategy_model(strategy, copy), value->param,
                                             value->slot, floats);
}

hpct_status hpct_strategy_put(hpct_strategy *strategy, const hpct_state_value *value, int copy,
                              const float *floats)
{
    const struct hpct_state_ops *ops = strategy->ops->state;
    hpct_model *model;
    if (ops->put != NULL)
        return ops->put(strategy, value, copy, floats);
    for (int k = 0; (model = hpct_strategy_model(strategy, k)) != NULL; k++) {
        if (copy == k || copy == HPCT_STATE_ALL)
            HPCT_TRY(hpct_state_put(model, value->param, value->slot, floats));
    }
    return HPCT_OK;
}

hpct_status hpct_strategy_get_numbers(hpct_strategy *strategy, double *numbers)
{
    return hpct_state_get_numbers(hpct_strategy_model(strategy, 0), numbers);
}

hpct_status hpct_strategy_put_numbers(hpct_strategy *strategy, const double *numbers)
{
    hpct_model *model;
    for (int k = 0; (model = hpct_strategy_model(strategy, k)) != NULL; k++)
        HPCT_TRY(hpct_state_put_numbers(model, numbers));
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
