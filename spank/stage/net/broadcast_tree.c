/* In-order numbered binary trees over the positions 1 … p of the p receiving nodes: odd positions
 * are leaves, even ones are inner nodes. The second tree gives each node a position of the other
 * parity: mirrored if p is even, shifted by one if p is odd. */
#include "spank/stage/net/broadcast_tree.h"

static int place_of(int tree, int p, int node)
{
    if (tree == 0)
        return node;
    if (p % 2 == 0)
        return p + 1 - node;
    return node == 1 ? p : node - 1;
}

static int node_of(int tree, int p, int place)
{
    if (tree == 0)
        return place;
    if (p % 2 == 0)
        return p + 1 - place;
    return place == p ? 1 : place + 1;
}

/* Root over the positions low … high: the one divisible by the largest power of two. 0: the range
 * is empty. */
static int root_of(int low, int high)
{
    int step = 1;
    if (low > high)
        return 0;
    while (step <= high / 2 && (low + 2 * step - 1) / (2 * step) * (2 * step) <= high)
        step *= 2;
    return (low + step - 1) / step * step;
}

int hpct_tree_place(int tree, int count, int me, int *parent, int children[HPCT_MAX_CHILDREN])
{
    int p = count - 1, low = 1, high = p, above = 0, found = 0;
    *parent = -1;
    if (me == 0) {
        if (p > 0)
            children[found++] = node_of(tree, p, root_of(1, p));
        return found;
    }
    const int place = place_of(tree, p, me);
    int root = root_of(low, high);
    while (root != place) {
        above = root;
        if (place < root)
            high = root - 1;
        else
            low = root + 1;
        root = root_of(low, high);
    }
    *parent = above == 0 ? 0 : node_of(tree, p, above);
    const int below[HPCT_MAX_CHILDREN] = {root_of(low, root - 1), root_of(root + 1, high)};
    for (int i = 0; i < HPCT_MAX_CHILDREN; i++) {
        if (below[i] != 0)
            children[found++] = node_of(tree, p, below[i]);
    }
    return found;
}

static int depth_below(int low, int high)
{
    int root = root_of(low, high);
    if (root == 0)
        return 0;
    int left = depth_below(low, root - 1), right = depth_below(root + 1, high);
    return 1 + (left > right ? left : right);
}

int hpct_tree_depth(int count)
{
    return depth_below(1, count - 1);
}
