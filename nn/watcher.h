/* nn/watcher.h - who wants to know how far a step has come: a strategy, that sends while the model
 * computes. */
#ifndef HPCT_NN_WATCHER_H
#define HPCT_NN_WATCHER_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct hpct_watcher {
    /* Called by backward between its operations, also where they have no parameters: the first
     * `done` floats of the gradient arena are final in this backward. Never decreases. What it
     * returns other than HPCT_OK ends the backward. NULL: nobody watches. */
    hpct_status (*advance)(void *argument, size_t done);
    /* Called by forward and backward between their operations, for who has messages on their way
     * that move only when somebody calls. NULL: nobody. */
    hpct_status (*pause)(void *argument);
    /* Called by hpct_model_step between backward and update: the gradients are then those of all
     * replicas. NULL: nothing is to be done. */
    hpct_status (*reduce)(void *argument);
    /* Where not NULL, what advance and reduce ask of the device, and what hpct_replicas does, can
     * be recorded with a step (nn/replay.h), if all replicas record and replay the same ones: their
     * steps go through hpct_model_step alone, with the same scales. *all becomes whether it was
     * true on every replica. Collective. */
    hpct_status (*agree)(void *argument, bool *all);
    void *argument;
} hpct_watcher;

#endif
