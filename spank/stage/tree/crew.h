/* spank/stage/tree/crew.h - thread pool that processes blocks of data while the next are produced.
 * Blocks are processed in any order and returned in the order submitted. Independent of the work.
 */
#ifndef HPCT_SPANK_STAGE_TREE_CREW_H
#define HPCT_SPANK_STAGE_TREE_CREW_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hpct_crew hpct_crew;

typedef struct hpct_crew_job {
    hpct_status (*work)(void *context, const uint8_t *data, size_t size); /* in several threads */
    void (*back)(void *context); /* the oldest block is finished; one call at a time */
    void *context;
} hpct_crew_job;

/* At most `threads` threads, the second and later ones started only if they would help (pace.h),
 * and at most `most` blocks in flight. NULL if out of memory. */
hpct_crew *hpct_crew_new(const hpct_crew_job *job, int threads, int most);

/* Waits while `most` blocks are in flight, then submits this one. Returns the first error of any
 * block so far; after an error nothing is processed any more. */
hpct_status hpct_crew_give(hpct_crew *crew, const uint8_t *data, size_t size);

/* For a block that the caller has processed itself: it is returned in order. */
void hpct_crew_give_done(hpct_crew *crew);

/* Waits until all blocks are finished. */
hpct_status hpct_crew_wait(hpct_crew *crew);

/* Ends the threads. NULL is allowed. */
void hpct_crew_free(hpct_crew *crew);

#endif
