/* Interfaces and networks are told apart by the '/'. */
#include "spank/spec/network.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"

static const char *const words[] = {
    [HPCT_SPEC_NETWORK_AUTO] = "auto", [HPCT_SPEC_NETWORK_OFF] = "off"};

static bool is_name(const char *text)
{
    if (text[0] == '\0' || strlen(text) >= IF_NAMESIZE)
        return false;
    for (; *text != '\0'; text++) {
        if (!isalnum((unsigned char) *text) && strchr("-_.:@", *text) == NULL)
            return false;
    }
    return true;
}

static bool read_subnet(char *text, hpct_spec_network_entry *out)
{
    long bits = 0;
    char *slash = strchr(text, '/');
    *slash = '\0';
    if (!hpct_net_address_parse(text, &out->address) ||
        !hpct_number_parse(slash + 1, 0, out->address.v6 ? 128 : 32, &bits))
        return false;
    out->bits = (int) bits;
    return true;
}

static bool read_entry(char *text, hpct_spec_network *out)
{
    hpct_spec_network_entry *entry = &out->entries[out->count];
    const hpct_spec_network_kind kind =
        strchr(text, '/') != NULL ? HPCT_SPEC_NETWORK_SUBNETS : HPCT_SPEC_NETWORK_INTERFACES;
    if (out->count > 0 && kind != out->kind)
        return false;
    out->kind = kind;
    out->count++;
    if (kind == HPCT_SPEC_NETWORK_SUBNETS)
        return read_subnet(text, entry);
    if (!is_name(text))
        return false;
    strcpy(entry->name, text);
    return true;
}

hpct_status hpct_spec_network_parse(const char *text, hpct_spec_network *out)
{
    char copy[HPCT_SPEC_NETWORK_MAX * (INET6_ADDRSTRLEN + 5)], *rest = copy, *part;
    bool good = strlen(text) < sizeof copy;
    *out = (hpct_spec_network){0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        out->kind = (hpct_spec_network_kind) i;
        if (strcmp(text, words[i]) == 0)
            return HPCT_OK;
    }
    strncpy(copy, text, sizeof copy - 1);
    while (good && (part = strsep(&rest, ",")) != NULL)
        good = out->count < HPCT_SPEC_NETWORK_MAX && read_entry(part, out);
    if (good)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_USAGE,
                     "'%.100s' is not a network: write interfaces, such as eth1 or hsn0,hsn1, or "
                     "networks, such as 10.1.0.0/16, up to %d of them, or auto, or off",
                     text, HPCT_SPEC_NETWORK_MAX);
}

bool hpct_spec_network_has(const hpct_spec_network *network, int entry,
                           const hpct_net_interface *interface)
{
    const hpct_spec_network_entry *e = &network->entries[entry];
    return network->kind == HPCT_SPEC_NETWORK_SUBNETS
               ? hpct_net_address_shares(&interface->address, &e->address, e->bits)
               : strcmp(interface->name, e->name) == 0;
}

const char *hpct_spec_network_print(const hpct_spec_network *network, char *text, size_t size)
{
    char address[INET6_ADDRSTRLEN];
    size_t used = 0;
    snprintf(text, size, "%s", network->count == 0 ? words[network->kind] : "");
    for (int i = 0; i < network->count && used < size; i++) {
        const hpct_spec_network_entry *e = &network->entries[i];
        const char *comma = i > 0 ? "," : "";
        hpct_net_address_print(&e->address, address);
        int wrote = network->kind == HPCT_SPEC_NETWORK_SUBNETS
                        ? snprintf(text + used, size - used, "%s%s/%d", comma, address, e->bits)
                        : snprintf(text + used, size - used, "%s%s", comma, e->name);
        used += wrote > 0 ? (size_t) wrote : 0;
    }
    return text;
}
