/* nn/plan/arenas.h - the arenas of a run, for its build. Their sizes: nn/plan/run.h. */
#ifndef HPCT_NN_PLAN_ARENAS_H
#define HPCT_NN_PLAN_ARENAS_H

#include "nn/plan/run.h"

/* Sets the offsets of the parameters, in the order in which backward finishes their gradients.
 * Processes with other frozen layers have another layout. */
hpct_status hpct_run_lay_out_arenas(const hpct_model *model, hpct_run *run);
/* Allocates the arenas, and the buffers of hpct_run_place. */
hpct_status hpct_run_allocate(const hpct_model *model, hpct_run *run);
/* Sets the addresses of parameters and gradients in each node. */
void hpct_run_point_at_params(const hpct_model *model, hpct_run *run);
void hpct_run_free_arenas(hpct_run *run);

#endif
