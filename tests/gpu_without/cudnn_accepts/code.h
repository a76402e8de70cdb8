/* tests/gpu_without/cudnn_accepts/code.h - the machine code in a library of CUDA's. */
#ifndef HPCT_TESTS_GPU_WITHOUT_CUDNN_ACCEPTS_CODE_H
#define HPCT_TESTS_GPU_WITHOUT_CUDNN_ACCEPTS_CODE_H

#include <stddef.h>

/* Counts the cubins in `bytes` of memory that run on a device of this compute capability: those of
 * the same major version that are not newer. */
int accepts_count_cubins(const void *memory, size_t bytes, int major, int minor);

/* The same in a library that is in the folder of cuDNN's; -1 if it cannot be read. */
int accepts_count_code(const char *library, int major, int minor);

#endif
