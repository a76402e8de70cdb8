/* Turns. */
#include "spank/turn.h"

#define AT_ONCE 16
#define LONGEST 20000

int hpct_turn_seconds(uint32_t node)
{
    int seconds = 0;
    for (; node >= AT_ONCE; node /= 2)
        seconds++;
    return seconds;
}

int hpct_turn_spread(uint32_t node)
{
    return node < AT_ONCE ? 0 : node < LONGEST ? (int) node : LONGEST;
}
