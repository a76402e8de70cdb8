/* Threads that leave signals to the caller's. */
#include "base/thread.h"

#include <signal.h>
#include <time.h>

int hpct_thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void hpct_thread_condition(pthread_cond_t *condition)
{
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &by_clock);
    pthread_condattr_destroy(&by_clock);
}
