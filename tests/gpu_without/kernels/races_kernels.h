/* tests/gpu_without/kernels/races_kernels.h - kernels of which some race. */
#ifndef HPCT_TESTS_GPU_WITHOUT_KERNELS_RACES_KERNELS_H
#define HPCT_TESTS_GPU_WITHOUT_KERNELS_RACES_KERNELS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum race_case {
    /* threads of a block */
    RACE_NONE,          /* a barrier between a write and the read of it */
    RACE_NO_BARRIER,    /* none */
    RACE_OVERWRITE,     /* none before what is read is written again */
    RACE_WARP_NONE,     /* __syncwarp, for lanes of a warp */
    RACE_SHUFFLE,       /* a shuffle in its place */
    RACE_BETWEEN_WARPS, /* __syncwarp, for threads of different ones */
    /* blocks */
    RACE_BLOCKS_WRITE, /* the same */
    RACE_BLOCKS_READ,  /* what another may not have written yet */
    RACE_TICKET_NONE,  /* the last one reads, which knows that it is */
    RACE_TICKET_EARLY, /* no fence before it is said that something is there */
    RACE_TICKET_LATE,  /* none behind */
    RACE_TICKET_ALONE, /* one thread knows, and reads */
    /* no races */
    RACE_UNALIGNED, /* 16 bytes where 4 begin */
    RACE_BEHIND,    /* behind the end of what a block shares */
} race_case;

void races_run(race_case of);
extern void (*hpct_race_found)(const char *what); /* tests/gpu_without/kernels/cuda_watch.h */

#ifdef __cplusplus
}
#endif

#endif
