/* Loaded beside the sanitizer's runtime, or linked: says how it is to behave, and keeps it out of
 * programs that the one it was loaded into starts. Leaks do not matter here (Slurm's own), they are
 * looked for in the unit tests. */
#include <stdlib.h>

#define FINDINGS "log_path=/shared/sanitizer/report:log_exe_name=1"

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    /* the order of loading is as it must be, but for this very library */
    return "verify_asan_link_order=0:detect_leaks=0:quarantine_size_mb=16:" FINDINGS;
}

__attribute__((visibility("default"))) const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1:" FINDINGS;
}

__attribute__((constructor)) static void stay_here(void)
{
    unsetenv("LD_PRELOAD");
}
