/* spank/gpu/request.h - request to the helper: the tasks, their CPUs and visible GPUs. One line per
 * task, "CPUS GPUS": "0-15,64 0,1,2,3". */
#ifndef HPCT_SPANK_GPU_REQUEST_H
#define HPCT_SPANK_GPU_REQUEST_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdio.h>

#define HPCT_GPUS_REQUEST_CPUS 8192 /* maximal number of CPUs */

typedef struct hpct_gpus_request_task {
    unsigned char cpus[HPCT_GPUS_REQUEST_CPUS / 8]; /* one bit per CPU */
    int *gpus;                                      /* [num_gpus], indices in the request's list */
    int num_gpus;
} hpct_gpus_request_task;

typedef struct hpct_gpus_request {
    hpct_gpus_request_task *tasks; /* [num_tasks] */
    int num_tasks;
    char **gpus; /* [num_gpus], all distinct names in order of occurrence */
    int num_gpus;
} hpct_gpus_request;

/* Returns HPCT_ERR_USAGE, with the line number, if malformed; *out is freed with
 * hpct_gpus_request_free.
 */
hpct_status hpct_gpus_request_read(FILE *file, hpct_gpus_request *out);
void hpct_gpus_request_free(hpct_gpus_request *request);

bool hpct_gpus_request_runs_on(const hpct_gpus_request_task *task, int cpu);

#endif
