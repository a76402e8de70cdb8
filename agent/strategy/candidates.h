/* agent/strategy/candidates.h - the strategies among which "auto" chooses. Measures nothing. */
#ifndef HPCT_STRATEGY_CANDIDATES_H
#define HPCT_STRATEGY_CANDIDATES_H

#include "agent/predict.h"
#include "agent/strategy/strategy.h"

typedef struct hpct_candidate {
    const char *label;  /* for the user */
    hpct_scheme scheme; /* that predicts it */
    hpct_strategy_options options;
} hpct_candidate;

#define HPCT_CANDIDATES 7

/* The simplest first, the exact ones before the others. */
extern const hpct_candidate hpct_candidates[HPCT_CANDIDATES];

/* Whether it does what the user allows. */
bool hpct_candidate_is_allowed(const hpct_candidate *candidate, const hpct_strategy_options *given);

/* The candidate's options with the rest of what the user gave. */
hpct_strategy_options hpct_candidate_options(const hpct_candidate *candidate,
                                             const hpct_strategy_options *given);

#endif
