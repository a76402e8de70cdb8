/* Stages, replicas, micro-batches. */
#include "agent/strategy/stage_layout.h"

#include "base/status.h"
#include "nn/split/cut.h"

#define FEWEST_SAMPLES 4 /* minimum for a default micro-batch */

int hpct_strategy_stage_layout_default(int stages, int samples)
{
    int least = 4 * (stages - 1), fitting = samples / FEWEST_SAMPLES;
    for (int m = least; m > 0 && m <= 2 * least && m <= fitting; m++) {
        if (samples % m == 0)
            return m;
    }
    least = least < fitting ? least : fitting;
    return least > 1 ? least : 1;
}

static hpct_status find_stages(int *stages, const hpct_model *model, int asked, int ranks)
{
    int most = hpct_split_cut_most(model) < HPCT_SPLIT_MAX_STAGES ? hpct_split_cut_most(model)
                                                                  : HPCT_SPLIT_MAX_STAGES;
    *stages = asked;
    for (int s = 1; asked == 0 && s <= ranks && s <= most; s++)
        *stages = ranks % s == 0 ? s : *stages;
    if (*stages > most)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "--stages is %d, but model %s has %d operations, which make %d stages at "
                         "most",
                         *stages, hpct_model_name(model), hpct_split_cut_most(model), most);
    if (ranks % *stages != 0)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%d ranks cannot share %d stages evenly: take a multiple of %d ranks, or "
                         "other --stages",
                         ranks, *stages, *stages);
    if (*stages == 1 && ranks > 1 && asked == 0)
        return hpct_fail(
            HPCT_ERR_CONFIG,
            "model %s has %d operations, and no divisor of %d ranks but 1 is as small: "
            "take another number of ranks, or strategy multi-worker-mirrored",
            hpct_model_name(model), hpct_split_cut_most(model), ranks);
    return HPCT_OK;
}

hpct_status hpct_strategy_stage_layout_find(hpct_strategy_stage_layout *out,
                                            const hpct_model *model,
                                            const hpct_strategy_options *options, int ranks,
                                            int samples)
{
    *out = (hpct_strategy_stage_layout){.micro_batches = options->micro_batches};
    hpct_status status = find_stages(&out->stages, model, options->stages, ranks);
    if (status != HPCT_OK)
        return hpct_fail_within(status, "strategy pipeline");
    out->replicas = ranks / out->stages;
    int own = samples / out->replicas;
    if (out->micro_batches == 0)
        out->micro_batches = hpct_strategy_stage_layout_default(out->stages, own);
    if (out->micro_batches > 1 && out->micro_batches > own)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "strategy pipeline: %d samples of a step (of each of %d replicas) cannot "
                         "be cut into %d micro-batches: give fewer --micro-batches, or a larger "
                         "batch",
                         own, out->replicas, out->micro_batches);
    return HPCT_OK;
}

int hpct_strategy_stage_layout_pieces(const hpct_strategy_stage_layout *layout, int samples)
{
    int own = samples / layout->replicas;
    int pieces = layout->micro_batches < own ? layout->micro_batches : own;
    return pieces > 1 ? pieces : 1;
}

int hpct_strategy_stage_layout_in_flight(const hpct_strategy_stage_layout *layout, int stage,
                                         int pieces)
{
    int behind = layout->stages - stage; /* this stage and the later ones */
    return behind < pieces ? behind : pieces;
}
