/* spank/marker.h - root's marker files beside the job directories: what the epilog needs to know
 * about a job and Slurm does not provide. Independent of Slurm. */
#ifndef HPCT_SPANK_MARKER_H
#define HPCT_SPANK_MARKER_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

#include "spank/child.h"

/* Records that results of the job are to be copied out, and as which user; may be called again.
 * Returns HPCT_ERR_IO or the error of hpct_spank_parent_open. */
hpct_status hpct_spank_marker_out(const char *parent, uint32_t job,
                                  const hpct_spank_person *person);

/* Whether that was recorded; *person is freed with hpct_spank_person_free. */
bool hpct_spank_marker_find_out(const char *parent, uint32_t job, hpct_spank_person *person);

/* Records that a step of the job runs on this node, or that it has ended normally. */
hpct_status hpct_spank_marker_step(const char *parent, uint32_t job, uint32_t step, bool runs);

/* Whether steps of the job are running, or were killed before their end was recorded. */
bool hpct_spank_marker_find_step(const char *parent, uint32_t job);

/* Removes all markers of the job; with `job` 0, of all jobs without a directory. */
void hpct_spank_marker_remove(const char *parent, uint32_t job);

void hpct_spank_person_free(hpct_spank_person *person);

#endif
