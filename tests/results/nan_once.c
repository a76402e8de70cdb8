/* nan_once: the NAN_AT-th logarithm, of the loss of one sample, is not a number, for LD_PRELOAD.
 * NAN_RUNS: a command of the shell that is run then. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

__attribute__((visibility("default"))) double log(double x)
{
    static double (*real)(double);
    static long calls;
    const char *at = getenv("NAN_AT"), *runs = getenv("NAN_RUNS");
    if (real == NULL)
        *(void **) &real = dlsym(RTLD_NEXT, "log");
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != (at != NULL ? atol(at) : 0))
        return real(x);
    if (runs != NULL && system(runs) != 0)
        abort();
    return NAN;
}
