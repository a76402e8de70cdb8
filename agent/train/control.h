/* agent/train/control.h - what decides after an epoch how training goes on: early stopping, a
 * target, the learning rate by a file or on a plateau, and callbacks of the program. All ranks
 * decide on rank 0's metrics, and so alike. The observer itself is hpct_train_observe_control. */
#ifndef HPCT_AGENT_TRAIN_CONTROL_H
#define HPCT_AGENT_TRAIN_CONTROL_H

#include <hpctrain/train.h>
#include <stdbool.h>

/* Checks the options' text alone. HPCT_ERR_USAGE. */
hpct_status hpct_train_control_check(const hpct_fit_options *options);

/* Checks them for a run of this model with parameter servers: server 0 decides, and cannot call the
 * others' functions. HPCT_ERR_USAGE. */
hpct_status hpct_train_control_check_apart(const hpct_fit_options *options,
                                           const hpct_model *model);

/* Whether the optimizer's schedule sets the learning rate of each step. */
bool hpct_train_control_is_scheduled(const hpct_model *model);

#endif
