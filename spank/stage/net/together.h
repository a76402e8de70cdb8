/* spank/stage/net/together.h - what the nodes of a step agree on before they stage: the source as
 * the first node sees it, which nodes have it already, whether all see the same one, and how each
 * entry is staged. Independent of copying. */
#ifndef HPCT_SPANK_STAGE_NET_TOGETHER_H
#define HPCT_SPANK_STAGE_NET_TOGETHER_H

#include <sys/stat.h>

#include "spank/spec/mode.h"
#include "spank/stage/net/broadcast.h"

/* One entry's source, as the first node sees it. */
typedef struct hpct_offer {
    uint64_t identity[6];            /* see hpct_offer_identify */
    uint64_t origin;                 /* hpct_origin */
    uint64_t digest;                 /* of the content to send: hpct_walk_digest or similar */
    uint64_t bytes, blocks, entries; /* hpct_walk_totals */
    bool extract;                    /* an archive whose contents are sent */
} hpct_offer;

/* Inode number, size and both times: equal on all nodes for a file or folder of a shared file
 * system, different for copies on local disks (programs cannot set the change time). Where each
 * node numbers a server's inodes itself (FUSE: sshfs), a file is the same if path, server, size and
 * modification time are. */
void hpct_offer_identify(hpct_offer *offer, const struct stat *info, uint64_t origin);
bool hpct_offer_is(const hpct_offer *offer, const struct stat *info, uint64_t origin);

/* A node's vote about an entry. */
enum {
    HPCT_VOTE_HAS = 1,  /* already staged, unchanged */
    HPCT_VOTE_SAME = 2, /* sees the offered source, too */
};

typedef enum hpct_how {
    HPCT_HOW_NOT, /* all nodes have it */
    HPCT_HOW_COPY,
    HPCT_HOW_BROADCAST,
} hpct_how;

/* Votes whether this node is ready; *all: all nodes are. Returns when all have voted. */
hpct_status hpct_together_all(hpct_broadcast *broadcast, bool first, bool mine, bool *all);

/* The first node sends its offers, the others receive them. `task` is a hash of list and mode and
 * must be equal on all nodes, else HPCT_ERR_USAGE. */
hpct_status hpct_together_offer(hpct_broadcast *broadcast, bool first, uint64_t task,
                                hpct_offer *offers, int count);

/* Sends this node's votes and receives what to do for each entry. The first node prints the reasons
 * if `verbose`. */
hpct_status hpct_together_decide(hpct_broadcast *broadcast, bool first, hpct_stage_mode mode,
                                 int nodes, const hpct_offer *offers, const uint8_t *votes,
                                 int count, char *const *names, bool verbose, hpct_how *how);

#endif
