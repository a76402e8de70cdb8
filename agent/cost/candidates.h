/* agent/cost/candidates.h - candidates of --strategy auto. */
#ifndef HPCT_AGENT_COST_CANDIDATES_H
#define HPCT_AGENT_COST_CANDIDATES_H

#include "agent/cost/predict.h"
#include "agent/strategy/strategy.h"

typedef struct hpct_candidate {
    const char *label;  /* for the user */
    hpct_scheme scheme; /* its formula (agent/cost/predict.h) */
    hpct_strategy_options options;
} hpct_candidate;

#define HPCT_CANDIDATES 7

/* Simplest first, exact ones before lossy ones. */
extern const hpct_candidate hpct_candidates[HPCT_CANDIDATES];

/* Whether the user's options allow it. */
bool hpct_candidate_is_allowed(const hpct_candidate *candidate, const hpct_strategy_options *given);

/* The candidate's options merged with the user's. */
hpct_strategy_options hpct_candidate_options(const hpct_candidate *candidate,
                                             const hpct_strategy_options *given);

#endif
