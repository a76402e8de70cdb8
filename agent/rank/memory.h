/* agent/rank/memory.h - which ranks of a node share memory limits (base/memory.h). */
#ifndef HPCT_AGENT_RANK_MEMORY_H
#define HPCT_AGENT_RANK_MEMORY_H

#include "agent/comm/comm.h"

/* Determines which ranks of which node share which limit, for the whole process from then on;
 * before, the process counts as alone. Collective; `node` is this rank's. */
hpct_status hpct_rank_memory_meet(hpct_comm *comm, const char *node);
hpct_status hpct_rank_memory_meet_in(hpct_comm *comm, const char *node, const char *proc,
                                     const char *cgroups);

#endif
