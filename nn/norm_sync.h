/* nn/norm_sync.h - what replicas tell one another in a synchronized BatchNormalization, for every
 * backend alike. Private to nn/. */
#ifndef HPCT_NN_NORM_SYNC_H
#define HPCT_NN_NORM_SYNC_H

#include "nn/op.h"

/* Whether this call's statistics are of all replicas. */
static inline bool hpct_norm_is_synced(const hpct_op_spec *spec, const hpct_op_call *call)
{
    return spec->norm.synchronized && call->training && call->replicas != NULL;
}

/* Floats of `room` below. */
#define HPCT_NORM_SYNC_ROOM(channels) (2 * (size_t) (channels) + 1)

/* In: mean and squares, the sum of squared distances from it, of this replica's rows, per channel;
 * zeros where there are no rows. Out: those of all rows, and *total, their number. Two passes: the
 * means meet first, so that nothing cancels. */
hpct_status hpct_norm_sync_moments(const hpct_replicas *replicas, size_t channels, size_t rows,
                                   float *mean, float *squares, float *room, float *total);

/* room[2][channels]: the two sums of backward over all replicas; those given are left as they are.
 */
hpct_status hpct_norm_sync_sums(const hpct_replicas *replicas, size_t channels, const float *sum,
                                const float *sum_x, float *room);

/* What a replica without samples has to say in place of node's forward and backward; nothing where
 * it is no synchronized BatchNormalization. Forward is the operation's own, with n of 0: it makes
 * the statistics with the others, and nothing of them. */
hpct_status hpct_norm_forward_absent(const hpct_model *model, int node);
hpct_status hpct_norm_backward_absent(const hpct_model *model, int node);

#endif
