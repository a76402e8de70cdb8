/* spank/stage/together.h - what the nodes of a step agree on before they stage: the source as the
 * first node sees it, who has it already, whether all see the same one, and so how each entry of
 * the list comes to each node. Knows nothing of copying. */
#ifndef HPCT_STAGE_TOGETHER_H
#define HPCT_STAGE_TOGETHER_H

#include <sys/stat.h>

#include "spank/stage/broadcast.h"
#include "spank/stage/mode.h"

/* One entry's source, as the first node sees it. */
typedef struct hpct_offer {
    uint64_t identity[6];            /* see hpct_offer_identify */
    uint64_t origin;                 /* hpct_origin */
    uint64_t digest;                 /* of what will be sent: hpct_walk_digest or its like */
    uint64_t bytes, blocks, entries; /* hpct_walk_totals */
    bool extract;                    /* it is an archive, and its content will be sent */
} hpct_offer;

/* Inode number, size and both times: the same on all nodes for a file or folder of a shared file
 * system, different for copies on disks of their own (nobody can choose a change time). Where each
 * node numbers the inodes of a server by itself (FUSE: sshfs), it is the same file that has the
 * same path on the same server, size and modification time. */
void hpct_offer_identify(hpct_offer *offer, const struct stat *info, uint64_t origin);
bool hpct_offer_is(const hpct_offer *offer, const struct stat *info, uint64_t origin);

/* What this node says of an entry. */
enum {
    HPCT_VOTE_HAS = 1,  /* it is there already, unchanged */
    HPCT_VOTE_SAME = 2, /* the source is the offered one here, too */
};

typedef enum hpct_how {
    HPCT_HOW_NOT, /* all have it */
    HPCT_HOW_COPY,
    HPCT_HOW_BROADCAST,
} hpct_how;

/* Every node says whether it is ready; *all: every one is. Returns when each has said it. */
hpct_status hpct_together_all(hpct_broadcast *broadcast, bool first, bool mine, bool *all);

/* The first node gives its offers, the others get them. `task` stands for what was asked for (list,
 * mode) and must be the same on all: HPCT_ERR_USAGE. */
hpct_status hpct_together_offer(hpct_broadcast *broadcast, bool first, uint64_t task,
                                hpct_offer *offers, int count);

/* Gives this node's votes; what is to be done for each entry comes back. The first node says why
 * when `verbose`. */
hpct_status hpct_together_decide(hpct_broadcast *broadcast, bool first, hpct_stage_mode mode,
                                 int nodes, const hpct_offer *offers, const uint8_t *votes,
                                 int count, char *const *names, bool verbose, hpct_how *how);

#endif
