/* spank/tmpdir.h - the job's own directory on a node's disk: made and removed as root, in a place
 * that users may write beside and, within it, at the same time. Every step works on open
 * directories and never follows a link. Knows nothing of SPANK; all that it is told comes from
 * root. */
#ifndef HPCT_SPANK_TMPDIR_H
#define HPCT_SPANK_TMPDIR_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The path of the job's directory, "PARENT/42". To be freed; NULL when out of memory. (Slurm tells
 * the steps of a requeued job nothing of its restarts, so the name is the same: it is the prolog
 * and the epilog that make a restarted job start afresh.) */
char *hpct_tmpdir_path(const char *parent, uint32_t job);

/* When the node's daemon starts: makes the parent, before any user can take its name in a folder
 * like /tmp, and after a restart of the machine puts aside what the jobs of before have left. Fine
 * when called again. HPCT_ERR_CONFIG or HPCT_ERR_IO, naming the path. */
hpct_status hpct_tmpdir_prepare(const char *parent);

/* Makes the job's directory, mode 0700 and the user's; fine when it is there already, however many
 * steps of the job do this at once. The parent is made when only it is missing, and must be as
 * hpct_parent_open wants it. Something left at the directory's name by another user is put aside.
 * HPCT_ERR_CONFIG or HPCT_ERR_IO, naming the path. */
hpct_status hpct_tmpdir_make(const char *parent, uint32_t job, uid_t uid, gid_t gid);

/* As root: whether the job has a directory here, and it is the user's. Nothing is made. */
bool hpct_tmpdir_find(const char *parent, uint32_t job, uid_t uid);

/* In a task, as the user: whether it is there for him, too. HPCT_ERR_CONFIG, saying what the
 * administrator is to do, when it is not. */
hpct_status hpct_tmpdir_check(const char *path);

/* Removes the job's directory with all that is in it, as hpct_remove does, and what steps that were
 * killed while they made it have left; fine when there is none. To be called when the job has no
 * step on the node. Ends within about 20 seconds. What is left then (HPCT_ERR_IO) lies beside the
 * job directories, under a name of its own that root alone can reach. */
hpct_status hpct_tmpdir_remove(const char *parent, uint32_t job);

/* Goes on, for up to 20 seconds, with removals that did not end: more files than can be removed in
 * that time, something mounted. */
void hpct_tmpdir_sweep(const char *parent);

#endif
