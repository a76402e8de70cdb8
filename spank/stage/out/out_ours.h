/* spank/stage/out/out_ours.h - list of the copies made from a job directory: a later version of one
 * may replace it, also from another step of the job on this node. */
#ifndef HPCT_SPANK_STAGE_OUT_OUT_OURS_H
#define HPCT_SPANK_STAGE_OUT_OUT_OURS_H

#include <stdbool.h>
#include <sys/stat.h>

typedef struct hpct_stage_out_ours hpct_stage_out_ours;

/* `from`: the job directory. NULL if there can be no list; that is allowed everywhere below,
 * and an empty list. */
hpct_stage_out_ours *hpct_stage_out_ours_open(const char *from);
void hpct_stage_out_ours_close(hpct_stage_out_ours *ours);

/* The copy `info` (its stat) of `name` in the entry to `to`. Add it before it gets its name, so
 * that steps which copy at the same time know it. */
void hpct_stage_out_ours_add(hpct_stage_out_ours *ours, const char *name, const char *to,
                             const struct stat *info);
bool hpct_stage_out_ours_has(hpct_stage_out_ours *ours, const char *name, const char *to,
                             const struct stat *info);

#endif
