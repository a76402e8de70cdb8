/* agent/rank/node_state.h - what /proc and /sys tell of the node under this rank: taken twice, the
 * difference says why it was slow in between. Local; what cannot be read is left out. */
#ifndef HPCT_AGENT_RANK_NODE_STATE_H
#define HPCT_AGENT_RANK_NODE_STATE_H

#include <hpctrain/status.h>
#include <stdint.h>

typedef struct hpct_rank_node_state hpct_rank_node_state;

/* Reads some files per process of the node: a few milliseconds. The frequency is that of the
 * moment: take the second state while the CPUs are warm. */
hpct_status hpct_rank_node_state_take(hpct_rank_node_state **out);
void hpct_rank_node_state_free(hpct_rank_node_state *state); /* NULL is allowed */

/* The same with other folders in the place of /proc and /sys. */
hpct_status hpct_rank_node_state_take_in(hpct_rank_node_state **out, const char *proc,
                                         const char *sys);

/* Between two states; of the CPUs that this rank may use. Zeros: nothing, or unknown. */
typedef struct hpct_rank_node_change {
    double seconds;
    int cpus;
    double mhz, most_mhz;              /* mean at the end, and the most that they can */
    uint64_t throttles;                /* times that a core or package was throttled */
    double stolen;                     /* share of CPU time that the hypervisor gave to others */
    uint64_t quota_periods, throttled; /* of a cgroup's CPU limit; in how many it had to wait */
    double others;                     /* CPUs used by processes that are not of this step */
    char busiest[16];                  /* the one of them that used most, */
    int busiest_pid;                   /* and its number; 0: none */
    char interface[16];                /* network interface with most errors and drops */
    uint64_t errors, drops;
} hpct_rank_node_change;

void hpct_rank_node_state_compare(hpct_rank_node_change *change, const hpct_rank_node_state *before,
                                  const hpct_rank_node_state *after);

#define HPCT_RANK_NODE_PHRASE 320

/* "CPUs at 1200 of 3800 MHz; the hypervisor took 23 % of CPU time", or "" if nothing stands out. */
void hpct_rank_node_change_describe(const hpct_rank_node_change *change,
                                    char text[HPCT_RANK_NODE_PHRASE]);

#endif
