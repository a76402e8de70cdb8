/* spank/gpu_meet.h - where the tasks of one step on one node tell each other what they see, and one
 * of them tells the others what it found out: memory mapped before they are forked. Knows nothing
 * of GPUs' distances. */
#ifndef HPCT_SPANK_GPU_MEET_H
#define HPCT_SPANK_GPU_MEET_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* What one task sees. Filled and compared as a whole. */
typedef struct hpct_gpu_view {
    unsigned char cpus[1024]; /* on which it may run: a bit each, as sched_getaffinity has them */
    char visible[6144];       /* CUDA_VISIBLE_DEVICES; "" when it is longer */
    uint64_t openable[2];     /* /dev/nvidia0 to 127: a bit for each that it may open */
    int gpus;                 /* entries of CUDA_VISIBLE_DEVICES */
} hpct_gpu_view;

typedef struct hpct_gpu_meet hpct_gpu_meet;

/* For `tasks` tasks, before the fork. HPCT_ERR_INTERNAL without memory (of which untouched parts
 * take none). */
hpct_status hpct_gpu_meet_make(int tasks, hpct_gpu_meet **out);
void hpct_gpu_meet_free(hpct_gpu_meet *meet);
int hpct_gpu_meet_tasks(const hpct_gpu_meet *meet);

/* Shows the others this task's view. */
void hpct_gpu_meet_post(hpct_gpu_meet *meet, int task, const hpct_gpu_view *view);

/* Waits until all have posted; false when some have not within `milliseconds`. */
bool hpct_gpu_meet_all(hpct_gpu_meet *meet, int milliseconds);

/* A task's view; NULL when it has not posted. */
const hpct_gpu_view *hpct_gpu_meet_view(const hpct_gpu_meet *meet, int task);

/* Tells a task its place (0 or more), or -1: it must find one by itself. */
void hpct_gpu_meet_tell(hpct_gpu_meet *meet, int task, int place);

/* What was told; -1 also when nothing was within `milliseconds`. */
int hpct_gpu_meet_listen(hpct_gpu_meet *meet, int task, int milliseconds);

#endif
