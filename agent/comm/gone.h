/* agent/comm/gone.h - while tasks come together: whether rank 0's has ended, as the plugin on its
 * node says (agent/cluster/tasks.h). Nobody sees it otherwise: who has ended does not listen, as
 * one that has not begun. */
#ifndef HPCT_COMM_GONE_H
#define HPCT_COMM_GONE_H

#include <stdbool.h>

/* Between the two the plugin's signal is caught. */
void hpct_gone_begin(void);
void hpct_gone_end(void);

bool hpct_gone_is_zero(void);

#endif
