/* spank/marker.h - small files of root's beside the job directories: what the epilog must know of a
 * job and Slurm does not tell it. Knows nothing of Slurm. */
#ifndef HPCT_SPANK_MARKER_H
#define HPCT_SPANK_MARKER_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

#include "spank/child.h"

/* Says that results of the job are to be copied out, and as whom. Fine when it was said before.
 * HPCT_ERR_IO or what hpct_parent_open says. */
hpct_status hpct_marker_out(const char *parent, uint32_t job, const hpct_person *person);

/* Whether that was said; then *person is to be freed with hpct_person_free. */
bool hpct_marker_find_out(const char *parent, uint32_t job, hpct_person *person);

/* Says that a step of the job runs on this node, or that it has ended in an orderly way. */
hpct_status hpct_marker_step(const char *parent, uint32_t job, uint32_t step, bool runs);

/* Whether the job has steps that run, or that were killed before they could say that they ended. */
bool hpct_marker_find_step(const char *parent, uint32_t job);

/* Forgets all that was said of the job; with `job` 0, of all jobs that have no directory. */
void hpct_marker_remove(const char *parent, uint32_t job);

void hpct_person_free(hpct_person *person);

#endif
