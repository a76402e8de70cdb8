/* What most strategies do alike. */
#include "agent/strategy/state.h"

#include "base/status.h"

hpct_model *hpct_strategy_model(const hpct_strategy *strategy, int k)
{
    const struct hpct_strategy_state_ops *ops = strategy->ops->state;
    if (ops != NULL && ops->model != NULL)
        return ops->model(strategy, k);
    return k == 0 ? strategy->model : NULL;
}

/* Makes this thread use the k-th model's device; leave: the first one's again. */
static hpct_status enter(const hpct_strategy *strategy, int k)
{
    const struct hpct_strategy_state_ops *ops = strategy->ops->state;
    return ops->enter != NULL && k > 0 ? ops->enter(strategy, k) : HPCT_OK;
}

/* The status so far, or that of leaving. */
static hpct_status leave(const hpct_strategy *strategy, int k, hpct_status status)
{
    const struct hpct_strategy_state_ops *ops = strategy->ops->state;
    hpct_status back = ops->enter != NULL && k > 0 ? ops->enter(strategy, 0) : HPCT_OK;
    return status != HPCT_OK ? status : back;
}

hpct_status hpct_strategy_get(hpct_strategy *strategy, const hpct_run_state_value *value, int copy,
                              float *floats)
{
    const struct hpct_strategy_state_ops *ops = strategy->ops->state;
    if (ops->get != NULL)
        return ops->get(strategy, value, copy, floats);
    HPCT_TRY(enter(strategy, copy));
    return leave(
        strategy, copy,
        hpct_run_state_get(hpct_strategy_model(strategy, copy), value->param, value->slot, floats));
}

hpct_status hpct_strategy_put(hpct_strategy *strategy, const hpct_run_state_value *value, int copy,
                              const float *floats)
{
    const struct hpct_strategy_state_ops *ops = strategy->ops->state;
    hpct_model *model;
    if (ops->put != NULL)
        return ops->put(strategy, value, copy, floats);
    for (int k = 0; (model = hpct_strategy_model(strategy, k)) != NULL; k++) {
        if (copy != k && copy != HPCT_STRATEGY_STATE_ALL)
            continue;
        HPCT_TRY(enter(strategy, k));
        HPCT_TRY(leave(strategy, k, hpct_run_state_put(model, value->param, value->slot, floats)));
    }
    return HPCT_OK;
}

hpct_status hpct_strategy_get_numbers(hpct_strategy *strategy, double *numbers)
{
    return hpct_run_state_get_numbers(hpct_strategy_model(strategy, 0), numbers);
}

hpct_status hpct_strategy_put_numbers(hpct_strategy *strategy, const double *numbers)
{
    hpct_model *model;
    for (int k = 0; (model = hpct_strategy_model(strategy, k)) != NULL; k++) {
        HPCT_TRY(enter(strategy, k));
        HPCT_TRY(leave(strategy, k, hpct_run_state_put_numbers(model, numbers)));
    }
    return HPCT_OK;
}

hpct_strategy_state_share hpct_strategy_state_equal(const hpct_run_state_value *value, bool first)
{
    return (hpct_strategy_state_share){.rows = first ? value->shape.size[0] : 0};
}

hpct_strategy_state_share hpct_strategy_state_own(const hpct_run_state_value *value, int copies,
                                                  bool first)
{
    bool adds = value->is_accumulated || value->slot == HPCT_STRATEGY_STATE_RESIDUE;
    return (hpct_strategy_state_share){
        .differs = true, .adds = adds, .copies = copies, .rows = first ? value->shape.size[0] : 0};
}
