/* How the ranks find the address of rank 0's watch. */
#include "agent/comm/rendezvous.h"

#include "base/net/interfaces.h"
#include "base/net/link.h"
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG SOMAXCONN
#define MAX_INTERFACES 64

hpct_status hpct_comm_rendezvous_from_config(hpct_comm_rendezvous *out,
                                             const hpct_cluster_config *config)
{
    char host[256];
    int port;
    *out = (hpct_comm_rendezvous){.listen_fd = -1, .num_addresses = 1};
    if (!hpct_net_link_split_address(config->addresses[0], host, sizeof host, &port))
        return hpct_fail(HPCT_ERR_CONFIG, "the address of rank 0, '%s', is not host:port",
                         config->addresses[0]);
    snprintf(out->addresses[0], sizeof out->addresses[0], "%s", config->addresses[0]);
    return config->rank == 0 ? hpct_net_link_listen(&out->listen_fd, &port, host, BACKLOG)
                             : HPCT_OK;
}

/* ---- through the communicator ---- */

typedef struct announcement {
    int32_t status; /* of rank 0's hpct_net_link_listen */
    int32_t port;
    hpct_comm_rendezvous_hosts hosts;
    char node[256];
    char error[256];
} announcement;

static void add_host(hpct_comm_rendezvous_hosts *hosts, const hpct_net_address *address)
{
    char text[INET6_ADDRSTRLEN];
    hpct_net_address_print(address, text);
    snprintf(hosts->host[hosts->num++], sizeof hosts->host[0], address->v6 ? "[%s]" : "%s", text);
}

/* HPC_TRAIN_ADDRESS: the plugin's, if the step has a network. */
void hpct_comm_rendezvous_list_hosts(hpct_comm_rendezvous_hosts *hosts)
{
    const char *own = getenv("HPC_TRAIN_ADDRESS");
    hpct_net_interface *all = NULL;
    hpct_net_address address;
    int count = 0;
    *hosts = (hpct_comm_rendezvous_hosts){0};
    if (own != NULL && hpct_net_address_parse(own, &address))
        add_host(hosts, &address);
    else
        hpct_net_interfaces_list(MAX_INTERFACES, &all, &count);
    for (int i = 0; i < count && hosts->num < HPCT_COMM_RENDEZVOUS_HOSTS; i++) {
        if (!all[i].loopback)
            add_host(hosts, &all[i].address);
    }
    free(all);
    if (hosts->num == 0)
        snprintf(hosts->host[hosts->num++], sizeof hosts->host[0], "127.0.0.1");
}

static void announce(announcement *a, hpct_comm_rendezvous *out)
{
    int port = 0;
    a->status = (int32_t) hpct_net_link_listen(&out->listen_fd, &port, a->node, BACKLOG);
    a->port = port;
    if (a->status != HPCT_OK)
        snprintf(a->error, sizeof a->error, "%.255s", hpct_last_error());
    hpct_comm_rendezvous_list_hosts(&a->hosts);
}

static void add_address(hpct_comm_rendezvous *out, const char *host, int port)
{
    if (out->num_addresses < HPCT_COMM_RENDEZVOUS_ADDRESSES)
        snprintf(out->addresses[out->num_addresses++], HPCT_COMM_RENDEZVOUS_ADDRESS_SIZE, "%s:%d",
                 host, port);
}

hpct_status hpct_comm_rendezvous_through(hpct_comm_rendezvous *out, hpct_comm *comm)
{
    announcement a = {0};
    char own_node[sizeof a.node] = "";
    *out = (hpct_comm_rendezvous){.listen_fd = -1};
    gethostname(own_node, sizeof own_node - 1);
    if (comm->rank == 0) {
        memcpy(a.node, own_node, sizeof a.node);
        announce(&a, out);
    }
    hpct_status status = comm->ops->broadcast(comm, &a, sizeof a, 0);
    if (status == HPCT_OK && a.status != HPCT_OK)
        status = hpct_fail((hpct_status) a.status, "%.255s", a.error);
    if (status != HPCT_OK) {
        if (out->listen_fd >= 0)
            close(out->listen_fd);
        return status;
    }
    if (strcmp(own_node, a.node) == 0)
        add_address(out, "127.0.0.1", a.port);
    for (int i = 0; i < a.hosts.num; i++)
        add_address(out, a.hosts.host[i], a.port);
    add_address(out, a.node, a.port);
    return HPCT_OK;
}

/* ---- the key ---- */

bool hpct_comm_rendezvous_has_key(void)
{
    const char *path = getenv(HPCT_AUTH_KEY_VARIABLE);
    return path != NULL && *path != '\0';
}

hpct_status hpct_comm_rendezvous_read_key(hpct_auth_key **out)
{
    const char *path = getenv(HPCT_AUTH_KEY_VARIABLE);
    if (!hpct_comm_rendezvous_has_key())
        return hpct_fail(HPCT_ERR_CONFIG,
                         "this step has no key (" HPCT_AUTH_KEY_VARIABLE
                         " is not set), and without one "
                         "its tasks cannot tell each other from strangers: start it with srun "
                         "--hpc-train of the same release on all nodes, or name a file of 64 "
                         "hexadecimal digits, mode 0600, the same on all nodes");
    if (access(path, F_OK) != 0)
        return hpct_fail(HPCT_ERR_CONFIG,
                         HPCT_AUTH_KEY_VARIABLE
                         ": %s: %s; who empties $SLURM_TMPDIR within a step must "
                         "leave .hpc-train in it, or empty it in a step before",
                         path, strerror(errno));
    hpct_status status = hpct_auth_key_read(out, path);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, HPCT_AUTH_KEY_VARIABLE);
}

hpct_status hpct_comm_rendezvous_draw_key(hpct_auth_key **out, hpct_comm *comm)
{
    struct {
        int32_t status;
        hpct_auth_key key;
    } drawn = {0};
    hpct_auth_key *key = NULL;
    if (comm->rank == 0)
        drawn.status = (int32_t) hpct_auth_key_draw(&drawn.key);
    hpct_status status = comm->ops->broadcast(comm, &drawn, sizeof drawn, 0);
    if (status == HPCT_OK && drawn.status != HPCT_OK)
        status = hpct_fail((hpct_status) drawn.status, "rank 0 draws no key for this run");
    if (status == HPCT_OK)
        status = hpct_auth_key_new(&key);
    if (status == HPCT_OK)
        *key = drawn.key;
    explicit_bzero(&drawn, sizeof drawn);
    *out = key;
    return status;
}
