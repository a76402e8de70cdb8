/* spank/tmpdir.h - the job's own directory on a node's disk: made and removed as root, in a place
 * that users may write beside and, within it, at the same time. Every step works on open
 * directories and never follows a link. Knows nothing of SPANK; all that it is told comes from
 * root. */
#ifndef HPCT_SPANK_TMPDIR_H
#define HPCT_SPANK_TMPDIR_H

#include <hpctrain/status.h>
#include <stdint.h>
#include <sys/types.h>

/* The path of the job's directory, "PARENT/42". To be freed; NULL when out of memory. (Slurm tells
 * the steps of a requeued job nothing of its restarts, so the name is the same: it is the prolog
 * and the epilog that make a restarted job start afresh.) */
char *hpct_tmpdir_path(const char *parent, uint32_t job);

/* Makes the job's directory, mode 0700 and the user's; fine when it is there already, however many
 * steps of the job do this at once. The parent is made (0711, root's) when only it is missing; it
 * and every folder above it must belong to root and be writable by root alone, or be sticky as /tmp
 * is. Something left at the directory's name by another user is removed.
 * HPCT_ERR_CONFIG or HPCT_ERR_IO, naming the path. */
hpct_status hpct_tmpdir_make(const char *parent, uint32_t job, uid_t uid, gid_t gid);

/* Removes the job's directory with all that is in it; fine when there is none. Links are removed,
 * not followed; what is mounted within is left alone. Ends within about 20 seconds, even while a
 * process of the user still adds files. What is left then (HPCT_ERR_IO) lies beside the job
 * directories, under a name of its own that root alone can reach. */
hpct_status hpct_tmpdir_remove(const char *parent, uint32_t job);

/* Goes on, for up to 20 seconds, with removals that did not end: more files than can be removed in
 * that time, a process that went on writing, something mounted. */
void hpct_tmpdir_sweep(const char *parent);

#endif
