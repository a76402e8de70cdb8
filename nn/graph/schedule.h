/* nn/graph/schedule.h - the learning rate as a function of the step only, so that it is equal on
 * all ranks. */
#ifndef HPCT_NN_GRAPH_SCHEDULE_H
#define HPCT_NN_GRAPH_SCHEDULE_H

#include <hpctrain/optimizer.h>

/* Resolves defaults. HPCT_ERR_USAGE if invalid. */
hpct_status hpct_graph_schedule_resolve(hpct_schedule *schedule);

/* The rate at `step` of a resolved schedule with initial rate `learning_rate`. */
double hpct_graph_schedule_rate(const hpct_schedule *schedule, double learning_rate, int64_t step);

#endif
