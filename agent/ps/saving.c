/* Server 0 saves as a single rank does, with a strategy that does nothing but hold the model. */
#include "agent/ps/saving.h"

#include "agent/strategy/state.h"
#include "agent/train/checkpoints.h"
#include "base/status.h"
#include "nn/run/state.h"

#include <stdlib.h>

struct hpct_ps_saving {
    hpct_strategy strategy;
    hpct_train_checkpoints *checkpoints;
    bool due;
};

static void share(const hpct_strategy *strategy, const hpct_run_state_value *value,
                  hpct_strategy_state_share *out)
{
    (void) strategy;
    *out = hpct_strategy_state_equal(value, true);
}

static const struct hpct_strategy_state_ops state = {.share = share};
static const hpct_strategy_ops held = {.name = "parameter-server", .state = &state};

/* Workers have the weights of frozen layers that they began with, not those of a checkpoint. */
static hpct_status attach(hpct_ps_saving *s)
{
    uint64_t before, after;
    HPCT_TRY(hpct_run_state_hash_frozen(s->strategy.model, &before));
    HPCT_TRY(hpct_train_checkpoints_attach(s->checkpoints, &s->strategy));
    HPCT_TRY(hpct_run_state_hash_frozen(s->strategy.model, &after));
    return before == after
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_CONFIG,
                           "%s has other weights of frozen layers than this run began with: give "
                           "the --weights and --seed of the run that it is of, or --resume never",
                           hpct_train_checkpoints_last(s->checkpoints));
}

hpct_status hpct_ps_saving_open(hpct_ps_saving **out, hpct_train_training *training)
{
    *out = NULL;
    hpct_ps_saving *s = calloc(1, sizeof *s);
    if (s == NULL)
        return hpct_fail_memory(sizeof *s);
    s->strategy = (hpct_strategy){.ops = &held, .model = training->model};
    hpct_status status = hpct_train_checkpoints_open(&s->checkpoints, training);
    if (status == HPCT_OK && s->checkpoints != NULL)
        status = attach(s);
    if (status == HPCT_OK && s->checkpoints != NULL)
        *out = s;
    else
        hpct_ps_saving_close(s);
    return status;
}

void hpct_ps_saving_close(hpct_ps_saving *saving)
{
    if (saving == NULL)
        return;
    hpct_train_checkpoints_close(saving->checkpoints);
    free(saving);
}

hpct_status hpct_ps_saving_step(hpct_ps_saving *saving, int64_t done, bool epoch_ended)
{
    bool due = false;
    if (saving == NULL)
        return HPCT_OK;
    hpct_status status = hpct_train_checkpoints_due(saving->checkpoints, done, epoch_ended, &due);
    saving->due |= due;
    return status;
}

bool hpct_ps_saving_due(const hpct_ps_saving *saving)
{
    return saving != NULL && saving->due;
}

hpct_status hpct_ps_saving_save(hpct_ps_saving *saving, const hpct_train_place *place,
                                double waited, bool last)
{
    saving->due = false;
    HPCT_TRY(hpct_train_checkpoints_save(saving->checkpoints, place, false, last));
    hpct_train_checkpoints_waited(saving->checkpoints, waited);
    return HPCT_OK;
}

double hpct_ps_saving_seconds(const hpct_ps_saving *saving)
{
    return saving != NULL ? hpct_train_checkpoints_seconds(saving->checkpoints) : 0;
}

hpct_status hpct_ps_saving_finish(hpct_ps_saving *saving)
{
    return saving != NULL ? hpct_train_checkpoints_finish(saving->checkpoints) : HPCT_OK;
}
