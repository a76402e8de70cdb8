/* spank/stage/crew.h - threads that work blocks of data off while the next ones come. Several
 * blocks are worked on at once, in no order; they are given back in the order in which they were
 * given. Knows nothing of what the work is. */
#ifndef HPCT_STAGE_CREW_H
#define HPCT_STAGE_CREW_H

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hpct_crew hpct_crew;

typedef struct hpct_crew_job {
    hpct_status (*work)(void *context, const uint8_t *data, size_t size); /* in several threads */
    void (*back)(void *context); /* the oldest block is not needed any more; one call at a time */
    void *context;
} hpct_crew_job;

/* At most `threads`, of which each but the first is started when one more would help (see pace.h),
 * and `most` blocks at a time. NULL when out of memory. */
hpct_crew *hpct_crew_new(const hpct_crew_job *job, int threads, int most);

/* Waits while too many blocks are unfinished, then begins with this one. The status is that of the
 * first failure so far, also of another block; nothing is begun after it. */
hpct_status hpct_crew_give(hpct_crew *crew, const uint8_t *data, size_t size);

/* The caller has worked this block off himself: it is given back in its turn. */
void hpct_crew_give_done(hpct_crew *crew);

/* Waits until nothing is unfinished. */
hpct_status hpct_crew_wait(hpct_crew *crew);

/* Ends the threads. NULL is fine. */
void hpct_crew_free(hpct_crew *crew);

#endif
