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

/* The same over connections that there are already, to at least the ranks that hpct_circulant_want
 * marks in wanted[size], and that it takes over, also when it fails. Of this rank alone. */
struct hpct_peers;
void hpct_circulant_want(int rank, int size, bool *wanted);
hpct_status hpct_circulant_over(hpct_circulant **out, struct hpct_peers *peers, int rank, int size,
                                size_t most);

/* As in hpct_comm_ops: the same bits on all ranks, which call alike. count at most `most`. */
hpct_status hpct_circulant_sum(hpct_circulant *circulant, float *data, size_t count);
hpct_status hpct_circulant_gather(hpct_circulant *circulant, const float *mine, float *all,
                                  size_t count);

/* Likewise, in bytes. */
hpct_status hpct_circulant_gather_bytes(hpct_circulant *circulant, const void *mine, void *all,
                                        size_t bytes);
hpct_status hpct_circulant_broadcast(hpct_circulant *circulant, void *data, size_t bytes, int root);

/* The same sum in two halves: of data[rows][width] each rank gets the sums of the rows [*first,
 * *first
 * + *own), then those rows of every rank come to all, as it has them then, and with them the sums
 * of riders[num], in the order of ranks (num at most HPCT_CIRCULANT_RIDERS). */
#define HPCT_CIRCULANT_RIDERS 8
hpct_status hpct_circulant_reduce(hpct_circulant *circulant, float *data, size_t rows, size_t width,
                                  size_t *first, size_t *own);
hpct_status hpct_circulant_spread(hpct_circulant *circulant, float *data, size_t rows, size_t width,
                                  float *riders, size_t num);

/* Sums of fewer floats take half the messages when they are not made in halves. */
size_t hpct_circulant_halves_from(const hpct_circulant *circulant);

#endif
