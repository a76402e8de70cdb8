/* How the ranks find rank 0's watch. */
#include "agent/comm/rendezvous.h"

#include "agent/comm/link.h"
#include "base/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define BACKLOG 1024

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (const char *c = text == NULL ? "" : text; *c != '\0'; c++)
        hash = (hash ^ (unsigned char) *c) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u; /* so that "ab","c" is not "a","bc" */
}

void hpct_rendezvous_token(uint8_t token[HPCT_TOKEN_BYTES], const hpct_config *config)
{
    char user[32];
    uint64_t hashes[2] = {0xcbf29ce484222325u, 0x84222325cbf29ce4u};
    snprintf(user, sizeof user, "%u", (unsigned) getuid());
    for (int h = 0; h < 2; h++) {
        hashes[h] = hash_text(hashes[h], config->job);
        hashes[h] = hash_text(hashes[h], user);
        for (int rank = 0; rank < config->size; rank++)
            hashes[h] = hash_text(hashes[h], config->addresses[rank]);
    }
    for (int i = 0; i < HPCT_TOKEN_BYTES; i++)
        token[i] = (uint8_t) (hashes[i / 8] >> (8 * (i % 8)));
}

hpct_status hpct_rendezvous_from_config(hpct_rendezvous *out, const hpct_config *config)
{
    char host[256];
    int port;
    *out = (hpct_rendezvous){.listen_fd = -1, .num_addresses = 1};
    if (!hpct_link_split_address(config->addresses[0], host, sizeof host, &port))
        return hpct_fail(HPCT_ERR_CONFIG, "the address of rank 0, '%s', is not host:port",
                         config->addresses[0]);
    snprintf(out->addresses[0], sizeof out->addresses[0], "%s", config->addresses[0]);
    hpct_rendezvous_token(out->token, config);
    return config->rank == 0 ? hpct_link_listen(&out->listen_fd, &port, host, BACKLOG) : HPCT_OK;
}

/* ---- through the communicator ---- */

typedef struct announcement {
    int32_t status; /* of rank 0's listening */
    int32_t port;
    hpct_rendezvous_hosts hosts;
    char node[256];
    char error[256];
    uint8_t token[HPCT_TOKEN_BYTES];
} announcement;

/* Link-local addresses mean nothing on another node. */
void hpct_rendezvous_list_hosts(hpct_rendezvous_hosts *hosts)
{
    struct ifaddrs *all = NULL;
    *hosts = (hpct_rendezvous_hosts){0};
    if (getifaddrs(&all) != 0)
        all = NULL;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        char text[INET6_ADDRSTRLEN];
        if (i->ifa_addr == NULL || (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP) ||
            hosts->num >= HPCT_RENDEZVOUS_HOSTS)
            continue;
        if (i->ifa_addr->sa_family == AF_INET) {
            const struct sockaddr_in *v4 = (const void *) i->ifa_addr;
            inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
            snprintf(hosts->host[hosts->num++], sizeof hosts->host[0], "%s", text);
        } else if (i->ifa_addr->sa_family == AF_INET6) {
            const struct sockaddr_in6 *v6 = (const void *) i->ifa_addr;
            if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
                continue;
            inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
            snprintf(hosts->host[hosts->num++], sizeof hosts->host[0], "[%s]", text);
        }
    }
    freeifaddrs(all);
    if (hosts->num == 0)
        snprintf(hosts->host[hosts->num++], sizeof hosts->host[0], "127.0.0.1");
}

static void announce(announcement *a, hpct_rendezvous *out)
{
    int port = 0;
    a->status = (int32_t) hpct_link_listen(&out->listen_fd, &port, a->node, BACKLOG);
    a->port = port;
    if (a->status == HPCT_OK && getrandom(a->token, sizeof a->token, 0) != sizeof a->token)
        a->status = (int32_t) hpct_fail(HPCT_ERR_INTERNAL, "getrandom: %s", strerror(errno));
    if (a->status != HPCT_OK)
        snprintf(a->error, sizeof a->error, "%.255s", hpct_last_error());
    hpct_rendezvous_list_hosts(&a->hosts);
}

static void add_address(hpct_rendezvous *out, const char *host, int port)
{
    if (out->num_addresses < HPCT_RENDEZVOUS_ADDRESSES)
        snprintf(out->addresses[out->num_addresses++], HPCT_RENDEZVOUS_ADDRESS_SIZE, "%s:%d", host,
                 port);
}

hpct_status hpct_rendezvous_through(hpct_rendezvous *out, hpct_comm *comm)
{
    announcement a = {0};
    char own_node[sizeof a.node] = "";
    *out = (hpct_rendezvous){.listen_fd = -1};
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
    memcpy(out->token, a.token, sizeof out->token);
    if (strcmp(own_node, a.node) == 0)
        add_address(out, "127.0.0.1", a.port);
    for (int i = 0; i < a.hosts.num; i++)
        add_address(out, a.hosts.host[i], a.port);
    add_address(out, a.node, a.port);
    return HPCT_OK;
}
