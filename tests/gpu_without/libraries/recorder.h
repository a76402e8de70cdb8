/* tests/gpu_without/libraries/recorder.h - stands for CUDA and NCCL at one border: the table of
 * calls of base/device_calls.h. It notes every call with the arguments that matter, and answers as
 * the libraries do, in progress and failures too. Device memory is the host's, and what is put into
 * a stream happens at once, so it shows what is asked for and in which order, and no more than
 * that: whether the libraries do it is for a GPU to show. Sums are as if every rank had the same
 * data. */
#ifndef HPCT_TESTS_GPU_WITHOUT_LIBRARIES_RECORDER_H
#define HPCT_TESTS_GPU_WITHOUT_LIBRARIES_RECORDER_H

#include "base/device_calls.h"

extern const hpct_device_calls recorder_calls;

typedef struct recorder_answers {
    int size;        /* ranks of every communicator */
    int busy;        /* how often a communicator says so after each call on it */
    int events_busy; /* how often an event does after it was recorded */
    bool records;    /* the compute stream is being recorded */
    bool never;      /* communicators stay busy */
    bool lost;       /* communicators say that a peer is gone */
    bool abort_hangs;
    size_t memory; /* that is left on the device */
    bool without_nccl;
} recorder_answers;

extern recorder_answers recorder;

/* Forgets calls and answers. The compute stream is "C", others "S1"…; events "e1"…; communicators
 * "n1"…, by the order in which they are made. */
void recorder_reset(int size);

/* Calls noted since the last time, one to a line; valid until the next call here. */
const char *recorder_take(void);
int recorder_aborts(void);  /* since reset; from any thread */
size_t recorder_live(void); /* streams, events, communicators and memory not given back */

#endif
