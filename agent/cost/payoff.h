/* agent/cost/payoff.h - the number of ranks that pays off, predicted by agent/cost/predict.h. */
#ifndef HPCT_AGENT_COST_PAYOFF_H
#define HPCT_AGENT_COST_PAYOFF_H

#include "agent/cost/predict.h"

#define HPCT_COST_PAYOFF_MOST 1024
#define HPCT_COST_PAYOFF_EFFICIENCY 0.5

typedef struct hpct_cost_payoff_case {
    const hpct_cost_model *cost;
    const hpct_comm_network *network;
    hpct_cost_scheme_options how;
    bool allowed[HPCT_COST_SCHEMES]; /* for each number of ranks the fastest of these is used */
    double samples;                  /* per rank and step, or, same_global, in total */
    bool same_global;                /* the global batch is fixed */
} hpct_cost_payoff_case;

/* The largest number of ranks up to HPCT_COST_PAYOFF_MOST that is faster than any smaller one and
 * has an efficiency of at least HPCT_COST_PAYOFF_EFFICIENCY. At least 1. Above 16 in steps of a
 * sixteenth. */
int hpct_cost_payoff(const hpct_cost_payoff_case *c);

#endif
