/* nn/backend/permute.h - PERMUTE as sizes and distances: the same for forward and backward. */
#ifndef HPCT_NN_BACKEND_PERMUTE_H
#define HPCT_NN_BACKEND_PERMUTE_H

#include "nn/graph/op.h"

/* Result [size[0]]...[size[3]], in order; its elements are step[i] apart in the source. Absent axes
 * come first, with size 1. */
typedef struct hpct_backend_permute {
    int size[HPCT_MAX_RANK];
    size_t step[HPCT_MAX_RANK];
} hpct_backend_permute;

/* Of the result from the source; with `back` of the source's gradient from the result's. */
static inline hpct_backend_permute hpct_backend_permute_make(const hpct_op_spec *spec, bool back)
{
    hpct_backend_permute t = {{1, 1, 1, 1}, {0}};
    int rank = spec->permute.rank, first = HPCT_MAX_RANK - rank;
    size_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        int axis = spec->permute.axes[i];
        size_t in_step = 1;
        for (int k = axis + 1; k < rank; k++)
            in_step *= (size_t) spec->permute.size[k];
        t.size[first + (back ? axis : i)] = spec->permute.size[axis];
        t.step[first + (back ? axis : i)] = back ? step : in_step;
        step *= (size_t) spec->permute.size[axis];
    }
    return t;
}

#endif
