/* spank/ports_check.h - which ports of this node are free, who uses the others, and reservations.
 * `node` is for messages; `step`, "42.0", for reservations: those of one step do not conflict.
 * Independent of other nodes. */
#ifndef HPCT_SPANK_PORTS_CHECK_H
#define HPCT_SPANK_PORTS_CHECK_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Binds the port briefly on all addresses, IPv4 and IPv6, with SO_REUSEADDR as a restarted server
 * would. If it is in use, returns HPCT_ERR_CONFIG naming port, `node`, the user if the kernel
 * provides it, and the option. */
hpct_status hpct_port_check(int port, const char *node);

/* Reserves the port for the calling process and the program it becomes, until that ends or closes
 * an open descriptor: programs may bind their ports minutes later. Effective only among callers of
 * this function. If another step has reserved it, waits up to a second for an ending process.
 * Returns HPCT_ERR_CONFIG, naming port, `node`, that step and the option. */
hpct_status hpct_port_hold(int port, const char *node, const char *step);

/* The same for all ports from `low` to `high`, until *fd is closed or the caller's program starts.
 */
hpct_status hpct_ports_hold(int low, int high, const char *node, const char *step, int *fd);

/* Candidate blocks of ports. */
typedef struct hpct_port_blocks {
    const int *ports; /* [count][each], the ports this node needs */
    int each, count;  /* count: at most 64 */
} hpct_port_blocks;

/* Bitmap of blocks whose ports are all free and not reserved; if there is none, waits for
 * reservations as above. hpct_last_error() describes the first port in use. */
uint64_t hpct_ports_free(const hpct_port_blocks *blocks, const char *node, const char *step);

#endif
