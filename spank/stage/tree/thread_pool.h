/* spank/stage/tree/thread_pool.h - thread pool that processes blocks of data while the next are
 * produced. Blocks are processed in any order and returned in the order submitted. Independent of
 * the work. It grows while another thread would help, which is measured for other threads, too. */
#ifndef HPCT_SPANK_STAGE_TREE_THREAD_POOL_H
#define HPCT_SPANK_STAGE_TREE_THREAD_POOL_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hpct_stage_pace_kind {
    HPCT_STAGE_PACE_EARLY, /* not enough data yet */
    HPCT_STAGE_PACE_BUSY,
    HPCT_STAGE_PACE_WAITS,
    HPCT_STAGE_PACE_SHARES,
} hpct_stage_pace_kind;

/* State of one thread; zero-initialized. */
typedef struct hpct_stage_pace {
    double wall, cpu;   /* seconds of work since the last answer; during work minus its start */
    long waits, shares; /* voluntary and involuntary context switches */
} hpct_stage_pace;

/* Before a piece of work, in the thread that does it. */
void hpct_stage_pace_begin(hpct_stage_pace *pace);
void hpct_stage_pace_end(hpct_stage_pace *pace);

/* After a piece of work. Any answer but HPCT_STAGE_PACE_EARLY resets the state. */
hpct_stage_pace_kind hpct_stage_pace_check(hpct_stage_pace *pace);

/* Voluntary context switches of this thread: more of them after a read show that it blocked, which
 * more threads would hide. */
long hpct_stage_pace_waits(void);

/* Number of usable cores, at most `most`. */
int hpct_stage_pace_cores(int most);

typedef struct hpct_stage_pool hpct_stage_pool;

typedef struct hpct_stage_pool_job {
    hpct_status (*work)(void *context, const uint8_t *data, size_t size); /* in several threads */
    void (*back)(void *context); /* the oldest block is finished; one call at a time; NULL: none */
    void *context;
} hpct_stage_pool_job;

/* At most `threads` threads, the second and later ones started only if they would help (pace.h),
 * and at most `most` blocks in flight. NULL if out of memory. */
hpct_stage_pool *hpct_stage_pool_new(const hpct_stage_pool_job *job, int threads, int most);

/* Waits while `most` blocks are in flight, then submits this one. Returns the first error of any
 * block so far; after an error nothing is processed any more. */
hpct_status hpct_stage_pool_give(hpct_stage_pool *workers, const uint8_t *data, size_t size);

/* For a block that the caller has processed itself: it is returned in order. */
void hpct_stage_pool_give_done(hpct_stage_pool *workers);

/* Waits until all blocks are finished. */
hpct_status hpct_stage_pool_wait(hpct_stage_pool *workers);

/* Ends the threads. NULL is allowed. */
void hpct_stage_pool_free(hpct_stage_pool *workers);

#endif
