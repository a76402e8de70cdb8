/* agent/results/live_losses.h - the course of the loss in a fixed array: means of equal parts of
 * the steps, which double in length when it is full. */
#ifndef HPCT_AGENT_RESULTS_LIVE_LOSSES_H
#define HPCT_AGENT_RESULTS_LIVE_LOSSES_H

#include "agent/results/live_report.h"

#include <stdint.h>

/* Zeroed at first. */
typedef struct hpct_results_live_losses {
    double means[HPCT_RESULTS_LIVE_LOSSES];
    int num;
    int64_t length, taken; /* steps of a part (0: of 1), and of the one that is not full yet */
    double sum;            /* of that */
} hpct_results_live_losses;

static inline void hpct_results_live_losses_add(hpct_results_live_losses *losses, double loss)
{
    int64_t length = losses->length > 0 ? losses->length : 1;
    losses->sum += loss;
    if (++losses->taken < length)
        return;
    losses->means[losses->num++] = losses->sum / (double) length;
    losses->sum = 0;
    losses->taken = 0;
    if (losses->num < HPCT_RESULTS_LIVE_LOSSES)
        return;
    for (int i = 0; i < HPCT_RESULTS_LIVE_LOSSES / 2; i++)
        losses->means[i] = (losses->means[2 * i] + losses->means[2 * i + 1]) / 2;
    losses->num = HPCT_RESULTS_LIVE_LOSSES / 2;
    losses->length = 2 * length;
}

#endif
