/* Candidates are interfaces with an address that no other node has: bridges and tunnels of
 * containers and virtual machines have the same one on every node. */
#include "spank/agree/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Addresses of all nodes, sorted, to find those that several nodes have. */
typedef struct owned {
    hpct_net_address address;
    uint32_t node;
} owned;

typedef struct choosing {
    const hpct_spec_network *wish;
    const hpct_agree_network_node *nodes;
    uint32_t count;
    owned *sorted;
    size_t num_sorted;
} choosing;

static int compare_addresses(const void *a, const void *b)
{
    const hpct_net_address *x = a, *y = b;
    return x->v6 != y->v6 ? x->v6 - y->v6 : memcmp(x->bytes, y->bytes, sizeof x->bytes);
}

static bool sort_addresses(choosing *c)
{
    size_t all = 1;
    for (uint32_t n = 0; n < c->count; n++)
        all += (size_t) c->nodes[n].count;
    c->sorted = calloc(all, sizeof *c->sorted);
    for (uint32_t n = 0; c->sorted != NULL && n < c->count; n++) {
        for (int i = 0; i < c->nodes[n].count; i++)
            c->sorted[c->num_sorted++] =
                (owned){.address = c->nodes[n].interfaces[i].address, .node = n};
    }
    if (c->sorted != NULL)
        qsort(c->sorted, c->num_sorted, sizeof *c->sorted, compare_addresses);
    return c->sorted != NULL;
}

/* A node other than `node` that has the address, too; NULL: none. */
static const hpct_agree_network_node *find_other(const choosing *c, const hpct_net_address *address,
                                                 uint32_t node)
{
    const owned key = {.address = *address};
    const owned *at = bsearch(&key, c->sorted, c->num_sorted, sizeof key, compare_addresses);
    if (at == NULL)
        return NULL;
    while (at > c->sorted && hpct_net_address_equal(&at[-1].address, address))
        at--;
    for (; at < c->sorted + c->num_sorted && hpct_net_address_equal(&at->address, address); at++) {
        if (at->node != node)
            return &c->nodes[at->node];
    }
    return NULL;
}

static bool is_loopback(const hpct_net_interface *interface)
{
    return interface->loopback || hpct_net_address_is_loopback(&interface->address);
}

static bool is_usable(const choosing *c, const hpct_net_interface *interface, uint32_t node)
{
    return !is_loopback(interface) && find_other(c, &interface->address, node) == NULL;
}

/* ---- a network that was named ---------------------------------------------------------------- */

/* False if the interface is in the list already, or the list is full. */
static bool add_interface(hpct_agree_network_part *part, const hpct_net_interface *interface)
{
    const size_t used = strlen(part->interfaces), more = strlen(interface->name);
    const char *at = part->interfaces;
    for (size_t size = 0; *at != '\0'; at += size + (at[size] == ',')) {
        size = strcspn(at, ",");
        if (size == more && strncmp(at, interface->name, size) == 0)
            return false;
    }
    if (used + 1 + more >= sizeof part->interfaces)
        return false;
    snprintf(part->interfaces + used, sizeof part->interfaces - used, "%s%s", used > 0 ? "," : "",
             interface->name);
    if (used == 0)
        hpct_net_address_print(&interface->address, part->address);
    return true;
}

static hpct_status fail_shared(const hpct_agree_network_node *node,
                               const hpct_net_interface *interface,
                               const hpct_agree_network_node *other)
{
    char address[INET6_ADDRSTRLEN];
    hpct_net_address_print(&interface->address, address);
    return hpct_fail(HPCT_ERR_CONFIG,
                     "%s has %s on %s, and so has %s: they cannot reach each other", node->name,
                     address, interface->name, other->name);
}

static hpct_status fail_missing(const choosing *c, uint32_t node)
{
    char wish[100], has[100] = "";
    size_t used = 0;
    hpct_spec_network_print(c->wish, wish, sizeof wish);
    for (int i = 0; i < c->nodes[node].count && used < sizeof has; i++) {
        char address[INET6_ADDRSTRLEN];
        const hpct_net_interface *at = &c->nodes[node].interfaces[i];
        hpct_net_address_print(&at->address, address);
        if (!at->loopback)
            used += (size_t) snprintf(has + used, sizeof has - used, " %s=%s", at->name, address);
    }
    return hpct_fail(HPCT_ERR_CONFIG, "%s has no address on %s; it has%s", c->nodes[node].name,
                     wish, has);
}

static hpct_status take_named(const choosing *c, uint32_t node, hpct_agree_network_part *part)
{
    const hpct_agree_network_node *n = &c->nodes[node];
    for (int i = 0; i < c->wish->count * n->count; i++) {
        const hpct_net_interface *at = &n->interfaces[i % n->count];
        const hpct_agree_network_node *other = find_other(c, &at->address, node);
        if (!hpct_spec_network_has(c->wish, i / n->count, at))
            continue;
        if (!is_loopback(at) && other != NULL)
            return fail_shared(n, at, other);
        if (!is_loopback(at) || c->count == 1)
            add_interface(part, at);
    }
    return part->interfaces[0] != '\0' ? HPCT_OK : fail_missing(c, node);
}

