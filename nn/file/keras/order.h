/* nn/file/keras/order.h - the order in which Keras lists a functional model's layers
 * (model.layers), which numbers their groups in its files: by decreasing depth, and within a depth
 * in the order of a depth-first search from the output. For a chain of layers it is their own
 * order. The layers of a nested Sequential have the place of one layer, and follow one another. */
#ifndef HPCT_NN_FILE_KERAS_ORDER_H
#define HPCT_NN_FILE_KERAS_ORDER_H

#include "nn/graph/graph.h"

/* order[k]: index of the k-th layer; num_layers of them. */
hpct_status hpct_keras_order(const hpct_model *model, int *order);

/* "max_pooling2d" of "MaxPooling2D". */
#define HPCT_KERAS_STEM_SIZE 64
void hpct_keras_stem(const char *class_name, char stem[HPCT_KERAS_STEM_SIZE]);

#endif
