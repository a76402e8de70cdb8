/* agent/comm/tcp_comm.h - shared by the files of the TCP communicator, the only ones that include
 * it. */
#ifndef HPCT_AGENT_COMM_TCP_COMM_H
#define HPCT_AGENT_COMM_TCP_COMM_H

#include "agent/comm/circulant.h"
#include "agent/comm/reduction.h"

/* The whole group and its splits: a rank waiting in one of them progresses what is in flight in
 * all. */
typedef struct tcp_world {
    int epoll; /* epoll descriptor: readable when progress is possible */
    struct tcp_comm *first;
    const hpct_auth *auth;
    int seconds; /* timeout to connect */
} tcp_world;

typedef struct tcp_comm {
    hpct_comm_host_comm host; /* mail to all other ranks, for reductions */
    tcp_world *world;
    struct tcp_comm *next;
    hpct_comm_circulant *circulant; /* with its own connections, for collectives */
    hpct_comm_mail *streams; /* streams to all other ranks: a message without a free buffer blocks
                           only other streams */
} tcp_comm;

/* Progresses messages; with `sleep` waits until there is progress to make. */
hpct_status hpct_tcp_move(tcp_world *world, bool sleep);

/* The table's functions of tcp_stream.c. */
hpct_status hpct_tcp_open_stream(hpct_comm *comm, hpct_comm_stream **out,
                                 const hpct_comm_stream_options *options);
hpct_status hpct_tcp_next(hpct_comm_stream *stream, float **data);
hpct_status hpct_tcp_pass(hpct_comm_stream *stream, size_t count);
hpct_status hpct_tcp_push(hpct_comm_stream *stream);
hpct_status hpct_tcp_drain(hpct_comm_stream *stream);
void hpct_tcp_close_stream(hpct_comm_stream *stream);

#endif
