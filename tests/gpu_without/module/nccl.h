/* tests/gpu_without/module/nccl.h - what stands in for NCCL behind the wall, between the processes
 * of one machine: sums in the order of ranks through shared memory. Where NCCL would hang or go
 * wrong because ranks ask for different things, or some in a recording and others not, it ends the
 * process and says so; and so it does when the others do not come. */
#ifndef HPCT_TESTS_GPU_WITHOUT_MODULE_NCCL_H
#define HPCT_TESTS_GPU_WITHOUT_MODULE_NCCL_H

#include "base/device_calls.h"

/* HPC_TRAIN_TEST_NCCL: it is there. */
bool module_has_nccl(int *version);

hpct_device_result module_unique_id(unsigned char id[HPCT_DEVICE_ID_BYTES]);
hpct_device_result module_init(void **comm, int size, const unsigned char *id, int rank);
hpct_device_result module_async_error(void *comm);
hpct_device_result module_group(void);
hpct_device_result module_encode(hpct_device_type type, size_t count, const float *src, void *dst,
                                 void *stream);
hpct_device_result module_decode(hpct_device_type type, size_t count, const void *src, float *dst,
                                 void *stream);
hpct_device_result module_all_reduce(void *data, size_t count, hpct_device_type type, void *comm,
                                     void *stream);
hpct_device_result module_broadcast(void *data, size_t count, hpct_device_type type, int root,
                                    void *comm, void *stream);
hpct_device_result module_all_gather(const void *src, void *dst, size_t count,
                                     hpct_device_type type, void *comm, void *stream);
hpct_device_result module_finalize(void *comm);
void module_destroy(void *comm);

#endif
