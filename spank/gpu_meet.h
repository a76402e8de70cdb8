/* spank/gpu_meet.h - exchange between the tasks of one step on one node in memory mapped before the
 * fork: each posts what it sees, one posts the assignment. Independent of distances. */
#ifndef HPCT_SPANK_GPU_MEET_H
#define HPCT_SPANK_GPU_MEET_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* What one task sees. Compared as a whole. */
typedef struct hpct_spank_gpu_view {
    unsigned char cpus[1024]; /* CPU affinity, a bitmap as of sched_getaffinity */
    char visible[6144];       /* CUDA_VISIBLE_DEVICES; "" if longer */
    uint64_t openable[2];     /* /dev/nvidia0 to 127: bitmap of those it can open */
    int gpus;                 /* number of entries in CUDA_VISIBLE_DEVICES */
} hpct_spank_gpu_view;

typedef struct hpct_spank_gpu_meet hpct_spank_gpu_meet;

/* For `tasks` tasks, before the fork. Returns HPCT_ERR_INTERNAL without memory (untouched pages use
 * none). */
hpct_status hpct_spank_gpu_meet_make(int tasks, hpct_spank_gpu_meet **out);
void hpct_spank_gpu_meet_free(hpct_spank_gpu_meet *meet);
int hpct_spank_gpu_meet_tasks(const hpct_spank_gpu_meet *meet);

/* Posts this task's view. */
void hpct_spank_gpu_meet_post(hpct_spank_gpu_meet *meet, int task, const hpct_spank_gpu_view *view);

/* Waits until all have posted; false on timeout. */
bool hpct_spank_gpu_meet_all(hpct_spank_gpu_meet *meet, int milliseconds);

/* A task's view; NULL if not posted. */
const hpct_spank_gpu_view *hpct_spank_gpu_meet_view(const hpct_spank_gpu_meet *meet, int task);

/* Posts a task's index (0 or more), or -1: use the fallback. */
void hpct_spank_gpu_meet_tell(hpct_spank_gpu_meet *meet, int task, int place);

/* The posted index; -1 also on timeout. */
int hpct_spank_gpu_meet_listen(hpct_spank_gpu_meet *meet, int task, int milliseconds);

#endif
