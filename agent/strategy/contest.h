/* agent/strategy/contest.h - which of several is the fastest, by measuring them in turn, in blocks,
 * with a forecast for each: who is measured next, when it is clear, who has won. Arithmetic alone:
 * the caller measures, and notes the same numbers on all ranks. */
#ifndef HPCT_STRATEGY_CONTEST_H
#define HPCT_STRATEGY_CONTEST_H

#include <stdbool.h>

#define HPCT_CONTEST_MOST 8   /* candidates */
#define HPCT_CONTEST_ROUNDS 7 /* in each of which every candidate that is left is measured */

typedef struct hpct_contest {
    int num;                            /* of candidates, the simplest first */
    bool runs[HPCT_CONTEST_MOST];       /* is still measured */
    double foreseen[HPCT_CONTEST_MOST]; /* seconds of a step; NAN: nobody knows */
    double seconds[HPCT_CONTEST_MOST][HPCT_CONTEST_ROUNDS]; /* of a step, block by block */
    int blocks[HPCT_CONTEST_MOST];
} hpct_contest;

/* order[num]: the one foreseen as the fastest first, those without a forecast last. */
void hpct_contest_order(const hpct_contest *c, int *order);

/* Whether candidate i should be measured now: it runs, and is not foreseen to take more than four
 * times as long as the best measured so far. Else it runs no more. */
bool hpct_contest_calls(hpct_contest *c, int i);

/* Seconds of a step above which candidate i needs no longer measurement: twice the best so far; but
 * INFINITY for the first block of one that is foreseen to be faster: it may have been disturbed. */
double hpct_contest_limit(const hpct_contest *c, int i);

void hpct_contest_note(hpct_contest *c, int i, double seconds);

/* After a round: whoever is above the limit runs no more, nor who has been measured twice and was
 * slower at his best than the fastest at its worst. Whether the contest is over: one is left, or
 * `late` (enough time was spent), and all have been measured twice, or once where both is so. */
bool hpct_contest_is_over(hpct_contest *c, bool late);

/* The median of its blocks; NAN without any. */
double hpct_contest_median(const hpct_contest *c, int i);

/* The simplest whose median is within 2 % of the least; -1 where nobody has been measured. */
int hpct_contest_winner(const hpct_contest *c);

#endif
