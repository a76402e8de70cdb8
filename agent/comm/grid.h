/* agent/comm/grid.h - grid of ranks for hierarchical reductions: groups (the ranks of a node) and
 * owners of slices. No messages here. */
#ifndef HPCT_AGENT_COMM_GRID_H
#define HPCT_AGENT_COMM_GRID_H

#include <hpctrain/status.h>
#include <stddef.h>

/* A rank's view. A group's first `owners` members own a slice each: it is collected within the
 * group, then summed by its owners in all groups (a column), then distributed within the group.
 * With groups of one this is reduce-scatter and all-gather over all ranks; with nodes as groups,
 * each node's gradients are sent between nodes only once, and all ranks of a node send their parts
 * in parallel. */
typedef struct hpct_comm_grid {
    int *members;            /* [num_members] ranks of the group, ascending */
    int num_members, member; /* this rank is members[member] */
    int owners;              /* equal in every group: the size of the smallest */
    int *column; /* [num_groups] owners of this rank's slice, by group; NULL: it owns none */
    int num_groups, row; /* this rank is column[row] */
} hpct_comm_grid;

/* groups[size]: a number per rank, equal within a group, or NULL: each alone. Equal on all ranks.
 */
hpct_status hpct_comm_grid_make(hpct_comm_grid *grid, const int *groups, int rank, int size);
void hpct_comm_grid_free(hpct_comm_grid *grid);

/* Part `part` of `parts` of `count` floats, bounded at multiples of 16 floats (a cache line) except
 * at the end; the last ones may be empty. */
typedef struct hpct_comm_slice_range {
    size_t begin, count;
} hpct_comm_slice_range;
hpct_comm_slice_range hpct_comm_grid_part(size_t count, int parts, int part);

#endif
