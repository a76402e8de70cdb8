/* CPU time and context switches of a thread, from getrusage. */
#include <config.h>

#include "spank/stage/tree/pace.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#define LOOK_SECONDS 0.02 /* longer than a few time slices of the scheduler */
#define BUSY 0.85         /* fraction of the wall time */

static void add(hpct_pace *pace, int sign)
{
    struct timespec wall = {0};
    struct rusage usage = {0};
    clock_gettime(CLOCK_MONOTONIC, &wall);
    getrusage(RUSAGE_THREAD, &usage);
    pace->wall += sign * ((double) wall.tv_sec + (double) wall.tv_nsec * 1e-9);
    pace->cpu += sign * ((double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                         (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6);
    pace->waits += sign * usage.ru_nvcsw;
    pace->shares += sign * usage.ru_nivcsw;
}

void hpct_pace_begin(hpct_pace *pace)
{
    add(pace, -1);
}

void hpct_pace_end(hpct_pace *pace)
{
    add(pace, 1);
}

hpct_pace_kind hpct_pace_look(hpct_pace *pace)
{
    hpct_pace_kind kind = HPCT_PACE_SHARES;
    if (pace->wall < LOOK_SECONDS)
        return HPCT_PACE_EARLY;
    if (pace->cpu > pace->wall * BUSY)
        kind = HPCT_PACE_BUSY;
    else if (pace->waits > pace->shares)
        kind = HPCT_PACE_WAITS;
    *pace = (hpct_pace){0};
    return kind;
}

int hpct_pace_cores(int most)
{
    cpu_set_t cpus;
    int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return count < most ? count : most;
}
