/* Fibers for the threads of one block at a time. They are made by contexts and go on by jumps: a
 * change of contexts asks the kernel for the signal mask. */
#undef _FORTIFY_SOURCE /* its jumps stay on one stack */
#include "tests/gpu_without/kernels/cuda_on_host.h"

#include "tests/gpu_without/kernels/cuda_watch.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

enum state { RUNS, AT_BLOCK, AT_WARP, AT_SHUFFLE, ENDED };

constexpr size_t STACK = 64 << 10;
constexpr unsigned MOST = 1024, LANES = 32;

static struct fiber {
    ucontext_t context; /* where it begins */
    jmp_buf here;       /* where it waits */
    bool begun;
    state at;
    uint3 index;
    uint64_t value; /* shown to the warp */
} fibers[MOST];
static ucontext_t scheduler; /* which each begins in the place of */
static jmp_buf next;
static unsigned running, threads;
static const std::function<void()> *body;

static void wait_for(state what)
{
    fibers[running].at = what;
    if (_setjmp(fibers[running].here) == 0)
        _longjmp(next, 1);
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
static void go_on(fiber *f)
{
    if (_setjmp(next) != 0)
        return;
    if (f->begun)
        _longjmp(f->here, 1);
    f->begun = true;
    swapcontext(&scheduler, &f->context);
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
    fibers[running].value = mine;
    wait_for(AT_SHUFFLE);
    unsigned other = running / LANES * LANES + from;
    if (from >= LANES || other >= threads || fibers[other].at == ENDED)
        abort(); /* it shows nothing */
    uint64_t theirs = fibers[other].value;
    wait_for(AT_SHUFFLE);
    return theirs;
}

/* Lets those go on of [first, end) that are all at the same place or have ended. */
static bool release(unsigned first, unsigned end, state what)
{
    bool any = false;
    for (unsigned i = first; i < end; i++) {
        if (fibers[i].at != what && fibers[i].at != ENDED)
            return false;
        any = any || fibers[i].at == what;
    }
    for (unsigned i = first; i < end; i++) {
        if (fibers[i].at == what)
            fibers[i].at = RUNS;
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
        fiber *f = &fibers[i];
        if (!f->begun) {
            getcontext(&f->context);
            f->context.uc_stack.ss_sp = stacks + i * STACK;
            f->context.uc_stack.ss_size = STACK;
            makecontext(&f->context, run_fiber, 0);
        }
        f->at = RUNS;
        f->index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
    }
    do {
        for (running = 0; running < threads; running++) {
            if (fibers[running].at != RUNS)
                continue;
            threadIdx = fibers[running].index;
            hpct_watch_thread(running);
            go_on(&fibers[running]);
        }
    } while (release_all());
    for (unsigned i = 0; i < threads; i++) {
        if (fibers[i].at != ENDED)
            abort(); /* they wait for one another at different places */
    }
}

size_t hpct_host_run(dim3 grid, dim3 block, const std::function<void()> &kernel)
{
    static char *stacks = (char *) mmap(nullptr, MOST * STACK, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    gridDim = grid;
    blockDim = block;
    threads = block.x * block.y * block.z;
    body = &kernel;
    if (stacks == MAP_FAILED || threads > MOST || grid.y > 65535 || grid.z > 65535)
        abort();
    hpct_watch_begin(stacks, MOST * STACK);
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
    hpct_host_run(grid, block, kernel);
}

__attribute__((weak)) void *hpct_host_symbol(void *variable)
{
    return variable;
}
