/* agent/ps/connect.h - a client's connections to the parameter servers: a worker's, or those of
 * server 0 to the others. Every wait has a deadline and names the server waited for. */
#ifndef HPCT_PS_CONNECT_H
#define HPCT_PS_CONNECT_H

#include "agent/ps/channel.h"
#include "agent/ps/run.h"

typedef struct hpct_ps_servers {
    const hpct_ps_run *run;
    hpct_ps_channel *channels; /* [servers]; those not reached have no socket */
    struct pollfd *polls;
    int first;       /* the first that is reached: 0, or 1 from server 0 */
    int answered;    /* of the answers that are waited for */
    bool stale;      /* one of them was of another version */
    int64_t version; /* wanted */
    bool has_item;
    hpct_ps_message item;
    hpct_ps_message_type wanted;
    void (*meanwhile)(void *); /* while they are reached */
    void *argument;
} hpct_ps_servers;

/* Connects to all of them (server 0: to the others), and waits until they have said welcome;
 * `meanwhile`, unless it is NULL, is called again and again.
 * HPCT_ERR_PEER naming who did not answer in run->join_seconds; HPCT_ERR_CONFIG when one refuses.
 */
hpct_status hpct_ps_servers_reach(hpct_ps_servers *out, const hpct_ps_run *run, hpct_ps_from from,
                                  void (*meanwhile)(void *), void *argument);

/* Another connection to server 0, of this worker's pulse. */
hpct_status hpct_ps_servers_again(const hpct_ps_servers *servers, hpct_session *session);

/* All parts of this version into the model; *exact: false when one has gone on to another. */
hpct_status hpct_ps_servers_pull(hpct_ps_servers *servers, int64_t version, bool *exact);

/* The gradients in the model, and `states`, to all; returns when all have them. */
hpct_status hpct_ps_servers_push(hpct_ps_servers *servers, const hpct_ps_message *item,
                                 float *states);

hpct_status hpct_ps_servers_answer(hpct_ps_servers *servers, const hpct_ps_message *message);
hpct_status hpct_ps_servers_item(hpct_ps_servers *servers, hpct_ps_message *item);

/* What server 0 does once a turn of its own: signs of life, both ways. */
hpct_status hpct_ps_servers_watch(hpct_ps_servers *servers);

/* Closes; in order, with `last` said to all, or, when it is NULL, at once. */
void hpct_ps_servers_leave(hpct_ps_servers *servers, const hpct_ps_message *last);

#endif
