/* spank/turn.h - delays that stagger nodes which may report the same error. */
#ifndef HPCT_SPANK_TURN_H
#define HPCT_SPANK_TURN_H

#include <stdint.h>

/* Milliseconds that node `node` of `nodes` waits: 0 for the first 16, else up to 2000, so that ten
 * thousand nodes do not repeat a request to slurmctld that the first has made. */
int hpct_spank_turn_ms(uint32_t node, uint32_t nodes);

#endif
