/* base/net/resolve.h - addresses of a host by name, within a time limit, which getaddrinfo does not
 * have. Independent of connections. */
#ifndef HPCT_BASE_NET_RESOLVE_H
#define HPCT_BASE_NET_RESOLVE_H

#include <hpctrain/status.h>
#include <sys/socket.h>

#define HPCT_NET_MAX_ADDRESSES 8 /* of a host; further ones are left out */

typedef struct hpct_net_addresses {
    int num;
    struct sockaddr_storage at[HPCT_NET_MAX_ADDRESSES]; /* in the order in which to try them */
    socklen_t size[HPCT_NET_MAX_ADDRESSES];
} hpct_net_addresses;

/* Finds the addresses of `host`, a name or a number, and sets their port. HPCT_ERR_PEER, naming the
 * host, if there are none or the name service has not answered within the time limit: then a thread
 * goes on waiting for it, and a later call for the same host takes its answer. With a timeout of 0
 * only numbers and such answers are found. */
hpct_status hpct_net_resolve(hpct_net_addresses *out, const char *host, int port, int timeout_ms);

#endif
