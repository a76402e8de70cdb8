/* Loaded into hpc-train by LD_PRELOAD, lets it wait for 20 ms before each of oneDNN's operations,
 * until there is a file that is called as this library with ".go" behind it: a run that a test is
 * to meet while it trains does not end before, and leaves the cores to others. */
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

typedef dnnl_status_t execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int num_args,
                              const dnnl_exec_arg_t *args);

static void wait_a_little(void)
{
    static const char here;
    Dl_info info;
    char go[4096];
    if (dladdr(&here, &info) == 0)
        return;
    snprintf(go, sizeof go, "%s.go", info.dli_fname);
    if (access(go, F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

__attribute__((visibility("default"))) dnnl_status_t
dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int num_args,
                       const dnnl_exec_arg_t *args)
{
    static execute *next;
    if (next == NULL)
        *(void **) &next = dlsym(RTLD_NEXT, "dnnl_primitive_execute");
    wait_a_little();
    return next(primitive, stream, num_args, args);
}
