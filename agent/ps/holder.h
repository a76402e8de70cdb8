/* agent/ps/holder.h - the part of the model that a parameter server owns: accumulates gradients,
 * applies updates. Independent of connections.
 *
 * Synchronous: sums the gradients of a step's slices, each slice once; the update is applied when
 * the parameters of the next step are pulled, which server 0 permits only when every server has all
 * slices. Until then a slice can be recomputed from the same parameters. */
#ifndef HPCT_AGENT_PS_HOLDER_H
#define HPCT_AGENT_PS_HOLDER_H

#include "agent/ps/run.h"

typedef struct hpct_ps_holder {
    const hpct_ps_run *run;
    int64_t version; /* of the parameters, as hpct_ps_item has it */
    bool *has;       /* synchronous: [slices] received */
    int have;
    double rate;                                   /* of the pending update; 0: the schedule's */
    float *states;                                 /* added to the states with the update */
    size_t begin, count, state_begin, state_count; /* in floats */
} hpct_ps_holder;

hpct_status hpct_ps_holder_init(hpct_ps_holder *holder, const hpct_ps_run *run);
void hpct_ps_holder_free(hpct_ps_holder *holder);

/* floats[count + state_count]: a gradient, and its change of the states. Late ones are ignored.
 * `rate`: the learning rate of its update, the same for all slices; 0: the schedule's. */
hpct_status hpct_ps_holder_push(hpct_ps_holder *holder, int64_t step, int slice, double rate,
                                const float *floats);

/* Applies the update to `version` if it is pending. *possible: false if that version cannot be
 * reached yet. */
hpct_status hpct_ps_holder_reach(hpct_ps_holder *holder, int64_t version, bool *possible);

#endif
