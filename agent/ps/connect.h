/* agent/ps/connect.h - a client's connections to the parameter servers: a worker's, or those of
 * server 0 to the others. All waits have a timeout; errors name the server. */
#ifndef HPCT_AGENT_PS_CONNECT_H
#define HPCT_AGENT_PS_CONNECT_H

#include "agent/ps/channel.h"
#include "agent/ps/run.h"

typedef struct hpct_ps_servers {
    const hpct_ps_run *run;
    hpct_ps_channel *channels; /* [servers]; fd -1 if not connected */
    struct pollfd *polls;
    uint64_t epochs_done; /* as server 0 says */
    int first;            /* first server: 0, or 1 if the client is server 0 */
    int answered;         /* number of answers received of those awaited */
    bool stale;           /* an answer had another version */
    int64_t version;      /* expected in the answers */
    bool has_item;
    hpct_ps_message item;
    hpct_ps_message_type wanted;
    void (*meanwhile)(void *); /* called while connecting, and on a server while it waits */
    void *argument;
} hpct_ps_servers;

/* Connects to all servers (server 0: to the others), and waits for their WELCOME; calls
 * `meanwhile`, unless NULL, repeatedly.
 * HPCT_ERR_PEER naming a server that did not answer within run->join_seconds; HPCT_ERR_CONFIG if
 * one refuses. */
hpct_status hpct_ps_servers_reach(hpct_ps_servers *out, const hpct_ps_run *run, hpct_ps_from from,
                                  void (*meanwhile)(void *), void *argument);

/* Another connection to server 0, for this worker's heartbeats. */
hpct_status hpct_ps_servers_again(const hpct_ps_servers *servers, hpct_net_session *session);

/* Pulls all parts of this version into the model; *exact: false if a server has a later version. */
hpct_status hpct_ps_servers_pull(hpct_ps_servers *servers, int64_t version, bool *exact);

/* Server 0: pulls the other servers' parts, on demand with optimizer slots; or sends them what its
 * own model has of them. */
hpct_status hpct_ps_servers_gather(hpct_ps_servers *servers, int64_t version, bool slots);
hpct_status hpct_ps_servers_restore(hpct_ps_servers *servers);

/* Pushes the model's gradients, and `states`, to all servers; returns when all have acknowledged
 * them. */
hpct_status hpct_ps_servers_push(hpct_ps_servers *servers, const hpct_ps_message *item,
                                 float *states);

hpct_status hpct_ps_servers_answer(hpct_ps_servers *servers, const hpct_ps_message *message);
hpct_status hpct_ps_servers_item(hpct_ps_servers *servers, hpct_ps_message *item);

/* Called by server 0 once per iteration of its loop: sends and checks heartbeats. */
hpct_status hpct_ps_servers_watch(hpct_ps_servers *servers);

/* Closes the connections, after sending `last` to all; without waiting if it is NULL. */
void hpct_ps_servers_leave(hpct_ps_servers *servers, const hpct_ps_message *last);

#endif
