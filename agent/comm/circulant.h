/* agent/comm/circulant.h - sums and gathers over all ranks for the steps of training, on
 * connections of our own (agent/comm/peers.h): 2 ceil(log2 ranks) messages for a sum, ceil(log2
 * ranks) for a gather or for a sum of few numbers, whatever the number of ranks, and the fewest
 * bytes.
 *
 * J. L. Träff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, 2024: with distances
 * ceil(p/2), ceil(p/4), … 1 between the ranks of a circulant graph each rank sends to the one that
 * far ahead its sums of the blocks which that one and those behind it answer for; the same way
 * back, the blocks are gathered. */
#ifndef HPCT_COMM_CIRCULANT_H
#define HPCT_COMM_CIRCULANT_H

#include "agent/comm/comm.h"

typedef struct hpct_circulant hpct_circulant;

/* most: floats of the largest sum. Collective over `comm`; takes all memory. HPCT_ERR_PEER on all
 * ranks where some cannot reach one another within the seconds. */
hpct_status hpct_circulant_open(hpct_circulant **out, hpct_comm *comm, size_t most, int seconds);
void hpct_circulant_close(hpct_circulant *circulant); /* allows NULL */

/* As in hpct_comm_ops: the same bits on all ranks, which call alike. count at most `most`. */
hpct_status hpct_circulant_sum(hpct_circulant *circulant, float *data, size_t count);
hpct_status hpct_circulant_gather(hpct_circulant *circulant, const float *mine, float *all,
                                  size_t count);

#endif
