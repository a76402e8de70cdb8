/* agent/payoff.h - how many ranks are worth their cost, by the formulae of agent/predict.h. */
#ifndef HPCT_AGENT_PAYOFF_H
#define HPCT_AGENT_PAYOFF_H

#include "agent/predict.h"

#define HPCT_PAYOFF_MOST 1024
#define HPCT_PAYOFF_EFFICIENCY 0.5

typedef struct hpct_payoff_case {
    const hpct_cost_model *cost;
    const hpct_network *network;
    hpct_scheme_options how;
    bool allowed[HPCT_SCHEMES]; /* the fastest of these is taken for each number of ranks */
    double samples;             /* of one rank in a step, or, same_global, of all */
    bool same_global;           /* more ranks share the same global batch */
} hpct_payoff_case;

/* The largest number of ranks, up to HPCT_PAYOFF_MOST, that train faster than any fewer of them and
 * each of which does, on average, at least HPCT_PAYOFF_EFFICIENCY of what one alone would. At least
 * 1. Above 16 only every number that is a sixteenth larger is looked at. */
int hpct_payoff(const hpct_payoff_case *c);

#endif
