/* agent/checkpoint/holder.h - who holds the lock of a folder: a JSON object, and whether that
 * process still lives as far as this machine can tell. Of half a file, or NULL, nothing is known.
 */
#ifndef HPCT_AGENT_CHECKPOINT_HOLDER_H
#define HPCT_AGENT_CHECKPOINT_HOLDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum hpct_ckpt_holder_life {
    HPCT_CKPT_HOLDER_LIVES,
    HPCT_CKPT_HOLDER_ENDED,
    HPCT_CKPT_HOLDER_UNKNOWN, /* on another machine, or hidden from this user */
} hpct_ckpt_holder_life;

/* This process, with a new token; NULL when out of memory. */
json_t *hpct_ckpt_holder_self(void);

/* Whether both have the same token. */
bool hpct_ckpt_holder_same(const json_t *a, const json_t *b);

/* A job that was requeued, and a step that was started again, have ended before: also where this
 * machine cannot tell. A process that goes on nevertheless, on a node that is cut off, finds the
 * lock to be another one's before it completes a checkpoint. */
hpct_ckpt_holder_life hpct_ckpt_holder_look(const json_t *holder);

/* "job 7 on host n1 (process 12, since …)". */
void hpct_ckpt_holder_describe(const json_t *holder, char *text, size_t size);

#endif
