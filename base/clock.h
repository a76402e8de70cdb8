/* base/clock.h - clock for timeouts, and pauses. */
#ifndef HPCT_BASE_CLOCK_H
#define HPCT_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds of a monotonic clock. */
int64_t hpct_now_ms(void);

void hpct_pause_ms(int milliseconds);

#endif
