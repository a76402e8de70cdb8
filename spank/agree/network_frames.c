#include "spank/agree/network_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MS 3000 /* for the name service, if the machine's own name is not in /etc/hosts */
#define OWN_NAME 1   /* status */

/* ---- srun's side ----------------------------------------------------------------------------- */

bool hpct_agree_network_take_report(hpct_agree_network_node *node, const hpct_net_frame *frame)
{
    if (frame->status == OWN_NAME)
        return node->has_own = hpct_net_address_parse(frame->text, &node->own);
    if (node->count >= HPCT_AGREE_NETWORK_INTERFACES)
        return false;
    if (node->interfaces == NULL)
        node->interfaces = calloc(HPCT_AGREE_NETWORK_INTERFACES, sizeof *node->interfaces);
    if (node->interfaces == NULL ||
        !hpct_net_interface_parse(frame->text, &node->interfaces[node->count]))
        return false;
    node->count++;
    return true;
}

void hpct_agree_network_node_free(hpct_agree_network_node *node)
{
    free(node->interfaces);
    *node = (hpct_agree_network_node){0};
}

/* Addresses in one frame, each with a space. */
static uint32_t count_in_frame(const hpct_agree_network_decision *d)
{
    size_t longest = 1;
    for (uint32_t n = 0; n < d->count; n++) {
        const size_t size = strlen(d->parts[n].address);
        longest = size > longest ? size : longest;
    }
    return (uint32_t) ((HPCT_NET_FRAME_TEXT - 1) / (longest + 1));
}

uint32_t hpct_agree_network_count_frames(const hpct_agree_network_decision *d)
{
    const uint32_t each = count_in_frame(d);
    if (d->changes == 0)
        return 0;
    return 1 +
           ((d->changes & HPCT_AGREE_NETWORK_ADDRESSES) != 0 ? (d->count + each - 1) / each : 0);
}

void hpct_agree_network_make_frame(const hpct_agree_network_decision *d, uint32_t node,
                                   uint32_t number, hpct_net_frame *frame)
{
    const uint32_t each = count_in_frame(d);
    size_t used = 0;
    if (number == 0) {
        *frame = (hpct_net_frame){.type = HPCT_NET_FRAME_NETWORK, .status = (uint8_t) d->changes};
        hpct_net_frame_set(frame->node, sizeof frame->node, d->parts[node].address);
        hpct_net_frame_set(frame->text, sizeof frame->text, d->parts[node].interfaces);
        return;
    }
    *frame = (hpct_net_frame){.type = HPCT_NET_FRAME_ADDRESSES, .rank = (number - 1) * each};
    for (uint32_t n = frame->rank; n < frame->rank + each && n < d->count; n++)
        used += (size_t) snprintf(frame->text + used, sizeof frame->text - used, "%s ",
                                  d->parts[n].address);
}

/* ---- a node's side --------------------------------------------------------------------------- */

hpct_status hpct_agree_network_look(hpct_agree_network_node *node, bool own_name)
{
    *node = (hpct_agree_network_node){0};
    hpct_status status =
        hpct_net_interfaces_list(HPCT_AGREE_NETWORK_INTERFACES, &node->interfaces, &node->count);
    if (status == HPCT_OK && own_name)
        node->has_own =
            hpct_net_interfaces_own_name(node->interfaces, node->count, NAME_MS, &node->own);
    return status;
}

bool hpct_agree_network_make_report(const hpct_agree_network_node *node, int number,
                                    hpct_net_frame *frame)
{
    char address[INET6_ADDRSTRLEN];
    *frame = (hpct_net_frame){.type = HPCT_NET_FRAME_NETWORK};
    if (number < node->count) {
        hpct_net_interface_print(&node->interfaces[number], frame->text, sizeof frame->text);
        return true;
    }
    if (number > node->count || !node->has_own)
        return false;
    frame->status = OWN_NAME;
    hpct_net_address_print(&node->own, address);
    hpct_net_frame_set(frame->text, sizeof frame->text, address);
    return true;
}

static bool take_addresses(hpct_agree_network *network, uint32_t num_nodes,
                           const hpct_net_frame *frame)
{
    char text[HPCT_NET_FRAME_TEXT], *rest = text, *part;
    hpct_net_address address;
    strcpy(text, frame->text);
    if (frame->rank != network->num_addresses)
        return false;
    while ((part = strsep(&rest, " ")) != NULL && *part != '\0') {
        if (network->num_addresses >= num_nodes || !hpct_net_address_parse(part, &address))
            return false;
        hpct_net_address_print(&address, network->addresses[network->num_addresses++]);
    }
    return true;
}

bool hpct_agree_network_take_decision(hpct_agree_network *network, uint32_t num_nodes,
                                      const hpct_net_frame *frame)
{
    hpct_net_address address;
    if (frame->type == HPCT_NET_FRAME_ADDRESSES)
        return num_nodes <= HPCT_AGREE_NETWORK_NODES && take_addresses(network, num_nodes, frame);
    if (frame->status > HPCT_AGREE_NETWORK_ALL || !hpct_net_address_parse(frame->node, &address))
        return false;
    network->changes = frame->status;
    hpct_net_address_print(&address, network->part.address);
    hpct_net_frame_set(network->part.interfaces, sizeof network->part.interfaces, frame->text);
    return true;
}
