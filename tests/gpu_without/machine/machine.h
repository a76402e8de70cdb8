/* tests/gpu_without/machine/machine.h - a machine whose GPUs the host emulates: what the stand-ins
 * for CUDA's runtime, cuBLAS, cuDNN and NCCL share.
 *
 * Streams do as little as they may: what is enqueued runs when somebody waits for it or the process
 * rests, or, with HPC_TRAIN_TEST_SCHEDULE=SEED, at moments drawn. A graph's nodes run in an order
 * drawn from those that its edges allow. Memory of a device can be reached while it computes alone;
 * new memory is poisoned, and what was written behind it is found when it is released. */
#ifndef HPCT_TESTS_GPU_WITHOUT_MACHINE_MACHINE_H
#define HPCT_TESTS_GPU_WITHOUT_MACHINE_MACHINE_H

#include <cuda_runtime_api.h>
#include <functional>
#include <stddef.h>
#include <stdint.h>
#include <string>

namespace emulated
{

/* Asked again until it has ended: true. */
typedef std::function<bool()> work;
/* Makes the work of one run: a graph's nodes run often. */
typedef std::function<work()> task;

/* All calls of the stand-ins hold it; nobody else of the process computes meanwhile. At its end
 * devices are closed. */
struct turn {
    turn();
    ~turn();
};

/* At the end of a stream, or into the graph that is captured from it. */
cudaError_t enqueue(cudaStream_t stream, task what);
task once(std::function<void()> body);
/* A call of a library, whose the workspace is while it computes: what lay there is lost, and nobody
 * else, in a branch of the same graph, may write there meanwhile. */
task with_workspace(void *workspace, size_t bytes, std::function<void()> body);

/* Until then devices go on; aborts after a minute. */
void wait_until(cudaStream_t first, const std::function<bool()> &done);

/* Of the calling thread. */
cudaError_t tell(cudaError_t error); /* remembers it for cudaGetLastError, returns it */
int current_device();
bool is_faulty(int device); /* a kernel did what it must not */
bool is_capturing();
/* What a capture forbids ends it: false, and the error is told. */
bool may(const char *call);

/* ---- memory ---- */

int count_devices();
void *allocate(int device, size_t bytes); /* NULL: there is not as much */
void release(void *memory);               /* what was enqueued before has ended */
void memory_left(int device, size_t *left, size_t *all);
int device_of(const void *memory); /* -1: the host's */
bool is_pinned(const void *host);
void *allocate_pinned(size_t bytes);
void release_pinned(void *host);
/* Opened at need, closed at the end of the turn, but for those that are kept open. */
void open(int device);
void keep_open(int device, bool keep);

/* ---- what tests ask for, and are told ---- */

void count_sent(size_t bytes); /* HPC_TRAIN_TEST_ACCOUNT */
void count_wait();
void count_enqueued();
/* HPC_TRAIN_TEST_TRAFFIC: bytes that were read and written. */
void count_traffic(const std::string &by, size_t bytes);
void tell_recording(size_t nodes, size_t deep, size_t launches); /* HPC_TRAIN_TEST_RECORDINGS */
bool is_broken(int device);                                      /* HPC_TRAIN_TEST_FAILS */
bool refuses(const char *call);                                  /* HPC_TRAIN_TEST_REFUSES */
/* What libraries have computed so far, of this process; HPC_TRAIN_TEST_SLOW_LIBRARIES. */
void count_library();
size_t library_calls();
bool libraries_are_slow();

/* ---- chance, that each run repeats ---- */

uint32_t draw(uint32_t below);

[[noreturn]] void broken(const char *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace emulated

#endif
