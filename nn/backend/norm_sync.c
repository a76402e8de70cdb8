/* Synchronized BatchNormalization: the sums over replicas. */
#include "nn/backend/norm_sync.h"

#include "base/status.h"

#include <string.h>

hpct_status hpct_backend_norm_sync_moments(const hpct_graph_step_peers *replicas, size_t channels,
                                           size_t rows, float *mean, float *squares, float *room,
                                           float *total)
{
    for (size_t c = 0; c < channels; c++)
        room[c] = mean[c] * (float) rows;
    room[channels] = (float) rows;
    HPCT_TRY(replicas->sum(replicas->argument, room, channels + 1));
    *total = room[channels];
    for (size_t c = 0; c < channels; c++) {
        float all = room[c] / *total, delta = mean[c] - all;
        mean[c] = all;
        squares[c] += (float) rows * delta * delta;
    }
    return replicas->sum(replicas->argument, squares, channels);
}

hpct_status hpct_backend_norm_sync_sums(const hpct_graph_step_peers *replicas, size_t channels,
                                        const float *sum, const float *sum_x, float *room)
{
    memcpy(room, sum, channels * sizeof *room);
    memcpy(room + channels, sum_x, channels * sizeof *room);
    return replicas->sum(replicas->argument, room, 2 * channels);
}
