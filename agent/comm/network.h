/* agent/comm/network.h - what the network between the ranks costs: measured once, by all of them,
 * with the collective that training uses; and the time of an all-reduce by that measure.
 * Knows the table of collectives alone. */
#ifndef HPCT_COMM_NETWORK_H
#define HPCT_COMM_NETWORK_H

#include "agent/comm/comm.h"

/* The usual model of a link (Hockney's): a message of B bytes takes latency + B / rate. */
typedef struct hpct_network {
    double latency_seconds;  /* of one message, the handling by both ends included */
    double bytes_per_second; /* that a rank sends while as many come in, adding them up included;
                                infinite where there is one rank */
    double host_seconds; /* of a rank's processor for a byte that it sends, while as many come in:
                            what no computation hides, waiting for it where others have it
                            included; 0 where it is not known, as where ranks
                            that wait look for messages all the time */
} hpct_network;

/* Adds data[count] up over the ranks; collective. */
typedef hpct_status hpct_network_sum(void *argument, float *data, size_t count);

#define HPCT_NETWORK_MOST_FLOATS ((size_t) 1 << 22) /* of one sum that is asked for */

/* What a sum has to take longer than one of a quarter of its size, for the rate to be taken from
 * both: before training, which waits for it, and of the few numbers of `hybrid`; and of gradients
 * where the answer is all that is wanted, and TCP may have the time that it takes to fill a link.
 */
#define HPCT_NETWORK_QUICKLY 60e-3
#define HPCT_NETWORK_THOROUGHLY 0.6

/* Measures by sums of few numbers, which take `rounds` times ceil(log2 ranks) messages one after
 * the other, and of larger and larger arrays, until one takes `enough` seconds longer and has
 * `like` / 2 floats or more, or has 16 MB (64 MB where `like` is more than twice that: links fill
 * slowly, and short sums say too little of long ones); takes about fifteen times that, on slow
 * links as long as the last one takes seven times. Every rank gets the same numbers. Collective. */
hpct_status hpct_network_measure_sums(hpct_comm *comm, hpct_network_sum *sum, void *argument,
                                      size_t few, int rounds, double enough, size_t like,
                                      hpct_network *network);

/* The same by the reductions that gradients travel by. */
hpct_status hpct_network_measure(hpct_comm *comm, double enough, size_t like,
                                 hpct_network *network);

/* Seconds that the ranks need to add up `bytes` on each: 2 ceil(log2 ranks) messages, one after the
 * other, and 2 (ranks - 1) / ranks of the bytes out of each rank, the least that is possible
 * (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms", 2009). 0 for one rank. */
double hpct_network_allreduce_seconds(const hpct_network *network, int ranks, double bytes);

#define HPCT_NETWORK_MOST_BUCKETS 32

/* Into how many parts gradients of so many bytes are best cut, that travel while the next are
 * computed: n of them cost n times m messages, m = max(4, 2 ceil(log2 ranks)), and 1/n of the
 * transfer is still to be done when the last gradient is there; the sum of both is least for
 * n = sqrt(transfer / (m latencies)). */
int hpct_network_buckets(const hpct_network *network, int ranks, double bytes);

#endif
