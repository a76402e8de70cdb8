/* tests/gpu_without/kernels/cuda_watch.h - what a kernel's threads do to memory: whether without an
 * order between them, and to how much of it.
 *
 * Kernels on the host are compiled with a call before each access (-fsanitize=thread, whose library
 * is not linked: these are CUDA's rules, not those of a host's threads). Two threads that reach one
 * byte, one of them to write, must be ordered: by a barrier of their block, by __syncwarp in their
 * warp (a shuffle orders nothing), or, in different blocks, by __threadfence and an atomic of the
 * one that all others' atomics are before. Whatever the order in which the host runs them.
 *
 * Not seen: launches on streams beside each other, and, unless HPC_TRAIN_LONG is set, what comes
 * behind the first 256 KiB that the threads of a launch reach, and, on the emulated machine, what
 * is launched again and again (machine/runtime.cc). */
#ifndef HPCT_TESTS_GPU_WITHOUT_KERNELS_CUDA_WATCH_H
#define HPCT_TESTS_GPU_WITHOUT_KERNELS_CUDA_WATCH_H

#include <stddef.h>

/* Around a launch, for the calling thread: stacks of kernels' threads are their own. `watched`:
 * else nothing is seen but with HPC_TRAIN_LONG. */
void hpct_watch_begin(const char *stacks, size_t bytes, bool watched);
/* Bytes of global memory that were read and written, each once. */
size_t hpct_watch_end();

/* The events of a launch, in the order in which the host has them. */
void hpct_watch_block(unsigned x, unsigned y, unsigned z); /* begins */
void hpct_watch_thread(unsigned thread);                   /* goes on, of that block */
void hpct_watch_barrier();                                 /* all threads have come to one */
void hpct_watch_warp(unsigned warp);                       /* all its lanes to __syncwarp */
void hpct_watch_fence();
void hpct_watch_atomic(const void *at);

/* Ends the program, unless a test has another. */
extern "C" {
extern void (*hpct_race_found)(const char *what);
}

#endif
