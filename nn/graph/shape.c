/* Shapes of one sample. */
#include "nn/graph/shape.h"

#include <limits.h>
#include <string.h>

bool hpct_graph_shape_valid(const hpct_shape *shape)
{
    if (shape->rank < 1 || shape->rank > HPCT_MAX_RANK)
        return false;
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->size[i] < 1)
            return false;
        count *= shape->size[i];
        if (count > INT32_MAX)
            return false;
    }
    return true;
}

size_t hpct_graph_shape_count(const hpct_shape *shape)
{
    size_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= (size_t) shape->size[i];
    return count;
}

bool hpct_graph_shape_equal(const hpct_shape *a, const hpct_shape *b)
{
    return a->rank == b->rank && memcmp(a->size, b->size, (size_t) a->rank * sizeof *a->size) == 0;
}

void hpct_graph_shape_format(const hpct_shape *shape, char text[HPCT_GRAPH_SHAPE_TEXT])
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < shape->rank && i < HPCT_MAX_RANK; i++) {
        int written = snprintf(text + used, HPCT_GRAPH_SHAPE_TEXT - used, i == 0 ? "%d" : "x%d",
                               shape->size[i]);
        if (written < 0 || (size_t) written >= HPCT_GRAPH_SHAPE_TEXT - used)
            return;
        used += (size_t) written;
    }
}
