/* spank/stage/place.h - puts the entries of a list below a folder: under a lock, after checking
 * that they fit, under names of our own first and then renamed, so that a name below the folder is
 * always a whole copy. What an earlier run put there and is unchanged, source and copy, is left. */
#ifndef HPCT_STAGE_PLACE_H
#define HPCT_STAGE_PLACE_H

#include "spank/stage/broadcast_team.h"
#include "spank/stage/entry.h"
#include "spank/stage/mode.h"
#include "spank/stage/report.h"

typedef struct hpct_place {
    const char *to;
    hpct_stage_mode mode; /* extract: files are archives, whose content is put into a folder DST */
    bool follow;          /* links out of a source's folder stand for what they lead to */
    uint64_t memory;      /* bytes that the job has on this node; 0: not known */
    uint64_t max;         /* bytes in all; 0: no bound but the disk */
    char *const *allowed; /* [num_allowed] prefixes that sources must lie below; none: any */
    int num_allowed;
    hpct_team team; /* count 0 or 1: this node stages alone */
} hpct_place;

/* HPCT_ERR_NO_INPUT: a source is missing or unreadable; HPCT_ERR_DATA: it holds what cannot be
 * copied; HPCT_ERR_CONFIG: not allowed here, or above max; HPCT_ERR_IO: disk full, write error. */
hpct_status hpct_place_all(const hpct_place *place, const hpct_stage_list *list,
                           hpct_report *report);

#endif
