/* spank/ports_holder.h - who has a port of this node, as the kernel tells everybody. */
#ifndef HPCT_SPANK_PORTS_HOLDER_H
#define HPCT_SPANK_PORTS_HOLDER_H

#define HPCT_PORT_HOLDER 128

/* "uid 33, www-data": the user of a socket that listens at the TCP port, or uses it otherwise; of
 * one that is merely bound from Linux 6.8 on, and a text that says so before. */
void hpct_port_holder(int port, char text[HPCT_PORT_HOLDER]);

void hpct_port_name_user(unsigned uid, char text[HPCT_PORT_HOLDER]);

#endif
