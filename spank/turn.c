/* Staggers requests of many nodes. */
#include "spank/turn.h"

#define AT_ONCE 16
#define LONGEST_MS 2000

int hpct_spank_turn_ms(uint32_t node, uint32_t nodes)
{
    if (node < AT_ONCE || node >= nodes)
        return 0;
    return (int) ((uint64_t) node * LONGEST_MS / nodes);
}
