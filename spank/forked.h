/* spank/forked.h - waiting for a child of root that a user may stop, trace or block: until a
 * timeout, then SIGKILL; if it still does not end, it is left behind. Independent of Slurm. */
#ifndef HPCT_SPANK_FORKED_H
#define HPCT_SPANK_FORKED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Seconds to end after SIGKILL. */
#define HPCT_SPANK_KILL_SECONDS 5

/* User for a child of root, as Slurm gives it: avoids a lookup in a directory service, which may
 * hang. */
typedef struct hpct_spank_person {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* [num_groups] */
    size_t num_groups;
} hpct_spank_person;

/* In the forked child, which exits on error: resets blocked, ignored and caught signals; the child
 * gets `end_signal` when its parent dies. */
void hpct_spank_forked_begin(int end_signal, pid_t parent);

/* In the forked child, before the user can stop it: renames it, as proctrack/linuxproc does not
 * kill processes with slurmstepd's name. */
void hpct_spank_forked_rename(void);

/* In the forked child of root: changes to that user permanently (real, effective and saved ids,
 * groups). The child must exit if it returns false. */
bool hpct_spank_person_become(const hpct_spank_person *person);

typedef struct hpct_spank_forked_limits {
    int seconds;       /* total timeout; 0: none while it is alive */
    int stall_seconds; /* timeout without heartbeat; 0: none */
    bool (*alive)(
        void *context); /* whether there was a heartbeat since the last call; may be NULL */
    void *context;
} hpct_spank_forked_limits;

typedef enum hpct_spank_forked_end {
    HPCT_SPANK_FORKED_ENDED,       /* *state as from waitpid */
    HPCT_SPANK_FORKED_LOST,        /* state unknown, or killed by others without ending */
    HPCT_SPANK_FORKED_STALLED,     /* killed: no heartbeat */
    HPCT_SPANK_FORKED_OUT_OF_TIME, /* killed: timeout */
} hpct_spank_forked_end;

/* Waits for the process; timeouts count from `start` (hpct_spank_forked_now). */
hpct_spank_forked_end hpct_spank_forked_await(pid_t pid, double start,
                                              const hpct_spank_forked_limits *limits, int *state);

/* Seconds of a monotonic clock. */
double hpct_spank_forked_now(void);

#endif
