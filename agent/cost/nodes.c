/* Half of the median: what a step on all nodes would wait for most of the time. */
#include "agent/cost/nodes.h"

#include "base/sort.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HALF 0.5

const hpct_cost_figure_form hpct_cost_figure_forms[HPCT_COST_FIGURES] = {
    [HPCT_COST_FIGURE_COMPUTE] = {"compute", "gflops", "GFLOP/s", 1e9, 8},
    [HPCT_COST_FIGURE_MEMORY] = {"memory", "memory_gb_per_second", "memory GB/s", 1e9, 12},
    [HPCT_COST_FIGURE_SCRATCH] = {"scratch", "scratch_mb_per_second", "scratch MB/s", 1e6, 13},
    [HPCT_COST_FIGURE_LATENCY] = {"latency", "latency_us", "latency us", 1e-6, 11},
    [HPCT_COST_FIGURE_LINK] = {"link", "link_mb_per_second", "link MB/s", 1e6, 10},
};

static bool is_worse(hpct_cost_figure figure, double value, double than)
{
    return figure == HPCT_COST_FIGURE_LATENCY ? HALF * value > than : value < HALF * than;
}

/* `sorted` are the values of all nodes that have one; a slow one of two is compared with the
 * other. */
static double bar(hpct_cost_figure figure, const double *sorted, int num)
{
    if (num == 2)
        return sorted[figure == HPCT_COST_FIGURE_LATENCY ? 0 : 1];
    return num % 2 == 1 ? sorted[num / 2] : (sorted[num / 2 - 1] + sorted[num / 2]) / 2;
}

static void judge_figure(hpct_cost_node_row *rows, int num, hpct_cost_figure figure, double *sorted,
                         double *median)
{
    int known = 0;
    *median = NAN;
    for (int i = 0; i < num; i++) {
        rows[i].slow[figure] = false;
        if (!isnan(rows[i].figures[figure]))
            sorted[known++] = rows[i].figures[figure];
    }
    if (known < 2)
        return;
    hpct_sort_numbers(sorted, (size_t) known);
    *median = known == 2 ? (sorted[0] + sorted[1]) / 2 : bar(figure, sorted, known);
    for (int i = 0; i < num; i++) /* never of NAN */
        rows[i].slow[figure] =
            is_worse(figure, rows[i].figures[figure], bar(figure, sorted, known));
}

hpct_status hpct_cost_nodes_judge(hpct_cost_node_row *rows, int num,
                                  double medians[HPCT_COST_FIGURES])
{
    double *sorted = malloc((size_t) num * sizeof *sorted);
    if (sorted == NULL)
        return hpct_fail_memory((size_t) num * sizeof *sorted);
    for (int figure = 0; figure < HPCT_COST_FIGURES; figure++)
        judge_figure(rows, num, (hpct_cost_figure) figure, sorted, &medians[figure]);
    free(sorted);
    return HPCT_OK;
}

bool hpct_cost_node_is_slow(const hpct_cost_node_row *row)
{
    bool slow = false;
    for (int figure = 0; figure < HPCT_COST_FIGURES; figure++)
        slow |= row->slow[figure];
    return slow;
}

/* Appends a name; false if there is no room for it and for the number of those left out. */
static bool add_name(char *text, size_t bytes, const char *name)
{
    size_t used = strlen(text);
    if (used + strlen(name) + strlen(", and 1000000 more") >= bytes)
        return false;
    snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "", name);
    return true;
}

int hpct_cost_nodes_slow(const hpct_cost_node_row *rows, int num, char *text, size_t bytes)
{
    int slow = 0, named = 0;
    bool fits = true;
    text[0] = '\0';
    for (int i = 0; i < num; i++) {
        if (!hpct_cost_node_is_slow(&rows[i]))
            continue;
        slow++;
        fits = fits && add_name(text, bytes, rows[i].name);
        named += fits;
    }
    size_t used = strlen(text);
    if (named < slow)
        snprintf(text + used, bytes - used, " and %d more", slow - named);
    return slow;
}
