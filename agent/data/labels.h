/* agent/data/labels.h - labels of pictures from a CSV text: hpct_dataset_read_labels without the
 * file and the model, for tests. */
#ifndef HPCT_AGENT_DATA_LABELS_H
#define HPCT_AGENT_DATA_LABELS_H

#include "agent/data/dataset.h"

#include <stddef.h>

typedef struct hpct_data_label_form {
    hpct_target_kind kind;
    int outputs;
} hpct_data_label_form;

/* Sets labels or targets, and the names of classes or outputs; `path` is for messages. The text
 * must have room for a zero at its end, and is changed. */
hpct_status hpct_data_labels_take(hpct_dataset *dataset, const hpct_data_label_form *form,
                                  const char *path, char *text, size_t size);

#endif
