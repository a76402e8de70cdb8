#include "agent/cost/candidates.h"

#include <string.h>

const hpct_cost_candidate hpct_cost_candidates[HPCT_COST_CANDIDATES] = {
    {"multi-worker-mirrored", HPCT_COST_SCHEME_MIRRORED, {.name = "multi-worker-mirrored"}},
    {"hybrid (rows)", HPCT_COST_SCHEME_HYBRID_ROWS, {.name = "hybrid", .hybrid_form = "rows"}},
    {"hybrid (columns)",
     HPCT_COST_SCHEME_HYBRID_COLUMNS,
     {.name = "hybrid", .hybrid_form = "columns"}},
    {"hybrid (back)", HPCT_COST_SCHEME_HYBRID_BACK, {.name = "hybrid", .hybrid_form = "back"}},
    {"multi-worker-mirrored (bf16)",
     HPCT_COST_SCHEME_MIRRORED_BF16,
     {.name = "multi-worker-mirrored", .wire = HPCT_WIRE_BF16}},
    {"multi-worker-mirrored (powersgd:4)",
     HPCT_COST_SCHEME_POWERSGD,
     {.name = "multi-worker-mirrored",
      .compression = {.kind = HPCT_COMPRESS_POWERSGD, .rank = HPCT_COST_POWERSGD_RANK}}},
    {"local-sgd", HPCT_COST_SCHEME_LOCAL_SGD, {.name = "local-sgd"}},
};

bool hpct_cost_candidate_is_allowed(const hpct_cost_candidate *candidate,
                                    const hpct_strategy_options *given)
{
    bool compresses = candidate->options.compression.kind != HPCT_COMPRESS_NONE;
    const char *form = candidate->options.hybrid_form, *wanted = given->hybrid_form;
    if (form != NULL && wanted != NULL && strcmp(wanted, "auto") != 0 && strcmp(wanted, form) != 0)
        return false;
    /* with 16 bits on the wire by option, no separate candidates for that */
    if (given->wire != HPCT_WIRE_FP32 && (candidate->options.wire != HPCT_WIRE_FP32 || compresses))
        return false;
    return hpct_cost_scheme_is_exact(candidate->scheme) || given->allow_lossy;
}

hpct_strategy_options hpct_cost_candidate_options(const hpct_cost_candidate *candidate,
                                                  const hpct_strategy_options *given)
{
    hpct_strategy_options options = *given;
    options.name = candidate->options.name;
    if (candidate->options.hybrid_form != NULL)
        options.hybrid_form = candidate->options.hybrid_form;
    if (candidate->options.wire != HPCT_WIRE_FP32)
        options.wire = candidate->options.wire;
    if (candidate->options.compression.kind != HPCT_COMPRESS_NONE) {
        options.compression.kind = candidate->options.compression.kind;
        options.compression.rank = candidate->options.compression.rank;
    }
    return options;
}
