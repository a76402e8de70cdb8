/* In srun: the nodes of the step agree on ports here, which each does when it prepares its tasks.
 * Where the plugin is missing a node never does, and its tasks run unprepared: srun names it, ends
 * the step, and does not end with 0. */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cluster/nodelist.h"
#include "base/status.h"
#include "spank/contexts.h"
#include "spank/slurm_release.h"
#include "spank/step_key.h"

#define BEFORE_KILL 1 /* seconds for nodes that have been told to end their tasks themselves */

/* State that outlives the plugin, until srun ends. */
static struct {
    hpct_agree_ports_host *host;
    uint32_t job, step, nodes; /* nodes 0: several components, which srun does not know here */
    hpct_agree_ports_outcome outcome;
} own;

#define CAUSES "either its prolog takes long, or the plugin is missing, broken or older there"
#define LOOK "-N1 -n1 -w %s --mpi=none --hpc-train=off " HPCT_ADMIN_COMMAND

/* The node's name; its number if Slurm does not say it. */
static void name_node(uint32_t number, char *text, size_t size)
{
    char **names = NULL;
    int count = 0;
    char *list = own.nodes > 0 ? hpct_slurm_step_nodes(own.job, own.step) : NULL;
    if (list != NULL && hpct_cluster_nodelist_expand(list, &names, &count) == HPCT_OK &&
        number < (uint32_t) count)
        snprintf(text, size, "%s", names[number]);
    else
        snprintf(text, size, "node %u", number);
    hpct_cluster_names_free(names, count);
    free(list);
}

/* Nodes have been told when time is over. */
static void tell_late(void *context, const hpct_agree_ports_late *late)
{
    char node[256], more[64] = "";
    (void) context;
    name_node(late->first, node, sizeof node);
    if (late->count > 1)
        snprintf(more, sizeof more, " and %u other%s", late->count - 1,
                 late->count > 2 ? " nodes" : " node");
    if (late->left > 0) {
        hpct_slurm_error("warning: waiting for %s%s to prepare its tasks, for %d seconds: " CAUSES
                         ". To look: srun --jobid=%u --overlap " LOOK
                         " (if that waits, too, it is the prolog). In %d seconds the step is ended",
                         node, more, late->waited, own.job, node, late->left);
        return;
    }
    hpct_slurm_error("%s%s has not prepared its tasks in %d seconds, and the step is ended: " CAUSES
                     ". To look: srun " LOOK,
                     node, more, late->waited, node);
    sleep(BEFORE_KILL);
    if (own.nodes > 0)
        hpct_slurm_signal_step(own.job, own.step, SIGKILL);
}

/* Slurm unloads its plugins before or after this. */
static void at_end(int status, void *context)
{
    (void) context;
    hpct_spank_client_end_ports();
    bool unprepared = own.outcome == HPCT_AGREE_PORTS_PENDING && status == 0 && own.nodes > 0;
    if (unprepared)
        fprintf(stderr,
                "srun: error: hpc-train: the tasks have run unprepared: the plugin is missing, "
                "broken or older on nodes of the step. To look, there: " HPCT_ADMIN_COMMAND "\n");
    if (unprepared || (own.outcome == HPCT_AGREE_PORTS_LATE && status != HPCT_ERR_PEER))
        exit(HPCT_ERR_PEER); /* goes on with the other handlers */
}

/* If srun cannot listen, the nodes use the first block of ports, if it is free. */
void hpct_spank_client_serve_ports(const hpct_spank_plugin *plugin,
                                   const hpct_spank_choices *choices, uint32_t job, uint32_t step,
                                   uint32_t nodes)
{
    int port = 0;
    hpct_agree_ports_serving serving = {.key = &plugin->key,
                                        .nodes = nodes,
                                        .seconds = plugin->settings.wait,
                                        .network =
                                            *hpct_spank_network_wish(choices, &plugin->settings),
                                        .late = tell_late};
    if (own.host != NULL || !hpct_spank_client_stay_loaded())
        return;
    own.job = job;
    own.step = step;
    own.nodes = nodes;
    hpct_slurm_srun_ports(&serving.low, &serving.high);
    hpct_status status = hpct_agree_ports_serve(&own.host, &serving, &port);
    if (status == HPCT_OK)
        status = hpct_spank_step_port_send(HPCT_SPANK_STEP_PORT_SENT, port);
    if (status == HPCT_OK && on_exit(at_end, NULL) != 0)
        status = hpct_fail_memory(0);
    if (status != HPCT_OK && plugin->settings.verbose)
        hpct_slurm_info("the nodes cannot agree on ports: %s", hpct_last_error());
}

void hpct_spank_client_end_ports(void)
{
    if (own.host != NULL)
        own.outcome = hpct_agree_ports_serve_end(own.host);
    own.host = NULL;
}
