/* spank/stage/net/broadcast_tree.h - two binary trees over the same nodes, each carrying every
 * other block. A node that has children in one tree is a leaf in the other, so that each sends
 * about as much as it receives, and a block reaches the last of n nodes after 2 log2 n steps. P.
 * Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and
 * scan, Parallel Computing 35 (2009). Arithmetic only. */
#ifndef HPCT_SPANK_STAGE_NET_BROADCAST_TREE_H
#define HPCT_SPANK_STAGE_NET_BROADCAST_TREE_H

#define HPCT_NUM_TREES 2
#define HPCT_MAX_CHILDREN 2

/* Position of node `me` of 0 … count - 1 in tree 0 or 1. Node 0, the reader, is above both roots.
 * Returns the number of children; *parent is -1 for node 0. */
int hpct_tree_place(int tree, int count, int me, int *parent, int children[HPCT_MAX_CHILDREN]);

/* Depth of the deeper tree, from node 0. */
int hpct_tree_depth(int count);

#endif
