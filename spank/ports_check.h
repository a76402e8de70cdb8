/* spank/ports_check.h - whether ports of this node are free right now, who has those that are not,
 * and promises that they stay so. `node` is for messages, as is `step`, "42.0", for promises: those
 * of one step do not stand in one another's way. Knows nothing of other nodes. */
#ifndef HPCT_SPANK_PORTS_CHECK_H
#define HPCT_SPANK_PORTS_CHECK_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Binds the port for a moment, on every address, IPv4 and (where there is any) IPv6, as a server
 * would that is started over. HPCT_ERR_CONFIG, naming port, `node`, who has it (where the kernel
 * tells) and the option, when it is taken. */
hpct_status hpct_port_check(int port, const char *node);

/* Promises the port to the calling process and the program that it becomes, until that ends or
 * closes an open descriptor: a step's programs may bind their ports minutes from now, and until
 * then a second step would find them free. Only holds against others that call this. When the port
 * is promised to another step already, waits up to a second for a process that is just ending.
 * HPCT_ERR_CONFIG, naming port, `node`, whose step it is and the option. */
hpct_status hpct_port_hold(int port, const char *node, const char *step);

/* The same for all ports from `low` to `high`, until *fd is closed or the caller's program starts.
 */
hpct_status hpct_ports_hold(int low, int high, const char *node, const char *step, int *fd);

/* Blocks of ports, of which a step wants one. */
typedef struct hpct_port_blocks {
    const int *ports; /* [count][each], those that this node needs */
    int each, count;  /* count: at most 64 */
} hpct_port_blocks;

/* A bit for each block whose ports are all free and promised to nobody; where none is, waits for
 * promises as above. hpct_last_error() is what is wrong with the first port that is not free. */
uint64_t hpct_ports_free(const hpct_port_blocks *blocks, const char *node, const char *step);

#endif
