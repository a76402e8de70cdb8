/* agent/comm/tcp_comm.h - what the files of the communicator over TCP share. They alone include it.
 */
#ifndef HPCT_COMM_TCP_COMM_H
#define HPCT_COMM_TCP_COMM_H

#include "agent/comm/circulant.h"
#include "agent/comm/reduction.h"

/* The whole group and the parts that were split off it: whoever waits in one of them moves what is
 * under way in all. */
typedef struct tcp_world {
    int epoll; /* readable when something can move */
    struct tcp_comm *first;
    const hpct_auth *auth;
    int seconds; /* to connect */
} tcp_world;

typedef struct tcp_comm {
    hpct_host_comm host; /* its mail: to all other ranks, for reductions */
    tcp_world *world;
    struct tcp_comm *next;
    hpct_circulant *circulant; /* on connections of its own, for collectives */
    hpct_mail *streams; /* to all other ranks: a message for which there is no buffer holds up none
                           but those of streams */
} tcp_comm;

/* Moves what can be moved; with `sleep` once something can. */
hpct_status hpct_tcp_move(tcp_world *world, bool sleep);

/* The table's functions of tcp_stream.c. */
hpct_status hpct_tcp_open_stream(hpct_comm *comm, hpct_stream **out,
                                 const hpct_stream_options *options);
hpct_status hpct_tcp_next(hpct_stream *stream, float **data);
hpct_status hpct_tcp_pass(hpct_stream *stream, size_t count);
hpct_status hpct_tcp_push(hpct_stream *stream);
hpct_status hpct_tcp_drain(hpct_stream *stream);
void hpct_tcp_close_stream(hpct_stream *stream);

#endif
