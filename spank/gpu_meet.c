/* Tasks wait on futexes, which any process can wake and none can leave locked. */
#include <config.h>

#include "spank/gpu_meet.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

typedef struct slot {
    atomic_int posted;
    atomic_int told; /* 0: not posted; place + 1; -1: fallback */
    hpct_spank_gpu_view view;
} slot;

struct hpct_spank_gpu_meet {
    int tasks;
    atomic_int posted;
    slot slots[];
};

static size_t size_of(int tasks)
{
    return sizeof(hpct_spank_gpu_meet) + (size_t) tasks * sizeof(slot);
}

hpct_status hpct_spank_gpu_meet_make(int tasks, hpct_spank_gpu_meet **out)
{
    hpct_spank_gpu_meet *meet = mmap(NULL, size_of(tasks), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (meet == MAP_FAILED)
        return hpct_fail_memory(size_of(tasks));
    meet->tasks = tasks;
    *out = meet;
    return HPCT_OK;
}

void hpct_spank_gpu_meet_free(hpct_spank_gpu_meet *meet)
{
    if (meet != NULL)
        munmap(meet, size_of(meet->tasks));
}

int hpct_spank_gpu_meet_tasks(const hpct_spank_gpu_meet *meet)
{
    return meet->tasks;
}

/* Waits while *word is `seen`, until `end`; false after the deadline. */
static bool sleep_on(atomic_int *word, int seen, int64_t end)
{
    int64_t left = end - hpct_now_ms();
    struct timespec time = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
    if (left <= 0)
        return false;
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, NULL, 0);
    return true;
}

static void wake(atomic_int *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void hpct_spank_gpu_meet_post(hpct_spank_gpu_meet *meet, int task, const hpct_spank_gpu_view *view)
{
    meet->slots[task].view = *view;
    if (atomic_exchange(&meet->slots[task].posted, 1) == 0)
        atomic_fetch_add(&meet->posted, 1);
    wake(&meet->posted);
}

bool hpct_spank_gpu_meet_all(hpct_spank_gpu_meet *meet, int milliseconds)
{
    int64_t end = hpct_now_ms() + milliseconds;
    for (;;) {
        int posted = atomic_load(&meet->posted);
        if (posted >= meet->tasks)
            return true;
        if (!sleep_on(&meet->posted, posted, end))
            return false;
    }
}

const hpct_spank_gpu_view *hpct_spank_gpu_meet_view(const hpct_spank_gpu_meet *meet, int task)
{
    const slot *one = &meet->slots[task];
    return atomic_load(&one->posted) != 0 ? &one->view : NULL;
}

void hpct_spank_gpu_meet_tell(hpct_spank_gpu_meet *meet, int task, int place)
{
    atomic_store(&meet->slots[task].told, place < 0 ? -1 : place + 1);
    wake(&meet->slots[task].told);
}

int hpct_spank_gpu_meet_listen(hpct_spank_gpu_meet *meet, int task, int milliseconds)
{
    int64_t end = hpct_now_ms() + milliseconds;
    for (;;) {
        int told = atomic_load(&meet->slots[task].told);
        if (told != 0)
            return told < 0 ? -1 : told - 1;
        if (!sleep_on(&meet->slots[task].told, 0, end))
            return -1;
    }
}
