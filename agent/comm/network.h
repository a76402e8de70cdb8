/* agent/comm/network.h - network cost model: measured once by all ranks with the collectives of
 * training; predicted time of an all-reduce. Uses the table of collectives only. */
#ifndef HPCT_AGENT_COMM_NETWORK_H
#define HPCT_AGENT_COMM_NETWORK_H

#include "agent/comm/comm.h"

/* Hockney's model: a message of B bytes takes latency + B / rate. */
typedef struct hpct_comm_network {
    double latency_seconds;  /* per message, including handling at both ends */
    double bytes_per_second; /* of a rank sending while receiving as much, summation included;
                                infinite with one rank */
    double
        host_seconds; /* CPU seconds per byte sent while receiving as much, including waiting for a
                         shared CPU: not hidden by computation; 0 if unknown, as when ranks spin */
} hpct_comm_network;

/* Sums data[count] over the ranks; collective. */
typedef hpct_status hpct_comm_network_sum(void *argument, float *data, size_t count);

#define HPCT_COMM_NETWORK_MOST_FLOATS ((size_t) 1 << 22) /* limit, unless `like` is large */

/* Seconds by which a sum must exceed one of a quarter of its size to compute the rate: before
 * training and for small sums of `hybrid`; longer for gradients in a plan, as TCP may need time to
 * fill a link. */
#define HPCT_COMM_NETWORK_QUICKLY 60e-3
#define HPCT_COMM_NETWORK_THOROUGHLY 0.6

/* Measures sums of few numbers, which take `rounds` times ceil(log2 ranks) sequential messages, and
 * of growing arrays until one takes `enough` seconds longer and has `like` / 2 floats or more, or
 * 16 MB (64 MB if `like` is more than twice that). Takes about fifteen times `enough`, on slow
 * links seven times the last sum. Equal on all ranks. Collective. */
hpct_status hpct_comm_network_measure_sums(hpct_comm *comm, hpct_comm_network_sum *sum,
                                           void *argument, size_t few, int rounds, double enough,
                                           size_t like, hpct_comm_network *network);

/* The same with the reductions of gradients. */
hpct_status hpct_comm_network_measure(hpct_comm *comm, double enough, size_t like,
                                      hpct_comm_network *network);

/* Seconds to sum `bytes`: 2 ceil(log2 ranks) sequential messages and 2 (ranks - 1) / ranks of the
 * bytes out of each rank, the minimum (Patarasu and Yuan, "Bandwidth optimal all-reduce
 * algorithms", 2009). 0 for one rank. */
double hpct_comm_network_allreduce_seconds(const hpct_comm_network *network, int ranks,
                                           double bytes);

#define HPCT_COMM_NETWORK_MOST_BUCKETS 32

/* Size of a bucket for `bytes` of gradients: `wanted`, or, if 0, the best: n buckets cost n
 * m messages, m = max(4, 2 ceil(log2 ranks)), and leave 1/n of the transfer after backward; the sum
 * is minimal for n = sqrt(transfer / (m latencies)). At most HPCT_COMM_NETWORK_MOST_BUCKETS in both
 * cases. The plan of buckets and the prediction use it. */
double hpct_comm_network_bucket_bytes(const hpct_comm_network *network, int ranks, double bytes,
                                      double wanted);

#endif
