/* The first task of a node that needs the ports chooses them; the others get its result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/agree/network_frames.h"
#include "spank/contexts.h"

#define SRUN_MARGIN 10 /* seconds for srun to report missing nodes */
#define TASK_MARGIN 20 /* additional seconds of the node's other tasks */

typedef struct work {
    const hpct_spank_ports_choosing *who;
    const hpct_spank_ports_wanted *wanted;
    bool together;  /* through srun; one node, too, so that srun knows that it prepares its tasks */
    bool helped;    /* all nodes can agree */
    char why[1024]; /* why this node cannot have a block */
} work;

static const char *name_of(const hpct_spank_ports_wanted *wanted)
{
    return wanted->names[wanted->node];
}

static bool hold(void *context, int choice)
{
    work *w = context;
    const hpct_spank_port_blocks *blocks = &w->wanted->blocks;
    const int *ports = blocks->ports + (size_t) choice * (size_t) blocks->each;
    if (hpct_spank_ports_hold(w->who->plugin->keeper, ports, blocks->each, name_of(w->wanted)) ==
        HPCT_OK)
        return true;
    snprintf(w->why, sizeof w->why, "%s", hpct_last_error());
    return false;
}

static int count_of(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

/* Address of srun's host, as slurmstepd sets it. */
bool hpct_spank_srun_address(const hpct_cluster_environment *environment, int port, char *text,
                             size_t size)
{
    const char *host = environment->get(environment->context, "SLURM_LAUNCH_NODE_IPADDR");
    if (host == NULL)
        host = environment->get(environment->context, "SLURM_SRUN_COMM_HOST");
    if (host != NULL)
        snprintf(text, size, strchr(host, ':') == NULL ? "%s:%d" : "[%s]:%d", host, port);
    return host != NULL;
}

/* Of this node only: the others' addresses are not known. */
static hpct_status choose_network_alone(work *w, hpct_agree_network *network)
{
    hpct_agree_network_node own;
    if (w->who->wish->kind == HPCT_SPEC_NETWORK_AUTO)
        return HPCT_OK;
    hpct_status status = hpct_agree_network_look(&own, false);
    snprintf(own.name, sizeof own.name, "%s", name_of(w->wanted));
    if (status == HPCT_OK)
        status =
            hpct_agree_network_choose(w->who->wish, &own, 1, &network->part, &network->changes);
    network->changes &= ~(unsigned) HPCT_AGREE_NETWORK_ADDRESSES;
    network->refused = status != HPCT_OK;
    hpct_agree_network_node_free(&own);
    return status;
}

static hpct_status choose_alone(work *w, hpct_spank_share *share, uint64_t bits, int *choice)
{
    HPCT_TRY(choose_network_alone(w, hpct_spank_share_network(share)));
    for (; bits != 0; bits &= bits - 1) {
        *choice = __builtin_ctzll(bits);
        if (hold(w, *choice))
            return HPCT_OK;
    }
    return HPCT_ERR_CONFIG;
}

static hpct_status choose_together(work *w, hpct_spank_share *share, uint64_t bits, int *choice,
                                   bool *speaks)
{
    const hpct_spank_plugin *plugin = w->who->plugin;
    char address[256] = "";
    hpct_spank_srun_address(w->who->environment, plugin->srun_port, address, sizeof address);
    const hpct_agree_ports_ask ask = {
        .address = address,
        .key = &plugin->key,
        .node = w->wanted->node,
        .num_nodes = w->wanted->num_nodes,
        .names = (const char *const *) w->wanted->names,
        .free = bits,
        .seconds = plugin->settings.wait + SRUN_MARGIN,
        .hold = hold,
        .context = w,
        .network = hpct_spank_share_network(share),
    };
    return hpct_agree_ports(&ask, choice, speaks);
}

static hpct_status choose(void *context, hpct_spank_share *share)
{
    work *w = context;
    const hpct_spank_plugin *plugin = w->who->plugin;
    const hpct_spank_port_blocks *blocks = &w->wanted->blocks;
    int choice = 0;
    bool speaks = true;
    /* without srun all nodes take the first block, even if some of its ports are in use */
    uint64_t bits =
        w->helped ? hpct_spank_ports_free(plugin->keeper, blocks, name_of(w->wanted)) : UINT64_C(1);
    const int taken = w->helped ? blocks->count - count_of(bits) : 0;
    snprintf(w->why, sizeof w->why, "%s", taken == 0 ? "" : hpct_last_error());
    hpct_status status = w->together ? choose_together(w, share, bits, &choice, &speaks)
                                     : choose_alone(w, share, bits, &choice);
    if (status == HPCT_OK) {
        hpct_spank_share_set_choice(share, choice);
        return HPCT_OK;
    }
    if (!speaks) /* one node prints the message for all */
        hpct_spank_share_first(share, HPCT_SPANK_SHARE_REPORTED);
    if (status != HPCT_ERR_CONFIG || w->why[0] == '\0' || hpct_spank_share_network(share)->refused)
        return status;
    if (blocks->count == 1 || !w->helped)
        return hpct_fail(status, "%s", w->why);
    return hpct_fail(status,
                     "of the %d blocks of ports that this step may have none is free on all of its "
                     "nodes, and here %d are taken: %s",
                     blocks->count, taken, w->why);
}

hpct_status hpct_spank_ports_choose(void *choosing, const hpct_spank_ports_wanted *wanted,
                                    int *choice)
{
    const hpct_spank_ports_choosing *who = choosing;
    hpct_spank_plugin *plugin = who->plugin;
    char address[256];
    bool together =
        plugin->srun_port != 0 && plugin->has_key &&
        hpct_spank_srun_address(who->environment, plugin->srun_port, address, sizeof address);
    work w = {
        .who = who,
        .wanted = wanted,
        .together = together,
        .helped = together || wanted->num_nodes == 1,
    };
    HPCT_TRY(hpct_spank_share_once(plugin->share, HPCT_SPANK_SHARE_PORTS, who->local_rank,
                                   "choose the ports",
                                   plugin->settings.wait + SRUN_MARGIN + TASK_MARGIN, choose, &w));
    *choice = hpct_spank_share_choice(plugin->share);
    return HPCT_OK;
}
