/* PMIx's map of a step, and the components of a heterogeneous job. */
#include "base/cluster/components.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster/names.h"
#include "base/cluster/nodelist.h"
#include "base/cluster/tasks.h"
#include "base/number.h"
#include "base/status.h"

#define MAX_COMPONENTS 128 /* Slurm's own limit */

static int sum(const int *tasks, int num_nodes)
{
    int size = 0;
    for (int node = 0; node < num_nodes; node++)
        size += tasks[node];
    return size;
}

/* ---- the map ---- */

/* Advances *text by the character `c`; false if there is another one. */
static bool skip(const char **text, char c)
{
    if (**text != c)
        return false;
    (*text)++;
    return true;
}

/* Fills placed[size]; `left` has the number of ranks that each node can still take. False if the
 * map is malformed, or of another step. */
static bool read_map(const char *text, int num_nodes, int size, int *left, int *placed)
{
    static const char start[] = "(vector";
    int rank = 0;
    if (strncmp(text, start, strlen(start)) != 0)
        return false;
    text += strlen(start);
    while (skip(&text, ',')) {
        long first = 0, nodes = 0, each = 0;
        if (!skip(&text, '(') || !hpct_number_scan(&text, num_nodes, &first) || !skip(&text, ',') ||
            !hpct_number_scan(&text, num_nodes - first, &nodes) || !skip(&text, ',') ||
            !hpct_number_scan(&text, size, &each) || !skip(&text, ')'))
            return false;
        for (long node = first; node < first + nodes; node++) {
            for (long i = 0; i < each; i++) {
                if (rank == size || left[node]-- == 0)
                    return false;
                placed[rank++] = (int) node;
            }
        }
    }
    return strcmp(text, ")") == 0 && rank == size;
}

hpct_status hpct_cluster_map_place(const hpct_cluster_environment *environment, const int *tasks,
                                   int num_nodes, int **out)
{
    const char *text = hpct_cluster_environment_get(environment, "SLURM_PMIX_MAPPING_SERV");
    int size = sum(tasks, num_nodes);
    *out = NULL;
    if (text == NULL)
        return HPCT_OK;
    int *left = malloc((size_t) num_nodes * sizeof *left);
    int *placed = malloc((size_t) size * sizeof *placed);
    if (left == NULL || placed == NULL) {
        free(left);
        free(placed);
        return hpct_fail_memory((size_t) size * sizeof *placed);
    }
    memcpy(left, tasks, (size_t) num_nodes * sizeof *left);
    if (read_map(text, num_nodes, size, left, placed))
        *out = placed;
    else
        free(placed);
    free(left);
    return HPCT_OK;
}

/* ---- the job's components ---- */

/* The nodes of component i of the job; NULL if the job has no such component or no components.
 * (srun's own allocation has only the older variable.) */
static const char *nodes_of(const hpct_cluster_environment *environment, int component)
{
    char name[64];
    snprintf(name, sizeof name, "SLURM_JOB_NODELIST_HET_GROUP_%d", component);
    const char *text = hpct_cluster_environment_get(environment, name);
    if (text == NULL) {
        snprintf(name, sizeof name, "SLURM_JOB_NODELIST_PACK_GROUP_%d", component);
        text = hpct_cluster_environment_get(environment, name);
    }
    return hpct_cluster_environment_get(environment, "SLURM_HET_SIZE") == NULL ? NULL : text;
}

/* Called for each node of the step, in the order of components; `place` is its index in the step's
 * list. */
typedef void (*node_sink)(void *context, int component, int place);

static hpct_status for_each_node(const hpct_cluster_environment *environment, char *const *names,
                                 int num_nodes, node_sink sink, void *context)
{
    hpct_cluster_names_index index;
    hpct_status status = HPCT_OK;
    const char *text;
    if (!hpct_cluster_names_index_make(names, num_nodes, &index))
        return hpct_fail_memory(0);
    for (int i = 0; i < MAX_COMPONENTS && (text = nodes_of(environment, i)) != NULL; i++) {
        char **list = NULL;
        int count = 0;
        status = hpct_cluster_nodelist_expand(text, &list, &count);
        if (status != HPCT_OK) {
            hpct_fail_within(status, "SLURM_JOB_NODELIST_HET_GROUP");
            break;
        }
        for (int n = 0; n < count; n++) {
            int place = hpct_cluster_names_find(&index, list[n]);
            if (place >= 0)
                sink(context, i, place);
        }
        hpct_cluster_names_free(list, count);
    }
    hpct_cluster_names_index_free(&index);
    return status;
}

typedef struct span {
    int first;
    bool spanned;
} span;

static void note_component(void *context, int component, int place)
{
    span *s = context;
    (void) place;
    s->spanned = s->spanned || (s->first >= 0 && s->first != component);
    s->first = component;
}

hpct_status hpct_cluster_components_spanned(const hpct_cluster_environment *environment,
                                            char *const *names, int num_nodes, bool *spanned)
{
    span s = {.first = -1};
    *spanned = false;
    if (nodes_of(environment, 1) == NULL)
        return HPCT_OK;
    hpct_status status = for_each_node(environment, names, num_nodes, note_component, &s);
    *spanned = s.spanned;
    return status;
}

typedef struct blocks {
    const int *tasks;
    bool *seen; /* [num_nodes] */
    int *placed;
    int done;
} blocks;

static void deal_block(void *context, int component, int place)
{
    blocks *b = context;
    (void) component;
    if (b->seen[place])
        return;
    b->seen[place] = true;
    for (int i = 0; i < b->tasks[place]; i++)
        b->placed[b->done++] = place;
}

hpct_status hpct_cluster_components_place(const hpct_cluster_environment *environment,
                                          char *const *names, const int *tasks, int num_nodes,
                                          int **out)
{
    int size = sum(tasks, num_nodes);
    blocks b = {.tasks = tasks,
                .seen = calloc((size_t) num_nodes, sizeof *b.seen),
                .placed = malloc((size_t) size * sizeof *b.placed)};
    hpct_status status = b.seen == NULL || b.placed == NULL
                             ? hpct_fail_memory((size_t) size * sizeof *b.placed)
                             : for_each_node(environment, names, num_nodes, deal_block, &b);
    if (status == HPCT_OK && b.done != size)
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "Slurm does not say which tasks of this step belong to which of its "
                           "components: use srun --mpi=pmix, or a heterogeneous job (sbatch, or "
                           "salloc, with the same components)");
    free(b.seen);
    if (status == HPCT_OK)
        *out = b.placed;
    else
        free(b.placed);
    return status;
}
