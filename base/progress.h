/* base/progress.h - progress of this process for the heartbeats: a counter of work done, and what
 * the training thread waits for. */
#ifndef HPCT_BASE_PROGRESS_H
#define HPCT_BASE_PROGRESS_H

#include <stdint.h>

typedef enum hpct_waits {
    HPCT_WAITS_UNSEEN = 0, /* no training: no limit */
    HPCT_WAITS_FOR_NOBODY, /* computes, or waits for local files */
    HPCT_WAITS_FOR_DEVICE,
    HPCT_WAITS_FOR_RANKS,
} hpct_waits;

/* Counts work done: an operation, a sample. From any thread. */
void hpct_count_progress(void);

/* Sets what the calling thread waits for; counts as progress. Returns the previous value, to be
 * restored. For the training thread, which sets HPCT_WAITS_FOR_NOBODY at the beginning of training
 * and HPCT_WAITS_UNSEEN at the end; calls of other threads only count progress. */
hpct_waits hpct_enter_wait(hpct_waits waits);

/* Returns the counter and what the training thread waits for. From any thread. */
uint32_t hpct_read_progress(hpct_waits *waits);

#endif
