/* Times and sizes of this process from /proc and getrusage. */
#include "base/process.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

double hpct_process_clock(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

/* Field 22 of /proc/PID/stat, counted after the last ')': the name may contain anything. */
int64_t hpct_process_start(pid_t pid)
{
    char path[64], text[1024], state;
    long long began;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long) pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *after = strrchr(text, ')');
    if (after == NULL ||
        sscanf(after + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
               "%*d %*d %lld",
               &state, &began) != 2)
        return -1;
    return state == 'Z' || state == 'X' ? 0 : began;
}

double hpct_process_age(void)
{
    int64_t began = hpct_process_start(getpid());
    if (began < 0)
        return 0;
    return seconds_of(CLOCK_BOOTTIME) - (double) began / (double) sysconf(_SC_CLK_TCK);
}

double hpct_process_peak_mb(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double) usage.ru_maxrss / 1024 : 0;
}
