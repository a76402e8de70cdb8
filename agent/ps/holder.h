/* agent/ps/holder.h - the part of the model that a parameter server owns: takes gradients, makes
 * updates. Knows nothing of connections.
 *
 * Synchronous: the gradients of a step's slices add up, each slice once; the update is made when
 * the step after it is asked for, which server 0 lets happen only when every server has all of
 * them. Until then a slice can be computed again from the same parameters. */
#ifndef HPCT_PS_HOLDER_H
#define HPCT_PS_HOLDER_H

#include "agent/ps/run.h"

typedef struct hpct_ps_holder {
    const hpct_ps_run *run;
    int64_t version; /* updates made */
    bool *has;       /* synchronous: [slices] */
    int have;
    float *states;                                 /* what comes to the states with the update */
    size_t begin, count, state_begin, state_count; /* floats */
} hpct_ps_holder;

hpct_status hpct_ps_holder_init(hpct_ps_holder *holder, const hpct_ps_run *run);
void hpct_ps_holder_free(hpct_ps_holder *holder);

/* floats[count + state_count]: a gradient, and what it adds to the states. One that is late is
 * left out. */
hpct_status hpct_ps_holder_push(hpct_ps_holder *holder, int64_t step, int slice,
                                const float *floats);

/* Makes the update before `version`, if it is still to be made. *possible: false when there is no
 * such version yet. */
hpct_status hpct_ps_holder_reach(hpct_ps_holder *holder, int64_t version, bool *possible);

#endif
