/* agent/train/class_weights.h - weights of classes from a JSON file, as Keras' class_weight: an
 * object whose keys are names of classes, or their numbers from 0. */
#ifndef HPCT_AGENT_TRAIN_CLASS_WEIGHTS_H
#define HPCT_AGENT_TRAIN_CLASS_WEIGHTS_H

#include <hpctrain/status.h>

/* weights[labels]: 1 of classes that the text does not name. names[num_names]: of the first labels.
 * A key that is a class' name is that; else it is a number. HPCT_ERR_DATA, naming `path` and the
 * key. */
hpct_status hpct_train_class_weights_parse(double *weights, int labels, const char *text,
                                           char *const *names, int num_names, const char *path);

#endif
