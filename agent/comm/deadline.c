/* A thread that waits for hpct_comm_deadline_end, or exits the process at the timeout. */
#include "agent/comm/deadline.h"

#include "base/status.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct hpct_comm_deadline {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended_condition;
    bool ended;
    struct timespec until;
    hpct_status status;
    char line[400];
};

static void *wait_for_end(void *argument)
{
    hpct_comm_deadline *deadline = argument;
    int error = 0;
    pthread_mutex_lock(&deadline->mutex);
    while (!deadline->ended && error != ETIMEDOUT)
        error =
            pthread_cond_timedwait(&deadline->ended_condition, &deadline->mutex, &deadline->until);
    if (!deadline->ended) {
        dprintf(STDERR_FILENO, "%s\n", deadline->line);
        _exit((int) deadline->status);
    }
    pthread_mutex_unlock(&deadline->mutex);
    return NULL;
}

hpct_status hpct_comm_deadline_begin(hpct_comm_deadline **out, int seconds, hpct_status status,
                                     const char *line)
{
    hpct_comm_deadline *deadline = calloc(1, sizeof *deadline);
    if (deadline == NULL)
        return hpct_fail_memory(sizeof *deadline);
    deadline->status = status;
    snprintf(deadline->line, sizeof deadline->line, "%s", line);
    clock_gettime(CLOCK_MONOTONIC, &deadline->until);
    deadline->until.tv_sec += seconds;
    pthread_mutex_init(&deadline->mutex, NULL);
    hpct_thread_condition(&deadline->ended_condition);

    int error = hpct_thread_start(&deadline->thread, wait_for_end, deadline);
    if (error != 0) {
        free(deadline);
        return hpct_fail(HPCT_ERR_INTERNAL, "cannot start a thread: %s", strerror(error));
    }
    *out = deadline;
    return HPCT_OK;
}

void hpct_comm_deadline_end(hpct_comm_deadline *deadline)
{
    pthread_mutex_lock(&deadline->mutex);
    deadline->ended = true;
    pthread_cond_signal(&deadline->ended_condition);
    pthread_mutex_unlock(&deadline->mutex);
    pthread_join(deadline->thread, NULL);
    pthread_cond_destroy(&deadline->ended_condition);
    pthread_mutex_destroy(&deadline->mutex);
    free(deadline);
}
