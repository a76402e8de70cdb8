/* agent/cost/nodes.h - which nodes are slow: the figures of each, and the judgement. Arithmetic
 * only. */
#ifndef HPCT_AGENT_COST_NODES_H
#define HPCT_AGENT_COST_NODES_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

/* What is measured of a node. */
typedef enum hpct_cost_figure {
    HPCT_COST_FIGURE_COMPUTE, /* FLOP/s of its slowest rank */
    HPCT_COST_FIGURE_MEMORY,  /* bytes/s of its slowest rank */
    HPCT_COST_FIGURE_SCRATCH, /* bytes/s */
    HPCT_COST_FIGURE_LATENCY, /* seconds of a message, over its best link */
    HPCT_COST_FIGURE_LINK,    /* bytes/s over its best link */
    HPCT_COST_FIGURES
} hpct_cost_figure;

/* Names for people and in JSON, and what divides a figure for the table. */
typedef struct hpct_cost_figure_form {
    const char *name, *key, *head;
    double unit;
    int width;
} hpct_cost_figure_form;

extern const hpct_cost_figure_form hpct_cost_figure_forms[HPCT_COST_FIGURES];

#define HPCT_COST_NODE_NAME 64
#define HPCT_COST_NODE_TEXT 320

typedef struct hpct_cost_node_row {
    char name[HPCT_COST_NODE_NAME];
    int ranks, threads;                /* threads: of its slowest rank */
    double figures[HPCT_COST_FIGURES]; /* NAN: not measured */
    char state[HPCT_COST_NODE_TEXT];   /* what may be the reason, of its slowest rank; or "" */
    char scratch[HPCT_COST_NODE_TEXT]; /* why the scratch folder could not be written; or "" */
    bool slow[HPCT_COST_FIGURES];      /* set by hpct_cost_nodes_judge */
} hpct_cost_node_row;

/* Sets medians[], NAN for what fewer than two nodes have, and `slow` of each figure that is worse
 * than half of the median (a latency: than twice); among two nodes, than half of the other's. */
hpct_status hpct_cost_nodes_judge(hpct_cost_node_row *rows, int num,
                                  double medians[HPCT_COST_FIGURES]);

bool hpct_cost_node_is_slow(const hpct_cost_node_row *row);

/* Number of slow nodes; `text` are their names, "node2, node5 and 3 more" if not all
 * fit. */
int hpct_cost_nodes_slow(const hpct_cost_node_row *rows, int num, char *text, size_t bytes);

#endif
