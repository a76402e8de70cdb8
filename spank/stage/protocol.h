/* spank/stage/protocol.h - stages the sources of a list below a folder: under a lock, after
 * checking that they fit, under temporary names that are then renamed, so that a name below the
 * folder is always a complete copy. Unchanged copies of an earlier run are kept. The nodes of a
 * step take the same steps together. */
#ifndef HPCT_SPANK_STAGE_PROTOCOL_H
#define HPCT_SPANK_STAGE_PROTOCOL_H

#include "spank/spec/entry.h"
#include "spank/spec/stage_plan.h"
#include "spank/stage/net/broadcast_team.h"
#include "spank/stage/tree/report.h"

typedef struct hpct_stage_job {
    const char *to;
    hpct_spec_stage_request request;
    bool follow;          /* copy the targets of links that lead out of a source */
    uint64_t memory;      /* memory limit of the job on this node; 0: unknown */
    uint64_t max;         /* limit of all bytes; 0: only the disk's */
    char *const *allowed; /* [num_allowed] prefixes of permitted sources; none: any */
    int num_allowed;
    hpct_stage_team team; /* count 0 or 1: this node stages alone */
} hpct_stage_job;

/* Returns HPCT_ERR_NO_INPUT if a source is missing or unreadable; HPCT_ERR_DATA if it contains
 * items that cannot be copied; HPCT_ERR_CONFIG if not permitted or above max; HPCT_ERR_IO if the
 * disk is full or writing fails. */
hpct_status hpct_stage_all(const hpct_stage_job *job, const hpct_spec_stage_list *list,
                           hpct_stage_report *report);

#endif
