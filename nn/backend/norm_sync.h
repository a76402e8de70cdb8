/* nn/backend/norm_sync.h - communication of synchronized BatchNormalization, for every backend.
 * Private to nn/. */
#ifndef HPCT_NN_BACKEND_NORM_SYNC_H
#define HPCT_NN_BACKEND_NORM_SYNC_H

#include "nn/graph/op.h"

/* Whether this call's statistics are over all replicas. */
static inline bool hpct_backend_norm_is_synced(const hpct_op_spec *spec, const hpct_op_call *call)
{
    return spec->norm.synchronized && call->training && call->replicas != NULL;
}

/* Floats of `room` below. */
#define HPCT_BACKEND_NORM_SYNC_ROOM(channels) (2 * (size_t) (channels) + 1)

/* In: mean and squares, the sum of squared distances from it, of this replica's rows, per channel;
 * zeros without rows. Out: those of all rows, and *total, their number. Two passes, the means
 * first, to avoid cancellation. */
hpct_status hpct_backend_norm_sync_moments(const hpct_graph_step_peers *replicas, size_t channels,
                                           size_t rows, float *mean, float *squares, float *room,
                                           float *total);

/* room[2][channels]: the two sums of backward over all replicas; `sum` and `sum_x` are
 * unchanged. */
hpct_status hpct_backend_norm_sync_sums(const hpct_graph_step_peers *replicas, size_t channels,
                                        const float *sum, const float *sum_x, float *room);

#endif
