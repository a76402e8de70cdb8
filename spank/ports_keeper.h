/* spank/ports_keeper.h - reservations of this node's ports. Root's slurmstepd holds them, each as a
 * lock on one byte of a file that only root can open, until it ends or is killed; its tasks ask it
 * through a socket that they inherit. Independent of SPANK and of other nodes. */
#ifndef HPCT_SPANK_PORTS_KEEPER_H
#define HPCT_SPANK_PORTS_KEEPER_H

#include <hpctrain/status.h>
#include <stdint.h>

/* In memory, and all names in it are root's: no user can delay access. */
#define HPCT_SPANK_PORTS_FOLDER "/run/hpc-train"

typedef struct hpct_spank_ports_keeper hpct_spank_ports_keeper;

/* Who has reserved a port, as root wrote it. */
typedef struct hpct_spank_ports_owner {
    uint32_t process, uid, job, step; /* process: slurmstepd's */
} hpct_spank_ports_owner;

/* As root, before users may be on the node: makes the folder. Returns the errors of
 * hpct_spank_parent_open. */
hpct_status hpct_spank_ports_folder_make(const char *folder);

/* slurmstepd, as root, before its tasks are forked; they may reserve up to `most` ports. */
hpct_status hpct_spank_ports_keeper_start(const char *folder, const hpct_spank_ports_owner *owner,
                                          int most, hpct_spank_ports_keeper **out);

/* In a task, while it is still root's: keeps nothing but the tasks' end of the socket. NULL is
 * allowed. */
void hpct_spank_ports_keeper_in_task(hpct_spank_ports_keeper *keeper);

/* Releases all ports. NULL is allowed. */
void hpct_spank_ports_keeper_end(hpct_spank_ports_keeper *keeper);

/* A task, one at a time: reserves the ports from `low` to `high`, all or none; or only asks. *taken
 * is the first one that another step has, and *owner that step (process 0: unknown); 0: none.
 * Returns HPCT_ERR_INTERNAL if slurmstepd does not answer or refuses. */
typedef enum hpct_spank_ports_wish {
    HPCT_SPANK_PORTS_TEST,
    HPCT_SPANK_PORTS_HOLD,
    HPCT_SPANK_PORTS_RELEASE
} hpct_spank_ports_wish;
hpct_status hpct_spank_ports_ask_keeper(const hpct_spank_ports_keeper *keeper,
                                        hpct_spank_ports_wish wish, int low, int high, int *taken,
                                        hpct_spank_ports_owner *owner);

#endif
