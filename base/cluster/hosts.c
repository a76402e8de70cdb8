/* Addresses from SLURM_NODE_ALIASES, else from Slurm's configuration. */
#include "base/cluster/hosts.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster/names.h"
#include "base/cluster/nodelist.h"
#include "base/status.h"

static bool is_host(const char *text)
{
    struct in6_addr address;
    size_t size = strlen(text);
    if (size == 0 || size > HPCT_CLUSTER_MAX_NODE_NAME)
        return false;
    return inet_pton(AF_INET6, text, &address) == 1 ||
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") ==
               size;
}

/* Terminates "address:hostname" after its address, which may be "[v6]"; *text points to the
 * address. False if malformed. */
static bool cut_address(char **text)
{
    char *end = **text == '[' ? strchr(*text, ']') : strchr(*text, ':');
    if (end == NULL || (**text == '[' && end[1] != ':'))
        return false;
    *text += **text == '[';
    *end = '\0';
    return is_host(*text);
}

/* Stores the addresses of nodes with an alias in hosts[]. */
static hpct_status read_aliases(const char *aliases, const hpct_cluster_names_index *index,
                                char **hosts)
{
    char *copy = strdup(aliases), *rest = NULL;
    if (copy == NULL)
        return hpct_fail_memory(strlen(aliases));
    for (char *set = strtok_r(copy, ",", &rest); set != NULL; set = strtok_r(NULL, ",", &rest)) {
        char *address = strchr(set, ':');
        if (address == NULL)
            continue;
        *address++ = '\0';
        int place = hpct_cluster_names_find(index, set);
        if (place < 0 || hosts[place] != NULL || !cut_address(&address))
            continue;
        hosts[place] = strdup(address);
        if (hosts[place] == NULL) {
            free(copy);
            return hpct_fail_memory(0);
        }
    }
    free(copy);
    return HPCT_OK;
}

hpct_status hpct_cluster_hosts_find(const hpct_cluster_environment *environment, char *const *names,
                                    int count, hpct_cluster_address_lookup lookup, char ***out)
{
    hpct_status status = HPCT_OK;
    hpct_cluster_names_index index = {0};
    const char *aliases = environment->get(environment->context, "SLURM_NODE_ALIASES");
    char **hosts = calloc((size_t) count, sizeof *hosts);
    if (hosts == NULL)
        return hpct_fail_memory((size_t) count * sizeof *hosts);
    if (aliases != NULL && strchr(aliases, ':') != NULL) {
        status = hpct_cluster_names_index_make(names, count, &index)
                     ? read_aliases(aliases, &index, hosts)
                     : hpct_fail_memory(0);
        hpct_cluster_names_index_free(&index);
    }
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        if (hosts[i] == NULL && lookup != NULL)
            hosts[i] = lookup(names[i]);
        if (hosts[i] != NULL && !is_host(hosts[i])) {
            free(hosts[i]);
            hosts[i] = NULL;
        }
        if (hosts[i] == NULL && (hosts[i] = strdup(names[i])) == NULL)
            status = hpct_fail_memory(0);
    }
    if (status == HPCT_OK)
        *out = hosts;
    else
        hpct_cluster_names_free(hosts, count);
    return status;
}
