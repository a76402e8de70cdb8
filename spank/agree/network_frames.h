/* spank/agree/network_frames.h - reports and decision of spank/agree/network.h as frames. A node
 * sends a NETWORK for each of its interfaces (text: hpct_net_interface_print) and one for its own
 * name (status 1, text: the address), then HELLO. srun answers with NETWORK (status: what changes;
 * node: the address, text: the interfaces of the receiver) and with ADDRESSES (rank: the first of
 * the nodes whose addresses the text has). */
#ifndef HPCT_SPANK_AGREE_NETWORK_FRAMES_H
#define HPCT_SPANK_AGREE_NETWORK_FRAMES_H

#include "spank/agree/network.h"

/* srun: adds what a node reports; false if it is not valid. */
bool hpct_agree_network_take_report(hpct_agree_network_node *node, const hpct_net_frame *frame);
void hpct_agree_network_node_free(hpct_agree_network_node *node);

/* The decision, as srun sends it. */
typedef struct hpct_agree_network_decision {
    unsigned changes;
    hpct_agree_network_part *parts; /* [count] */
    uint32_t count;
} hpct_agree_network_decision;

/* srun: how many frames each node is sent, and each of them. */
uint32_t hpct_agree_network_count_frames(const hpct_agree_network_decision *decision);
void hpct_agree_network_make_frame(const hpct_agree_network_decision *decision, uint32_t node,
                                   uint32_t number, hpct_net_frame *frame);

/* A node: its interfaces and, if asked for, its own name; freed by hpct_agree_network_node_free. */
hpct_status hpct_agree_network_look(hpct_agree_network_node *node, bool own_name);

/* A node: the number-th frame of its report; false after the last. */
bool hpct_agree_network_make_report(const hpct_agree_network_node *node, int number,
                                    hpct_net_frame *frame);

/* A node: adds what srun sent; false if it is not valid. */
bool hpct_agree_network_take_decision(hpct_agree_network *network, uint32_t num_nodes,
                                      const hpct_net_frame *frame);

#endif
