/* spank/ports_check.h - whether a port of this node is free right now, and a promise that
 * it stays so. */
#ifndef HPCT_SPANK_PORTS_CHECK_H
#define HPCT_SPANK_PORTS_CHECK_H

#include <hpctrain/status.h>

/* Binds the port for a moment, on every address, IPv4 and (where there is any) IPv6, as a server
 * would that is started over. HPCT_ERR_CONFIG, naming port, `node` and the option, when it is
 * taken. */
hpct_status hpct_port_check(int port, const char *node);

/* Promises the port to the calling process and the program that it becomes, until that ends or
 * closes an open descriptor: a step's programs may bind their ports minutes from now, and until
 * then a second step would find them free. Only holds against others that call this. When the port
 * is promised already, waits up to a second for a process that is just ending. HPCT_ERR_CONFIG,
 * naming port, `node` and the option. */
hpct_status hpct_port_hold(int port, const char *node);

#endif
