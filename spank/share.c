/* The worker holds a robust mutex while it works, so the kernel wakes the waiters however it ends.
 * Progress is a counter that the waiters read once a second. */
#include <config.h>

#include "spank/share.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

enum { NOT_STARTED, RUNNING, ENDED };

typedef struct piece {
    pthread_mutex_t lead;
    int state; /* protected by lead, as are status and ... */
    hpct_status status;
    atomic_int worker, worker_pid; /* for messages, read without lead */
    char message[1024];
} piece;

struct hpct_spank_share {
    piece pieces[HPCT_SPANK_SHARE_PIECES];
    atomic_uint progress;
    atomic_uint marks;
    atomic_int choice;
    hpct_agree_network network; /* 3 MB, of which only what is written takes memory */
};

hpct_status hpct_spank_share_make(hpct_spank_share **out)
{
    pthread_mutexattr_t attributes;
    hpct_spank_share *share =
        mmap(NULL, sizeof *share, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (share == MAP_FAILED)
        return hpct_fail_memory(sizeof *share);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    for (int i = 0; i < HPCT_SPANK_SHARE_PIECES; i++)
        pthread_mutex_init(&share->pieces[i].lead, &attributes);
    pthread_mutexattr_destroy(&attributes);
    *out = share;
    return HPCT_OK;
}

void hpct_spank_share_free(hpct_spank_share *share)
{
    if (share != NULL)
        munmap(share, sizeof *share);
}

void hpct_spank_share_progress(hpct_spank_share *share)
{
    atomic_fetch_add(&share->progress, 1);
}

void hpct_spank_share_set_choice(hpct_spank_share *share, int choice)
{
    atomic_store(&share->choice, choice);
}

int hpct_spank_share_choice(const hpct_spank_share *share)
{
    return atomic_load(&share->choice);
}

hpct_agree_network *hpct_spank_share_network(hpct_spank_share *share)
{
    return &share->network;
}

bool hpct_spank_share_first(hpct_spank_share *share, hpct_spank_share_mark mark)
{
    return (atomic_fetch_or(&share->marks, mark) & mark) == 0;
}

bool hpct_spank_share_marked(hpct_spank_share *share, hpct_spank_share_mark mark)
{
    return (atomic_load(&share->marks) & mark) != 0;
}

/* Returns 0 or EOWNERDEAD with the mutex held, ETIMEDOUT after stall_seconds without progress. */
static int lock_while_it_progresses(hpct_spank_share *share, piece *of, int stall_seconds)
{
    unsigned seen = atomic_load(&share->progress);
    for (int idle = 0;; idle++) {
        struct timespec end;
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec++;
        int error = pthread_mutex_clocklock(&of->lead, CLOCK_MONOTONIC, &end);
        if (error != ETIMEDOUT)
            return error;
        unsigned now = atomic_load(&share->progress);
        if (now != seen)
            idle = 0;
        seen = now;
        if (idle >= stall_seconds)
            return ETIMEDOUT;
    }
}

hpct_status hpct_spank_share_once(hpct_spank_share *share, hpct_spank_share_piece which, int me,
                                  const char *what, int stall_seconds, hpct_spank_share_work work,
                                  void *context)
{
    piece *of = &share->pieces[which];
    int error = lock_while_it_progresses(share, of, stall_seconds);
    if (error == ETIMEDOUT)
        return hpct_fail(
            HPCT_ERR_IO,
            "waited for task %d (pid %d) to %s, but it made no progress for %d seconds",
            atomic_load(&of->worker), atomic_load(&of->worker_pid), what, stall_seconds);
    if (error != 0 && error != EOWNERDEAD)
        return hpct_fail(HPCT_ERR_INTERNAL, "cannot wait for others to %s: %s", what,
                         strerror(error));
    hpct_status status;
    if (error == EOWNERDEAD)
        pthread_mutex_consistent(&of->lead);
    /* a process that died may also have been reading the result */
    if (error == EOWNERDEAD && of->state == RUNNING) {
        status = hpct_fail(HPCT_ERR_IO, "task %d (pid %d), which was to %s, was killed",
                           atomic_load(&of->worker), atomic_load(&of->worker_pid), what);
        strncpy(of->message, hpct_last_error(), sizeof of->message - 1);
        of->state = ENDED;
        of->status = status;
    } else if (of->state == NOT_STARTED) {
        of->state = RUNNING;
        atomic_store(&of->worker, me);
        atomic_store(&of->worker_pid, (int) getpid());
        status = work(context, share);
        if (status != HPCT_OK)
            strncpy(of->message, hpct_last_error(), sizeof of->message - 1);
        of->status = status;
        of->state = ENDED;
    } else {
        status = of->status;
        if (status != HPCT_OK)
            hpct_fail(status, "%s", of->message);
    }
    pthread_mutex_unlock(&of->lead);
    return status;
}
