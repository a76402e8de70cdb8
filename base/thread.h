/* base/thread.h - threads that leave signals to the caller's. */
#ifndef HPCT_BASE_THREAD_H
#define HPCT_BASE_THREAD_H

#include <pthread.h>

/* pthread_create with all signals blocked in the new thread. 0, or an errno. */
int hpct_thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/* A condition whose timed waits are by CLOCK_MONOTONIC. */
void hpct_thread_condition(pthread_cond_t *condition);

#endif
