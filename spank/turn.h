/* spank/turn.h - who of a step's nodes speaks first where all may have the same to say. Ten
 * thousand requests that each go to ten thousand nodes would stop a cluster: the first few end the
 * others, which still wait for their turn. */
#ifndef HPCT_SPANK_TURN_H
#define HPCT_SPANK_TURN_H

#include <stdint.h>

/* Seconds that node `node` of a step waits: none for the first 16, then one more for each doubling
 * of its number, so that few are due before the first has been heard, and the last of 10,000
 * after 10. */
int hpct_turn_seconds(uint32_t node);

/* Milliseconds that it waits where none is ended by another's request: a thousand requests a
 * second. */
int hpct_turn_spread(uint32_t node);

#endif
