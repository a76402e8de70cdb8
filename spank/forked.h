/* spank/forked.h - a process that root has forked and that a user may have in his hands: it can be
 * stopped, traced, or held by a file system that does not answer, so it is waited for no longer
 * than was agreed, then killed, and left behind where not even that ends it. Knows nothing of
 * Slurm. */
#ifndef HPCT_SPANK_FORKED_H
#define HPCT_SPANK_FORKED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What is killed has this long to end. */
#define HPCT_KILL_SECONDS 5

/* Whom a child of root is to become, as Slurm says it: no look-up in a directory that may hang. */
typedef struct hpct_person {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* [num_groups] */
    size_t num_groups;
} hpct_person;

/* In the forked child, which ends where it fails: no blocked, ignored or caught signals;
 * `end_signal` when its parent dies. */
void hpct_forked_begin(int end_signal, pid_t parent);

/* In the forked child, before the user can stop it: proctrack/linuxproc kills nothing that has
 * slurmstepd's own name. */
void hpct_forked_rename(void);

/* In the forked child, which is root's: it becomes that user for good: real, effective and saved
 * ids, and groups. False when it did not, and must end. */
bool hpct_person_become(const hpct_person *person);

typedef struct hpct_forked_limits {
    int seconds;       /* in all; 0: as long as it shows that it is alive */
    int stall_seconds; /* without a sign of life; 0: no such limit */
    bool (*alive)(
        void *context); /* whether there was a sign since it was asked last; may be NULL */
    void *context;
} hpct_forked_limits;

typedef enum hpct_forked_end {
    HPCT_FORKED_ENDED,       /* *state is as waitpid leaves it */
    HPCT_FORKED_LOST,        /* its state is not known, or others killed it and it does not end */
    HPCT_FORKED_STALLED,     /* killed: no sign of life */
    HPCT_FORKED_OUT_OF_TIME, /* killed */
} hpct_forked_end;

/* Waits for it; the time begins at `start`, by hpct_forked_now. */
hpct_forked_end hpct_forked_await(pid_t pid, double start, const hpct_forked_limits *limits,
                                  int *state);

/* Seconds of a clock that nobody sets. */
double hpct_forked_now(void);

#endif
