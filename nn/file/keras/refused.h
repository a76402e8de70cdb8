/* nn/file/keras/refused.h - the check of all layer classes of a document. Private to
 * nn/file/keras/. */
#ifndef HPCT_NN_FILE_KERAS_REFUSED_H
#define HPCT_NN_FILE_KERAS_REFUSED_H

#include <hpctrain/status.h>
#include <jansson.h>

/* HPCT_ERR_DATA, naming each class of `layers` that is not supported, how many layers have it, and
 * the first of them. */
hpct_status hpct_keras_check_classes(const json_t *layers);

#endif
