/* spank/tmpdir.h - the job directory: root creates and removes it where users can write beside and
 * within it at the same time. Works on open directories and follows no link. Independent of SPANK;
 * all arguments come from root. */
#ifndef HPCT_SPANK_TMPDIR_H
#define HPCT_SPANK_TMPDIR_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* "PARENT/42", freed by the caller; NULL if out of memory. (Slurm does not give steps of a requeued
 * job their restart count, so the name is the same; prolog and epilog remove the old directory.) */
char *hpct_spank_tmpdir_path(const char *parent, uint32_t job);

/* At start of slurmd: creates the parent before any user can take its name in a folder like /tmp,
 * and after a reboot moves old directories aside. May be called again. Returns HPCT_ERR_CONFIG or
 * HPCT_ERR_IO, naming the path. */
hpct_status hpct_spank_tmpdir_prepare(const char *parent);

/* Creates the job directory and beside it the folder of its stage-out records
 * (spank/spec/out_record.h), both with mode 0700, owned by the user; no error if they
 * exist, for any number of concurrent steps. The parent is created if only its last component is
 * missing, and must satisfy hpct_spank_parent_open. Foreign entries under the name are moved aside.
 * Returns HPCT_ERR_CONFIG or HPCT_ERR_IO, naming the path. */
hpct_status hpct_spank_tmpdir_make(const char *parent, uint32_t job, uid_t uid, gid_t gid);

/* As root: whether the job has a directory here that is the user's. Creates nothing. */
bool hpct_spank_tmpdir_find(const char *parent, uint32_t job, uid_t uid);

/* In a task, as the user: whether the directory is visible in its mount namespace, too. Returns
 * HPCT_ERR_CONFIG, with what the administrator should do, if not. */
hpct_status hpct_spank_tmpdir_check(const char *path);

/* Removes both and everything in them, as hpct_spank_remove does, and leftovers of killed steps; no
 * error if there is none. Call it when the job has no step on the node. Ends within about 20
 * seconds; the rest (HPCT_ERR_IO) is left beside the job directories under a name that only root
 * can access. */
hpct_status hpct_spank_tmpdir_remove(const char *parent, uint32_t job);

/* Continues unfinished removals for up to 20 seconds. */
void hpct_spank_tmpdir_sweep(const char *parent);

#endif
