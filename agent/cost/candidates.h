/* agent/cost/candidates.h - candidates of --strategy auto. */
#ifndef HPCT_AGENT_COST_CANDIDATES_H
#define HPCT_AGENT_COST_CANDIDATES_H

#include "agent/cost/predict.h"
#include "agent/strategy/strategy.h"

typedef struct hpct_cost_candidate {
    const char *label;       /* for the user */
    hpct_cost_scheme scheme; /* its formula (agent/cost/predict.h) */
    hpct_strategy_options options;
} hpct_cost_candidate;

#define HPCT_COST_CANDIDATES 7

/* Simplest first, exact ones before lossy ones. */
extern const hpct_cost_candidate hpct_cost_candidates[HPCT_COST_CANDIDATES];

/* Whether the user's options allow it. */
bool hpct_cost_candidate_is_allowed(const hpct_cost_candidate *candidate,
                                    const hpct_strategy_options *given);

/* The candidate's options merged with the user's. */
hpct_strategy_options hpct_cost_candidate_options(const hpct_cost_candidate *candidate,
                                                  const hpct_strategy_options *given);

#endif
