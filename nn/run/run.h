/* nn/run/run.h - what the files of a step share: the clock, input to the device, the update, and
 * single parameters. Private to nn/; the trainer uses nn/run/step.h. */
#ifndef HPCT_NN_RUN_RUN_H
#define HPCT_NN_RUN_RUN_H

#include "nn/plan/run.h"

double hpct_run_clock(void);

/* Around a part of the step; reads the clock only while profiling. */
double hpct_run_began(const hpct_run *run);
void hpct_run_ended(const hpct_run *run, int slot, double begin);

/* The resident data set of this replica. */
const hpct_run_resident *hpct_run_resident_of(const hpct_run_resident *resident,
                                              const hpct_model *replica);

/* Copies input and targets of n samples to the device; nothing if the backend's memory is the
 * host's. */
hpct_status hpct_run_send_input(const hpct_model *model, hpct_run *run, int n);
hpct_status hpct_run_send_targets(hpct_run *run, int n);
/* Makes the batch on the device from a resident data set, if the input is one. */
hpct_status hpct_run_make_input(const hpct_run *run, int n);
/* Sets the address of a shard's local batch, in the batch of n, in the nodes that read it. */
void hpct_run_set_own_input(const hpct_model *model, hpct_run *run, int n);

/* The optimizer's next step; tell_rates sends the values to the device that recordings read on
 * replay. */
hpct_backend_update_call hpct_run_next_update(const hpct_model *model);
hpct_status hpct_run_tell_rates(const hpct_run *run, const hpct_backend_update_call *call);

/* Resets the optimizer: its slots are dropped or zeroed. */
hpct_status hpct_model_forget_slots(hpct_model *model);

/* A parameter in Keras' layout, whether it is in the model or in an arena. get: HPCT_ERR_USAGE if
 * it was never set. */
hpct_status hpct_run_param_get(const hpct_model *model, int param, float *keras);
hpct_status hpct_run_param_set(hpct_model *model, int param, const float *keras);

/* One of its optimizer slots, likewise. get: if never set, *any is false and nothing is written. */
hpct_status hpct_run_param_get_slot(const hpct_model *model, int param, int slot, float *keras,
                                    bool *any);
hpct_status hpct_run_param_set_slot(hpct_model *model, int param, int slot, const float *keras);

#endif
