/* nn/graph/shape.h - shapes of one sample. Independent of memory and layers. */
#ifndef HPCT_NN_GRAPH_SHAPE_H
#define HPCT_NN_GRAPH_SHAPE_H

#include <hpctrain/model.h>
#include <stdbool.h>

/* Rank in 1..HPCT_MAX_RANK, sizes positive, at most INT32_MAX elements. */
bool hpct_graph_shape_valid(const hpct_shape *shape);

/* Elements of a valid shape. */
size_t hpct_graph_shape_count(const hpct_shape *shape);

bool hpct_graph_shape_equal(const hpct_shape *a, const hpct_shape *b);

/* "28x28x1"; always null-terminated. */
#define HPCT_GRAPH_SHAPE_TEXT 64
void hpct_graph_shape_format(const hpct_shape *shape, char text[HPCT_GRAPH_SHAPE_TEXT]);

#endif
