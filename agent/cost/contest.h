/* agent/cost/contest.h - selection of the fastest candidate by timing in blocks, with forecasts:
 * which to time next, when to stop, the winner. Arithmetic only: the caller measures, and records
 * equal numbers on all ranks. */
#ifndef HPCT_AGENT_COST_CONTEST_H
#define HPCT_AGENT_COST_CONTEST_H

#include <stdbool.h>

#define HPCT_COST_CONTEST_MOST 8   /* maximum number of candidates */
#define HPCT_COST_CONTEST_ROUNDS 7 /* each times all remaining candidates */

typedef struct hpct_cost_contest {
    int num;                                 /* of candidates, simplest first */
    bool runs[HPCT_COST_CONTEST_MOST];       /* still a candidate */
    double foreseen[HPCT_COST_CONTEST_MOST]; /* seconds per step; NAN: unknown */
    double seconds[HPCT_COST_CONTEST_MOST][HPCT_COST_CONTEST_ROUNDS]; /* per step, by block */
    int blocks[HPCT_COST_CONTEST_MOST];
} hpct_cost_contest;

/* order[num]: by forecast, fastest first, unknown last. */
void hpct_cost_contest_order(const hpct_cost_contest *c, int *order);

/* Whether to measure candidate i: it runs and is not predicted to take more than four times as long
 * as the best so far. Otherwise it is dropped. */
bool hpct_cost_contest_calls(hpct_cost_contest *c, int i);

/* Step time above which candidate i need not be timed longer: twice the best so far; INFINITY for
 * one predicted to be at least as fast until its second block, as the first may have been
 * disturbed. */
double hpct_cost_contest_limit(const hpct_cost_contest *c, int i);

void hpct_cost_contest_note(hpct_cost_contest *c, int i, double seconds);

/* After a round: drops candidates above the limit, and those measured twice whose best is slower
 * than the fastest's worst. Returns whether to stop: one is left, or `late` (enough time spent),
 * and all were measured twice, or once if both hold. */
bool hpct_cost_contest_is_over(hpct_cost_contest *c, bool late);

/* Median of its blocks; NAN without. */
double hpct_cost_contest_median(const hpct_cost_contest *c, int i);

/* The simplest within 2 % of the smallest median; -1 if none was measured. */
int hpct_cost_contest_winner(const hpct_cost_contest *c);

#endif
