/* base/headway.h - whether this process gets on with its training, for the watch over the ranks: a
 * count that grows with all that is done, and whom the thread that trains waits for. */
#ifndef HPCT_BASE_HEADWAY_H
#define HPCT_BASE_HEADWAY_H

#include <stdint.h>

typedef enum hpct_waits {
    HPCT_WAITS_UNSEEN = 0, /* nobody trains: the program may take as long as it likes */
    HPCT_WAITS_FOR_NOBODY, /* works, or waits for its own files */
    HPCT_WAITS_FOR_DEVICE,
    HPCT_WAITS_FOR_RANKS,
} hpct_waits;

/* Something was done: an operation, a sample. From any thread. */
void hpct_headway(void);

/* Whom this thread waits for from now on; that counts as headway. Returns what it was, to go back
 * to. One thread trains, which says HPCT_WAITS_FOR_NOBODY at the beginning and HPCT_WAITS_UNSEEN at
 * the end; what others say is only counted. */
hpct_waits hpct_headway_enter(hpct_waits waits);

/* How much was done so far, and whom the thread that trains waits for. From any thread. */
uint32_t hpct_headway_look(hpct_waits *waits);

#endif
