/* Means by node. */
#include "agent/train/slow_nodes.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hpct_status hpct_train_slow_nodes_open(hpct_train_slow_nodes *out, const char *const *names,
                                       int ranks)
{
    size_t num = (size_t) ranks;
    *out = (hpct_train_slow_nodes){.names = names, .ranks = ranks};
    out->known = calloc(num * HPCT_TRAIN_PACE_PARTS, sizeof *out->known);
    out->node_of = calloc(num, sizeof *out->node_of);
    out->slow = calloc(num, sizeof *out->slow);
    out->busy = calloc(num, sizeof *out->busy);
    out->input = calloc(num, sizeof *out->input);
    out->scratch = calloc(num, sizeof *out->scratch);
    if (out->known == NULL || out->node_of == NULL || out->slow == NULL || out->busy == NULL ||
        out->input == NULL || out->scratch == NULL)
        return hpct_fail_memory(num * HPCT_TRAIN_PACE_PARTS * sizeof *out->known);
    for (size_t i = 0; i < num * HPCT_TRAIN_PACE_PARTS; i++)
        out->known[i] = NAN;
    return HPCT_OK;
}

void hpct_train_slow_nodes_close(hpct_train_slow_nodes *nodes)
{
    free(nodes->known);
    free(nodes->node_of);
    free(nodes->slow);
    free(nodes->busy);
    free(nodes->input);
    free(nodes->scratch);
    *nodes = (hpct_train_slow_nodes){0};
}

/* By name; ranks of a node need not be neighbours. */
void hpct_train_slow_nodes_number(hpct_train_slow_nodes *n)
{
    n->num_nodes = 0;
    for (int rank = 0; rank < n->ranks; rank++) {
        int first = 0;
        n->slow[rank] = (hpct_train_slow_node){0};
        n->node_of[rank] = -1;
        if (n->names[rank] == NULL)
            continue;
        while (n->names[first] == NULL || strcmp(n->names[first], n->names[rank]) != 0)
            first++;
        n->node_of[rank] = first == rank ? n->num_nodes++ : n->node_of[first];
    }
}

double *hpct_train_slow_nodes_part(const hpct_train_slow_nodes *n, hpct_train_pace_part part)
{
    return n->known + (size_t) part * (size_t) n->ranks;
}

void hpct_train_slow_nodes_fill(hpct_train_slow_nodes *n)
{
#define KNOWN(part, rank) hpct_train_slow_nodes_part(n, part)[rank]
    for (int node = 0; node < n->num_nodes; node++) {
        double busy = 0, input = 0;
        int ranks = 0;
        for (int rank = 0; rank < n->ranks; rank++) {
            if (n->node_of[rank] != node || isnan(KNOWN(HPCT_TRAIN_PACE_STEP, rank)))
                continue;
            for (hpct_train_pace_part part = HPCT_TRAIN_PACE_INPUT; part <= HPCT_TRAIN_PACE_UPDATE;
                 part++)
                busy += part != HPCT_TRAIN_PACE_WAIT ? KNOWN(part, rank) : 0;
            input += KNOWN(HPCT_TRAIN_PACE_INPUT, rank);
            ranks++;
        }
        n->busy[node] = ranks > 0 ? busy / ranks : NAN;
        n->input[node] = ranks > 0 ? input / ranks : NAN;
    }
#undef KNOWN
}

enum hpct_train_slow_verdict hpct_train_slow_nodes_heed(hpct_train_slow_nodes *n, int node,
                                                        double now, double *ratio)
{
    *ratio = hpct_train_slow_ratio(n->busy, n->num_nodes, node, n->scratch);
    return hpct_train_slow_heed(&n->slow[node], *ratio, now);
}

int hpct_train_slow_nodes_first(const hpct_train_slow_nodes *n, int node)
{
    int rank = 0;
    while (n->node_of[rank] != node)
        rank++;
    return rank;
}

void hpct_train_slow_nodes_say(const hpct_train_slow_nodes *n, int node, double ratio,
                               const char *why)
{
    fprintf(stderr,
            "hpc-train: node %s is slow: for a minute its steps have taken %.1f times "
            "the others'%s%s%s\n",
            n->names[hpct_train_slow_nodes_first(n, node)], ratio,
            n->input[node] > n->busy[node] / 2 ? ", mostly for input" : "",
            why[0] != '\0' ? ": " : "", why);
}
