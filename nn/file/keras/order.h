/* nn/file/keras/order.h - the order in which Keras lists a functional model's layers
 * (model.layers), which numbers their groups in its files: by decreasing depth, and within a depth
 * in the order of a depth-first search from the output. For a chain of layers it is their own
 * order. A nested model has the place of one layer, and its layers, in its own order, follow one
 * another there. */
#ifndef HPCT_NN_FILE_KERAS_ORDER_H
#define HPCT_NN_FILE_KERAS_ORDER_H

#include "nn/graph/graph.h"

/* order[k]: index of the k-th layer; num_layers of them. */
hpct_status hpct_keras_order(const hpct_model *model, int *order);

/* The nested model that a layer is in, of those in `level` (a nested model; 0: the model); 0 if it
 * is in none of them, -1 if it is not in `outer`. */
int hpct_keras_nest_at(const hpct_model *model, int outer, int layer);

/* "max_pooling2d" of "MaxPooling2D". */
#define HPCT_KERAS_STEM_SIZE 64
void hpct_keras_stem(const char *class_name, char stem[HPCT_KERAS_STEM_SIZE]);

#endif
