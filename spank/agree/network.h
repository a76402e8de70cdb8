/* spank/agree/network.h - which network the tasks of a step use: srun decides from what the nodes
 * report about themselves, and tells each node its own interfaces and everybody's addresses.
 * Independent of SPANK and of connections. */
#ifndef HPCT_SPANK_AGREE_NETWORK_H
#define HPCT_SPANK_AGREE_NETWORK_H

#include "base/net/frame.h"
#include "spank/spec/network.h"

#define HPCT_AGREE_NETWORK_NODES 65536   /* Slurm's own limit */
#define HPCT_AGREE_NETWORK_INTERFACES 64 /* of a node; further ones are left out */

/* What is changed; a network that the user or the administrator named changes all. */
enum {
    HPCT_AGREE_NETWORK_ADDRESSES = 1, /* addresses instead of names */
    HPCT_AGREE_NETWORK_GLOO = 2,      /* and who else finds its address by the machine's own name */
    HPCT_AGREE_NETWORK_NCCL = 4,
    HPCT_AGREE_NETWORK_MPI = 8,
    HPCT_AGREE_NETWORK_ALL = 15,
};

/* A node's report. */
typedef struct hpct_agree_network_node {
    char name[HPCT_NET_FRAME_NODE];
    hpct_net_interface *interfaces; /* [count] */
    int count;
    bool has_own; /* the node's own name leads its programs to `own` */
    hpct_net_address own;
} hpct_agree_network_node;

/* A node's part of the decision. */
typedef struct hpct_agree_network_part {
    char interfaces[HPCT_NET_FRAME_TEXT]; /* "eth1", "hsn0,hsn1" */
    char address[INET6_ADDRSTRLEN];       /* of the first */
} hpct_agree_network_part;

/* Decides. *changes 0: nothing is changed, and `parts` [count] is not filled. With
 * HPCT_SPEC_NETWORK_AUTO something is changed only on several nodes, of which at least one has a
 * name that does not lead to an address that the others can reach, or interfaces with the same
 * address on several nodes that NCCL would take. Returns HPCT_ERR_CONFIG, naming the node, if a
 * node lacks the network. Source of what the libraries choose: the code of gloo (tcp/device.cc)
 * and NCCL (socket.cc). */
hpct_status hpct_agree_network_choose(const hpct_spec_network *wish,
                                      const hpct_agree_network_node *nodes, uint32_t count,
                                      hpct_agree_network_part *parts, unsigned *changes);

/* What a node knows at the end; in memory that its tasks share. */
typedef struct hpct_agree_network {
    bool refused; /* a node lacks the network */
    unsigned changes;
    hpct_agree_network_part part;
    uint32_t
        num_addresses; /* of the nodes, in order; 0 if HPCT_AGREE_NETWORK_ADDRESSES is not set */
    char addresses[HPCT_AGREE_NETWORK_NODES][INET6_ADDRSTRLEN];
} hpct_agree_network;

#endif
