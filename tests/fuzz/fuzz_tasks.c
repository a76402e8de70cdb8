/* Tasks per node, distributions, port lists: the short strings of SLURM_*. */
#include "base/cluster/layout.h"
#include "base/cluster/ports.h"
#include "base/cluster/tasks.h"
#include "tests/fuzz/fuzz.h"

static void check_layout(const int *tasks, int nodes, const char *distribution)
{
    hpct_cluster_distribution parsed;
    hpct_cluster_layout layout;
    if (hpct_cluster_distribution_parse(distribution, "3", &parsed) != HPCT_OK ||
        hpct_cluster_layout_make(tasks, nodes, parsed, NULL, &layout) != HPCT_OK)
        return;
    long sum = 0;
    for (int node = 0; node < nodes; node++)
        sum += tasks[node];
    must(layout.size == sum);
    for (int rank = 0; rank < layout.size; rank++) {
        if (layout.node[rank] < 0 || layout.node[rank] >= nodes ||
            layout.local[rank] >= tasks[layout.node[rank]])
            abort();
    }
    hpct_cluster_layout_free(&layout);
}

static void check_tasks(const char *text, int nodes)
{
    int *tasks = NULL;
    long sum = 0;
    if (hpct_cluster_tasks_expand(text, nodes, &tasks) != HPCT_OK)
        return;
    for (int node = 0; node < nodes; node++)
        sum += tasks[node];
    if (sum <= 10000) { /* more is right too, but slow to deal out ten thousand times */
        check_layout(tasks, nodes, "block");
        check_layout(tasks, nodes, "cyclic");
        check_layout(tasks, nodes, "plane=3");
    }
    free(tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *) data, size);
    int ports[8], count = 0, base = 0;
    hpct_cluster_port_range range;
    for (int nodes = 1; nodes < 9; nodes++)
        check_tasks(text, nodes);
    const int two[] = {3, 2};
    check_layout(two, 2, text);
    if (hpct_cluster_port_range_parse(text, &range) == HPCT_OK &&
        hpct_cluster_port_base(range, 7, 1, 3, hpct_cluster_port_choices(range, 3) - 1, &base) ==
            HPCT_OK &&
        (base < range.low || base + 2 > 65535 || (!range.single && base + 2 > range.high)))
        abort();
    if (hpct_cluster_ports_reserved(text, ports, 8, &count) == HPCT_OK && (count < 1 || count > 8))
        abort();
    free(text);
    return 0;
}
