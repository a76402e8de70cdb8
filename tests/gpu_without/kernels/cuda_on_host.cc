/* Fibers for the threads of one block at a time. They are made by contexts and go on by the
 * compiler's jumps: a change of contexts asks the kernel for the signal mask. */
#include "tests/gpu_without/kernels/cuda_on_host.h"

#include "tests/gpu_without/kernels/cuda_watch.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

enum state : unsigned char { RUNS, AT_BLOCK, AT_WARP, AT_SHUFFLE, ENDED };

/* What lies where it does on every stack would be in one place of the caches. */
constexpr size_t STACK = 64 << 10, APART = 320;
constexpr unsigned MOST = 1024, LANES = 32, SHIFTS = 50;

typedef void *jump[5];
static ucontext_t contexts[MOST]; /* where fibers begin */
static bool begun[MOST];
static jump here[MOST]; /* where they wait */
static state at[MOST];
static uint3 indices[MOST];
static uint64_t shown[MOST]; /* to the warp */
static ucontext_t scheduler; /* which each begins in the place of */
static jump next;
static unsigned running, threads;
static const std::function<void()> *body;

/* A function of its own, of which those that may be jumped into know nothing. */
__attribute__((noipa)) static void go_to(jump where)
{
    __builtin_longjmp(where, 1);
}

__attribute__((noipa)) static void wait_for(state what)
{
    at[running] = what;
    if (__builtin_setjmp(here[running]) == 0)
        go_to(next);
}

/* One block after the other. */
static void run_fiber()
{
    for (;;) {
        (*body)();
        wait_for(ENDED);
    }
}

/* Until it waits, or has ended its block. */
__attribute__((noipa)) static void go_on(unsigned fiber)
{
    if (__builtin_setjmp(next) != 0)
        return;
    if (begun[fiber])
        go_to(here[fiber]);
    begun[fiber] = true;
    swapcontext(&scheduler, &contexts[fiber]);
}

void __syncthreads()
{
    wait_for(AT_BLOCK);
}

void __syncwarp()
{
    wait_for(AT_WARP);
}

void __threadfence()
{
    hpct_watch_fence();
}

unsigned atomicAdd(unsigned *to, unsigned more)
{
    unsigned before = *to;
    hpct_watch_atomic(to);
    *to += more;
    return before;
}

unsigned hpct_host_lane()
{
    return running % LANES;
}

uint64_t hpct_host_shuffle(uint64_t mine, unsigned from)
{
    shown[running] = mine;
    wait_for(AT_SHUFFLE);
    unsigned other = running / LANES * LANES + from;
    if (from >= LANES || other >= threads || at[other] == ENDED)
        abort(); /* it shows nothing */
    uint64_t theirs = shown[other];
    wait_for(AT_SHUFFLE);
    return theirs;
}

/* Lets those go on of [first, end) that are all at the same place or have ended. */
static bool release(unsigned first, unsigned end, state what)
{
    bool any = false;
    for (unsigned i = first; i < end; i++) {
        if (at[i] != what && at[i] != ENDED)
            return false;
        any = any || at[i] == what;
    }
    for (unsigned i = first; i < end; i++) {
        if (at[i] == what)
            at[i] = RUNS;
    }
    return any;
}

static bool release_all()
{
    bool any = release(0, threads, AT_BLOCK);
    if (any)
        hpct_watch_barrier();
    for (unsigned i = 0; i < threads; i += LANES) {
        unsigned end = i + LANES < threads ? i + LANES : threads;
        any = release(i, end, AT_SHUFFLE) || any;
        if (release(i, end, AT_WARP)) {
            hpct_watch_warp(i / LANES);
            any = true;
        }
    }
    return any;
}

static void run_block(char *stacks)
{
    for (unsigned i = 0; i < threads; i++) {
        if (!begun[i]) {
            getcontext(&contexts[i]);
            contexts[i].uc_stack.ss_sp = stacks + i * STACK;
            contexts[i].uc_stack.ss_size = STACK - i % SHIFTS * APART;
            makecontext(&contexts[i], run_fiber, 0);
        }
        at[i] = RUNS;
        indices[i] = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    }
    do {
        for (running = 0; running < threads; running++) {
            if (at[running] != RUNS)
                continue;
            threadIdx = indices[running];
            hpct_watch_thread(running);
            go_on(running);
        }
    } while (release_all());
    for (unsigned i = 0; i < threads; i++) {
        if (at[i] != ENDED)
            abort(); /* they wait at different places */
    }
}

size_t hpct_host_run(dim3 grid, dim3 block, const std::function<void()> &kernel, bool watched)
{
    static char *stacks = (char *) mmap(nullptr, MOST * STACK, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    gridDim = grid;
    blockDim = block;
    threads = block.x * block.y * block.z;
    body = &kernel;
    if (stacks == MAP_FAILED || threads > MOST || grid.y > 65535 || grid.z > 65535)
        abort();
    hpct_watch_begin(stacks, MOST * STACK, watched);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                hpct_watch_block(x, y, z);
                run_block(stacks);
            }
    return hpct_watch_end();
}

/* Where nothing else is said. */
__attribute__((weak)) void hpct_host_launch(cudaStream_t, dim3 grid, dim3 block,
                                            std::function<void()> kernel, const char *)
{
    hpct_host_run(grid, block, kernel, true);
}

__attribute__((weak)) void *hpct_host_symbol(void *variable)
{
    return variable;
}

__attribute__((weak)) cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
