/* spank/turn.h - who of a step's nodes speaks first where all may have the same to say. */
#ifndef HPCT_SPANK_TURN_H
#define HPCT_SPANK_TURN_H

#include <stdint.h>

/* Milliseconds that node `node` of `nodes` waits: none for the first 16, else up to 2000, so that
 * slurmctld is not asked by ten thousand nodes at once for what the first of them has got done. */
int hpct_turn_ms(uint32_t node, uint32_t nodes);

#endif
