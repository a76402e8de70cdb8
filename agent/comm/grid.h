/* agent/comm/grid.h - who adds up what for whom: ranks in groups (the ranks of a node), and the
 * owners of slices in them. No messages here. */
#ifndef HPCT_COMM_GRID_H
#define HPCT_COMM_GRID_H

#include <hpctrain/status.h>
#include <stddef.h>

/* Of one rank. A group's first `owners` members own a slice each of what is added up: within the
 * group they collect it; then the owners of one slice, one in each group (a column), add up theirs;
 * then they give it to their groups. With groups of one that is a reduce-scatter and an all-gather
 * over all ranks; with groups that are nodes, what goes between nodes is one node's gradients, and
 * all ranks of a node send their parts of it side by side. */
typedef struct hpct_grid {
    int *members;            /* [num_members] ranks of the group, ascending */
    int num_members, member; /* this rank is members[member] */
    int owners;              /* in every group alike: as many as the smallest has members */
    int *column; /* [num_groups] the ranks that own this rank's slice, by group; NULL: owns none */
    int num_groups, row; /* this rank is column[row] */
} hpct_grid;

/* groups[size]: a number for each rank, the same for those of one group, or NULL: each is alone.
 * The same on all ranks. */
hpct_status hpct_grid_make(hpct_grid *grid, const int *groups, int rank, int size);
void hpct_grid_free(hpct_grid *grid);

/* The part number `part` of `parts` of `count` floats: each but the last ones begins and ends at a
 * multiple of 16 floats (a cache line), and those at the end may be empty. */
typedef struct hpct_slice_range {
    size_t begin, count;
} hpct_slice_range;
hpct_slice_range hpct_grid_part(size_t count, int parts, int part);

#endif
