/* All that Slurm's variables say of a step together: lines of NAME=VALUE, with ROLES for the option
 * and TASKS for what Slurm itself counts. A cluster that is accepted has a place and an address for
 * every task, and configs that can be written and read again. */
#include "base/cluster/cluster.h"
#include "base/cluster/nodelist.h"
#include "tests/fuzz/fuzz.h"

#define MAX_SIZE 2000 /* tasks; more is right too, but slow */

/* The value of a line; the lines are ended by zero bytes, the last one by two. */
static const char *get(void *lines, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = lines; *p != '\0'; p += strlen(p) + 1) {
        if (strncmp(p, name, length) == 0 && p[length] == '=')
            return p + length + 1;
    }
    return NULL;
}

static void check_layout(const hpct_cluster_layout *layout)
{
    int *given = calloc((size_t) layout->num_nodes, sizeof *given);
    for (int rank = 0; rank < layout->size; rank++) {
        int node = layout->node[rank];
        if (node < 0 || node >= layout->num_nodes || layout->local[rank] != given[node]++)
            abort();
    }
    for (int node = 0; node < layout->num_nodes; node++) {
        must(given[node] == layout->tasks[node]);
    }
    free(given);
}

static void check_config(const hpct_cluster *cluster, const hpct_cluster_roles *roles, int rank)
{
    hpct_cluster_config *config = NULL, *again = NULL;
    char *text = NULL;
    if (hpct_cluster_config_of(cluster, rank, 7, 1, roles, NULL, &config) != HPCT_OK)
        return;
    if (config->rank != rank || config->size != cluster->layout.size ||
        hpct_cluster_config_to_json(config, &text) != HPCT_OK ||
        hpct_cluster_config_from_json(text, strlen(text), "output", &again) != HPCT_OK ||
        again->role_index != config->role_index || strcmp(again->role, config->role) != 0)
        abort();
    free(text);
    hpct_cluster_config_free(config);
    hpct_cluster_config_free(again);
}

static void try_cluster(const hpct_cluster_environment *environment)
{
    const char *tasks = get(environment->context, "TASKS");
    const char *list = get(environment->context, "ROLES");
    hpct_cluster cluster;
    hpct_cluster_roles roles;
    if (hpct_cluster_from_slurm(environment, tasks == NULL ? 0 : atoi(tasks), &cluster) != HPCT_OK)
        return;
    check_layout(&cluster.layout);
    bool has_roles = list != NULL && hpct_cluster_roles_parse(list, &roles) == HPCT_OK;
    must(hpct_cluster_set_hosts(&cluster, environment, NULL) == HPCT_OK);
    if (cluster.layout.size <= MAX_SIZE &&
        hpct_cluster_set_ports(&cluster, environment, NULL, hpct_cluster_port_range_default(), 7, 1,
                               3, NULL) == HPCT_OK) {
        int port =
            hpct_cluster_spare_port(&cluster, environment, NULL, hpct_cluster_port_range_default());
        char *hosts = hpct_cluster_hosts(&cluster, port);
        if (port < 1 || port > 65535 || hosts == NULL)
            abort();
        free(hosts);
        check_config(&cluster, has_roles ? &roles : NULL, 0);
        check_config(&cluster, has_roles ? &roles : NULL, cluster.layout.size - 1);
    }
    hpct_cluster_free(&cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *lines = calloc(1, size + 2);
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        char byte = data[i] == '\n' ? '\0' : (char) data[i];
        if (byte != '\0' ||
            (used > 0 && lines[used - 1] != '\0')) /* an empty one would be the end */
            lines[used++] = byte;
    }
    hpct_cluster_environment environment = {.get = get, .context = lines};
    if (get(lines, "SLURM_HOSTFILE") == NULL) /* a name from here could be any file */
        try_cluster(&environment);
    free(lines);
    return 0;
}
