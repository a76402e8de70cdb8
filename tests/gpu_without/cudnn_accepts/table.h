/* tests/gpu_without/cudnn_accepts/table.h - the answers as the tables of doc/gpu-graphs.md. */
#ifndef HPCT_TESTS_GPU_WITHOUT_CUDNN_ACCEPTS_TABLE_H
#define HPCT_TESTS_GPU_WITHOUT_CUDNN_ACCEPTS_TABLE_H

#include "tests/gpu_without/cudnn_accepts/graphs.h"

#include <stdio.h>

/* A device, and how much machine code the library has for it. */
typedef struct accepts_device {
    int major, minor;
    int engines, others; /* cubins in libcudnn_engines_precompiled and in libcudnn_cnn */
} accepts_device;
extern accepts_device accepts_about[DEVICES_ALL];

/* "9.19.0" */
void accepts_version(char *text, size_t size);

/* All tables, of all models and devices. */
void accepts_write(FILE *out);
/* Lines of one of them, of those devices that were asked about all models. */
void accepts_write_kinds(FILE *out);

#endif
