/* Two variables that the heartbeat thread samples. */
#include "base/progress.h"

#include <stdatomic.h>
#include <stdbool.h>

static atomic_uint_least32_t done;
static _Atomic hpct_waits current;
static _Thread_local bool trains;

void hpct_count_progress(void)
{
    atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
}

hpct_waits hpct_enter_wait(hpct_waits waits)
{
    hpct_waits before = HPCT_WAITS_UNSEEN;
    hpct_count_progress();
    bool trained = trains;
    trains = waits == HPCT_WAITS_FOR_NOBODY || (trains && waits != HPCT_WAITS_UNSEEN);
    if (trains || trained)
        before = atomic_exchange_explicit(&current, waits, memory_order_relaxed);
    return trained ? before : HPCT_WAITS_UNSEEN;
}

uint32_t hpct_read_progress(hpct_waits *waits)
{
    *waits = atomic_load_explicit(&current, memory_order_relaxed);
    return (uint32_t) atomic_load_explicit(&done, memory_order_relaxed);
}
