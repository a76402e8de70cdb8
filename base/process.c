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

double hpct_process_age(void)
{
    char text[1024];
    unsigned long long began;
    FILE *file = fopen("/proc/self/stat", "re");
    if (file == NULL)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    /* Field 22, counted after the last ')': the command name may contain anything. */
    const char *after = strrchr(text, ')');
    if (after == NULL ||
        sscanf(after + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
               "%*d %*d %llu",
               &began) != 1)
        return 0;
    return seconds_of(CLOCK_BOOTTIME) - (double) began / (double) sysconf(_SC_CLK_TCK);
}

double hpct_process_peak_mb(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double) usage.ru_maxrss / 1024 : 0;
}
