/* spank/ports_check.h - which ports of this node are free, who uses the others, and reservations by
 * slurmstepd (spank/ports_keeper.h). `node` is for messages. Independent of other nodes. */
#ifndef HPCT_SPANK_PORTS_CHECK_H
#define HPCT_SPANK_PORTS_CHECK_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

#include "spank/ports_keeper.h"

/* Binds the port briefly on all addresses, IPv4 and IPv6, with SO_REUSEADDR as a restarted server
 * would. If it is in use, returns HPCT_ERR_CONFIG naming port, `node`, the user if the kernel
 * provides it, and the option. */
hpct_status hpct_spank_port_check(int port, const char *node);

/* Reserves the ports for the step until it ends, as programs may bind theirs minutes later, and
 * releases those that it had; binds nothing. If another step has reserved one, waits up to a second
 * for its end, then returns HPCT_ERR_CONFIG, naming port, `node`, that step and the option. */
hpct_status hpct_spank_ports_hold(const hpct_spank_ports_keeper *keeper, const int *ports,
                                  int count, const char *node);

/* Candidate blocks of ports. */
typedef struct hpct_spank_port_blocks {
    const int *ports; /* [count][each], the ports this node needs */
    int each, count;  /* count: at most 64 */
} hpct_spank_port_blocks;

/* Bitmap of blocks whose ports are all free and not reserved; if there is none, waits for
 * reservations as above. `keeper` NULL: looks for no reservations. hpct_last_error() describes the
 * first port in use. */
uint64_t hpct_spank_ports_free(const hpct_spank_ports_keeper *keeper,
                               const hpct_spank_port_blocks *blocks, const char *node);

#endif
