/* nn/schedule.h - the learning rate as a function of the step alone, so that all ranks agree. */
#ifndef HPCT_NN_SCHEDULE_H
#define HPCT_NN_SCHEDULE_H

#include <hpctrain/optimizer.h>

/* Fills in defaults. HPCT_ERR_USAGE for what cannot be. */
hpct_status hpct_schedule_resolve(hpct_schedule *schedule);

/* Of a resolved schedule that begins at `learning_rate`. */
double hpct_schedule_rate(const hpct_schedule *schedule, double learning_rate, int64_t step);

#endif
