/* agent/comm/circulant.h - sums and gathers over all ranks on our own TCP connections
 * (agent/comm/peers.h): 2 ceil(log2 ranks) messages per sum, ceil(log2 ranks) per gather or small
 * sum, for any number of ranks, with minimal bytes.
 *
 * J. L. Träff, Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms, 2024: in a circulant
 * graph with distances ceil(p/2), ceil(p/4), … 1 each rank sends partial sums of the blocks that
 * the receiver and those behind it own; the same way back, blocks are gathered. */
#ifndef HPCT_AGENT_COMM_CIRCULANT_H
#define HPCT_AGENT_COMM_CIRCULANT_H

#include "agent/comm/comm.h"

typedef struct hpct_comm_circulant hpct_comm_circulant;

/* most: floats of the largest sum. Allocates everything. Collective over `comm`. Returns
 * HPCT_ERR_PEER on all ranks if some cannot connect before the timeout. */
hpct_status hpct_comm_circulant_open(hpct_comm_circulant **out, hpct_comm *comm, size_t most,
                                     int seconds);
void hpct_comm_circulant_close(hpct_comm_circulant *circulant); /* NULL is allowed */

/* The same on existing connections, to at least the ranks that hpct_comm_circulant_want marks in
 * wanted[size]; takes ownership, also on error. Local. */
struct hpct_comm_peers;
void hpct_comm_circulant_want(int rank, int size, bool *wanted);
hpct_status hpct_comm_circulant_over(hpct_comm_circulant **out, struct hpct_comm_peers *peers,
                                     int rank, int size, size_t most);

/* As in hpct_comm_ops: same bits on all ranks, which make the same calls. count is at most
 * `most`. */
hpct_status hpct_comm_circulant_sum(hpct_comm_circulant *circulant, float *data, size_t count);
hpct_status hpct_comm_circulant_gather(hpct_comm_circulant *circulant, const float *mine,
                                       float *all, size_t count);

/* The same in bytes. */
hpct_status hpct_comm_circulant_gather_bytes(hpct_comm_circulant *circulant, const void *mine,
                                             void *all, size_t bytes);
hpct_status hpct_comm_circulant_broadcast(hpct_comm_circulant *circulant, void *data, size_t bytes,
                                          int root);

/* The sum in two halves: of data[rows][width] each rank gets the sums of rows [*first, *first +
 * *own); then every rank's rows are gathered as they are by then, together with the piggybacked
 * sums of piggyback[num], in rank order (num at most HPCT_COMM_CIRCULANT_PIGGYBACK). */
#define HPCT_COMM_CIRCULANT_PIGGYBACK 8
hpct_status hpct_comm_circulant_reduce(hpct_comm_circulant *circulant, float *data, size_t rows,
                                       size_t width, size_t *first, size_t *own);
hpct_status hpct_comm_circulant_spread(hpct_comm_circulant *circulant, float *data, size_t rows,
                                       size_t width, float *piggyback, size_t num);

/* Minimal number of floats for the two halves; a plain sum of fewer takes half the messages. */
size_t hpct_comm_circulant_halves_from(const hpct_comm_circulant *circulant);

#endif
