/* Rank -> (node, local id). All of Slurm's distributions assign ranks in rounds, some at a time to
 * each node that is not full; they differ only in that number. */
#include "base/cluster/layout.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster/tasks.h"
#include "base/number.h"
#include "base/status.h"

hpct_status hpct_cluster_distribution_parse(const char *text, const char *plane_size,
                                            hpct_cluster_distribution *out)
{
    *out = (hpct_cluster_distribution){.kind = HPCT_CLUSTER_DISTRIBUTION_BLOCK};
    if (text == NULL)
        return HPCT_OK;
    char first[32];
    size_t size = strcspn(text, ":,");
    if (size >= sizeof first)
        return hpct_fail(HPCT_ERR_CONFIG, "distribution '%.100s' is not known", text);
    memcpy(first, text, size);
    first[size] = '\0';

    const char *plane = NULL;
    if (strcmp(first, "block") == 0 || strcmp(first, "*") == 0) {
        out->kind = HPCT_CLUSTER_DISTRIBUTION_BLOCK;
    } else if (strcmp(first, "cyclic") == 0) {
        out->kind = HPCT_CLUSTER_DISTRIBUTION_CYCLIC;
    } else if (strcmp(first, "arbitrary") == 0) {
        out->kind = HPCT_CLUSTER_DISTRIBUTION_ARBITRARY;
    } else if (strncmp(first, "plane", 5) == 0 && (first[5] == '\0' || first[5] == '=')) {
        out->kind = HPCT_CLUSTER_DISTRIBUTION_PLANE;
        plane = first[5] == '=' ? first + 6 : plane_size;
        long number = 0;
        if (plane == NULL || !hpct_number_parse(plane, 1, HPCT_CLUSTER_MAX_TASKS, &number))
            return hpct_fail(HPCT_ERR_CONFIG,
                             "distribution '%.100s': plane size '%.40s' is not a count", text,
                             plane == NULL ? "" : plane);
        out->plane = (int) number;
    } else {
        return hpct_fail(HPCT_ERR_CONFIG,
                         "distribution '%.100s' is not known: use block, cyclic or plane", text);
    }
    return HPCT_OK;
}

/* Assigns up to `turn` ranks at a time to each node that is not full. */
static void deal(hpct_cluster_layout *layout, int *given, int turn)
{
    int rank = 0;
    while (rank < layout->size) {
        for (int node = 0; node < layout->num_nodes; node++) {
            for (int i = 0; i < turn && given[node] < layout->tasks[node]; i++) {
                layout->node[rank] = node;
                layout->local[rank] = given[node]++;
                rank++;
            }
        }
    }
}

static hpct_status place(hpct_cluster_layout *layout, int *given, const int *placed)
{
    if (placed == NULL)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "with --distribution=arbitrary nothing says which rank is "
                         "where: name the hosts in a file that the nodes can read "
                         "and set SLURM_HOSTFILE, or use block, cyclic or plane");
    for (int rank = 0; rank < layout->size; rank++) {
        int node = placed[rank];
        if (given[node] == layout->tasks[node])
            return hpct_fail(HPCT_ERR_CONFIG, "the host file does not give node %d its %d tasks",
                             node, layout->tasks[node]);
        layout->node[rank] = node;
        layout->local[rank] = given[node]++;
    }
    return HPCT_OK;
}

hpct_status hpct_cluster_layout_make(const int *tasks, int num_nodes,
                                     hpct_cluster_distribution distribution, const int *placed,
                                     hpct_cluster_layout *out)
{
    hpct_status status = HPCT_OK;
    hpct_cluster_layout layout = {.num_nodes = num_nodes};
    size_t nodes = (size_t) num_nodes;
    long size = 0;
    for (int node = 0; node < num_nodes; node++)
        size += tasks[node];
    if (size > HPCT_CLUSTER_MAX_TASKS)
        return hpct_fail(HPCT_ERR_CONFIG, "more than %d tasks", HPCT_CLUSTER_MAX_TASKS);
    layout.size = (int) size;
    layout.tasks = malloc(nodes * sizeof *layout.tasks);
    layout.node = malloc((size_t) size * sizeof *layout.node);
    layout.local = malloc((size_t) size * sizeof *layout.local);
    int *given = calloc(nodes, sizeof *given);
    if (layout.tasks == NULL || layout.node == NULL || layout.local == NULL || given == NULL) {
        status = hpct_fail_memory((size_t) size * sizeof *layout.node);
        goto fail;
    }
    memcpy(layout.tasks, tasks, nodes * sizeof *tasks);
    switch (distribution.kind) {
    case HPCT_CLUSTER_DISTRIBUTION_BLOCK:
        deal(&layout, given, HPCT_CLUSTER_MAX_TASKS);
        break;
    case HPCT_CLUSTER_DISTRIBUTION_CYCLIC:
        deal(&layout, given, 1);
        break;
    case HPCT_CLUSTER_DISTRIBUTION_PLANE:
        deal(&layout, given, distribution.plane);
        break;
    case HPCT_CLUSTER_DISTRIBUTION_ARBITRARY:
        status = place(&layout, given, placed);
        break;
    }
    if (status != HPCT_OK)
        goto fail;
    free(given);
    *out = layout;
    return HPCT_OK;
fail:
    free(given);
    hpct_cluster_layout_free(&layout);
    return status;
}

void hpct_cluster_layout_free(hpct_cluster_layout *layout)
{
    free(layout->tasks);
    free(layout->node);
    free(layout->local);
    *layout = (hpct_cluster_layout){0};
}

int hpct_cluster_layout_max_tasks(const hpct_cluster_layout *layout)
{
    int most = 0;
    for (int node = 0; node < layout->num_nodes; node++)
        most = layout->tasks[node] > most ? layout->tasks[node] : most;
    return most;
}
