#include "base/clock.h"

#include <time.h>

int64_t hpct_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void hpct_pause_ms(int milliseconds)
{
    nanosleep(
        &(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000},
        NULL);
}