/* ---- auto ------------------------------------------------------------------------------------ */

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Whether others reach the node's programs at the address that its own name has. */
static bool is_name_good(const choosing *c, uint32_t node)
{
    const hpct_agree_network_node *n = &c->nodes[node];
    return n->has_own && !hpct_net_address_is_loopback(&n->own) &&
           find_other(c, &n->own, node) == NULL;
}

/* NCCL itself prefers these, and uses all of them. */
static bool has_fabric(const hpct_agree_network_node *node)
{
    for (int i = 0; i < node->count; i++) {
        if (has_prefix(node->interfaces[i].name, "ib") ||
            has_prefix(node->interfaces[i].name, "hsn"))
            return true;
    }
    return false;
}

/* NCCL leaves out those of Docker and libvirt by their names, but not other bridges. */
static bool misleads_nccl(const choosing *c, uint32_t node)
{
    for (int i = 0; i < c->nodes[node].count; i++) {
        const hpct_net_interface *at = &c->nodes[node].interfaces[i];
        if (!at->loopback && !has_prefix(at->name, "docker") && !has_prefix(at->name, "virbr") &&
            !has_prefix(at->name, "lo") && find_other(c, &at->address, node) != NULL)
            return true;
    }
    return false;
}

static unsigned find_changes(const choosing *c)
{
    unsigned changes = 0;
    bool fabric = true, misled = false;
    for (uint32_t n = 0; n < c->count; n++) {
        if (!is_name_good(c, n))
            changes = HPCT_AGREE_NETWORK_ADDRESSES | HPCT_AGREE_NETWORK_GLOO;
        fabric = fabric && has_fabric(&c->nodes[n]);
        misled = misled || misleads_nccl(c, n);
    }
    return changes | (misled && !fabric ? HPCT_AGREE_NETWORK_NCCL : 0);
}

/* The node's fastest interface in the network of `like`; NULL: none. */
static const hpct_net_interface *find_in(const choosing *c, uint32_t node,
                                         const hpct_net_interface *like)
{
    const hpct_net_interface *best = NULL;
    for (int i = 0; i < c->nodes[node].count; i++) {
        const hpct_net_interface *at = &c->nodes[node].interfaces[i];
        if (at->bits == like->bits && is_usable(c, at, node) &&
            hpct_net_address_shares(&at->address, &like->address, like->bits) &&
            (best == NULL || at->mbits > best->mbits))
            best = at;
    }
    return best;
}

/* The speed of the slowest link of the network; -1: a node has none in it. */
static int64_t find_speed(const choosing *c, const hpct_net_interface *like)
{
    int64_t slowest = INT64_MAX;
    for (uint32_t n = 0; n < c->count && slowest >= 0; n++) {
        const hpct_net_interface *at = find_in(c, n, like);
        const int64_t speed = at == NULL ? -1 : (int64_t) at->mbits;
        slowest = speed < slowest ? speed : slowest;
    }
    return slowest;
}

/* The fastest network that all nodes share, IPv4 before IPv6; NULL: none. */
static const hpct_net_interface *find_common(const choosing *c)
{
    const hpct_net_interface *best = NULL;
    int64_t best_speed = -1;
    for (int i = 0; i < c->nodes[0].count; i++) {
        const hpct_net_interface *at = &c->nodes[0].interfaces[i];
        const int64_t speed = is_usable(c, at, 0) ? find_speed(c, at) : -1;
        const bool preferred = best != NULL && best->address.v6 && !at->address.v6;
        if (speed > best_speed || (speed == best_speed && speed >= 0 && preferred)) {
            best = at;
            best_speed = speed;
        }
    }
    return best;
}

static void choose_auto(const choosing *c, hpct_agree_network_part *parts, unsigned *changes)
{
    const hpct_net_interface *common = NULL;
    if (c->count > 1)
        *changes = find_changes(c);
    if (*changes != 0)
        common = find_common(c);
    if (common == NULL)
        *changes = 0;
    for (uint32_t n = 0; common != NULL && n < c->count; n++)
        add_interface(&parts[n], find_in(c, n, common));
}

hpct_status hpct_agree_network_choose(const hpct_spec_network *wish,
                                      const hpct_agree_network_node *nodes, uint32_t count,
                                      hpct_agree_network_part *parts, unsigned *changes)
{
    hpct_status status = HPCT_OK;
    choosing c = {.wish = wish, .nodes = nodes, .count = count};
    *changes = 0;
    memset(parts, 0, count * sizeof *parts);
    if (wish->kind == HPCT_SPEC_NETWORK_OFF)
        return HPCT_OK;
    if (!sort_addresses(&c))
        return hpct_fail_memory(0);
    if (wish->kind == HPCT_SPEC_NETWORK_AUTO) {
        choose_auto(&c, parts, changes);
    } else {
        *changes = HPCT_AGREE_NETWORK_ALL;
        for (uint32_t n = 0; n < count && status == HPCT_OK; n++)
            status = take_named(&c, n, &parts[n]);
    }
    free(c.sorted);
    return status;
}
