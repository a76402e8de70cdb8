/* spank/ports_check.h - whether a port of this node is free right now. */
#ifndef HPCT_SPANK_PORTS_CHECK_H
#define HPCT_SPANK_PORTS_CHECK_H

#include <hpctrain/status.h>

/* Binds the port for a moment, on every address, IPv4 and (where there is any) IPv6, as a server
 * would that is started over. HPCT_ERR_CONFIG, naming port, `node` and the option, when it is
 * taken. */
hpct_status hpct_port_check(int port, const char *node);

#endif
