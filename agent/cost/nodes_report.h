/* agent/cost/nodes_report.h - the figures of all nodes as a table and as JSON. */
#ifndef HPCT_AGENT_COST_NODES_REPORT_H
#define HPCT_AGENT_COST_NODES_REPORT_H

#include "agent/cost/nodes.h"
#include "agent/cost/pairs.h"

#include <hpctrain/status.h>
#include <stdio.h>

typedef struct hpct_cost_nodes_report {
    const hpct_cost_node_row *rows; /* [num], judged */
    int num;
    const double *medians;       /* [HPCT_COST_FIGURES] */
    const hpct_cost_pair *pairs; /* [num][rounds], as each node has measured them */
    int rounds;
} hpct_cost_nodes_report;

void hpct_cost_nodes_print(const hpct_cost_nodes_report *report, FILE *stream);
hpct_status hpct_cost_nodes_write(const hpct_cost_nodes_report *report, const char *path);

#endif
