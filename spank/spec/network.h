/* spank/spec/network.h - the value of --hpc-train-network and of network= in plugstack.conf. */
#ifndef HPCT_SPANK_SPEC_NETWORK_H
#define HPCT_SPANK_SPEC_NETWORK_H

#include "base/net/interfaces.h"

#define HPCT_SPEC_NETWORK_MAX 8 /* interfaces, or networks */

typedef enum hpct_spec_network_kind {
    HPCT_SPEC_NETWORK_AUTO, /* only what would go wrong is changed */
    HPCT_SPEC_NETWORK_OFF,
    HPCT_SPEC_NETWORK_INTERFACES, /* each node uses those that it has */
    HPCT_SPEC_NETWORK_SUBNETS,    /* each node uses its interfaces with an address in one of them */
} hpct_spec_network_kind;

typedef struct hpct_spec_network_entry {
    char name[IF_NAMESIZE];
    hpct_net_address address;
    int bits;
} hpct_spec_network_entry;

typedef struct hpct_spec_network {
    hpct_spec_network_kind kind;
    int count;
    hpct_spec_network_entry entries[HPCT_SPEC_NETWORK_MAX];
} hpct_spec_network;

/* Parses "auto", "off", "INTERFACE,…" or "ADDRESS/BITS,…". Returns HPCT_ERR_USAGE. */
hpct_status hpct_spec_network_parse(const char *text, hpct_spec_network *out);

/* Whether an interface's address belongs to the entry. */
bool hpct_spec_network_has(const hpct_spec_network *network, int entry,
                           const hpct_net_interface *interface);

/* The value as a user writes it; returns `text`. */
const char *hpct_spec_network_print(const hpct_spec_network *network, char *text, size_t size);

#endif
