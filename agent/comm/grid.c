/* Groups, owners and slices of a reduction. */
#include "agent/comm/grid.h"

#include "base/status.h"

#include <stdlib.h>

#define ALIGN 16 /* floats in a cache line */

static int group_of(const int *groups, int rank)
{
    return groups != NULL ? groups[rank] : rank;
}

/* Index of a rank within its group, and the group's size. */
static int member_of(const int *groups, int rank, int size, int *num)
{
    int member = 0;
    *num = 0;
    for (int other = 0; other < size; other++) {
        if (group_of(groups, other) != group_of(groups, rank))
            continue;
        member += other < rank;
        ++*num;
    }
    return member;
}

/* The ranks with the same index in their groups, ordered by the first rank of the group. */
static void fill_column(hpct_comm_grid *grid, const int *groups, int rank, int size)
{
    for (int first = 0; first < size; first++) {
        int num, member = -1;
        if (member_of(groups, first, size, &num) != 0)
            continue;
        if (group_of(groups, first) == group_of(groups, rank))
            grid->row = grid->num_groups;
        for (int other = first; other < size && member < grid->member; other++) {
            if (group_of(groups, other) == group_of(groups, first) && ++member == grid->member)
                grid->column[grid->num_groups] = other;
        }
        grid->num_groups++;
    }
}

hpct_status hpct_comm_grid_make(hpct_comm_grid *grid, const int *groups, int rank, int size)
{
    *grid = (hpct_comm_grid){0};
    grid->members = calloc((size_t) size, sizeof *grid->members);
    grid->column = calloc((size_t) size, sizeof *grid->column);
    if (grid->members == NULL || grid->column == NULL) {
        hpct_comm_grid_free(grid);
        return hpct_fail_memory((size_t) size * sizeof *grid->members);
    }
    grid->owners = size;
    for (int other = 0; other < size; other++) {
        int num;
        member_of(groups, other, size, &num);
        if (num < grid->owners)
            grid->owners = num;
        if (group_of(groups, other) == group_of(groups, rank))
            grid->members[grid->num_members++] = other;
    }
    grid->member = member_of(groups, rank, size, &grid->num_members);
    if (grid->member < grid->owners) {
        fill_column(grid, groups, rank, size);
    } else {
        free(grid->column);
        grid->column = NULL;
    }
    return HPCT_OK;
}

void hpct_comm_grid_free(hpct_comm_grid *grid)
{
    free(grid->members);
    free(grid->column);
    *grid = (hpct_comm_grid){0};
}

hpct_comm_slice_range hpct_comm_grid_part(size_t count, int parts, int part)
{
    size_t lines = (count + ALIGN - 1) / ALIGN,
           each = (lines + (size_t) parts - 1) / (size_t) parts;
    size_t begin = (size_t) part * each * ALIGN, end = begin + each * ALIGN;
    begin = begin < count ? begin : count;
    end = end < count ? end : count;
    return (hpct_comm_slice_range){begin, end - begin};
}
