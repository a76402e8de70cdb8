/* spank/ports_holder.h - the user of a port of this node, from public kernel interfaces. */
#ifndef HPCT_SPANK_PORTS_HOLDER_H
#define HPCT_SPANK_PORTS_HOLDER_H

#define HPCT_SPANK_PORT_HOLDER 128

/* "uid 33, www-data": the user of a socket that listens on or otherwise uses the TCP port; for
 * sockets that are only bound from Linux 6.8 on, before that a text saying so. */
void hpct_spank_port_holder(int port, char text[HPCT_SPANK_PORT_HOLDER]);

void hpct_spank_port_name_user(unsigned uid, char text[HPCT_SPANK_PORT_HOLDER]);

#endif
