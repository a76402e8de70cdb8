/* agent/train/batch_source.h - source of batches for a model's input: the input pipeline on the
 * host, or a device that holds the data set (nn/run/resident.h). */
#ifndef HPCT_AGENT_TRAIN_BATCH_SOURCE_H
#define HPCT_AGENT_TRAIN_BATCH_SOURCE_H

#include "agent/data/pipeline.h"

#include <hpctrain/model.h>

typedef struct hpct_train_batch_source hpct_train_batch_source;

/* `model` must be built. Only samples [first, first + count) of the data set are used. Decides how
 * images are provided, and sets memory, pixels, labels and drawn of the options accordingly. */
hpct_status hpct_train_batch_source_open(hpct_train_batch_source **out, hpct_model *model,
                                         const hpct_data_pipeline_options *options, size_t first,
                                         size_t count);

/* Makes the next batch the model's input; errors as from hpct_data_pipeline_next. out->pixels and
 * labels are NULL if a device has them. */
hpct_status hpct_train_batch_source_next(hpct_train_batch_source *input_source,
                                         hpct_data_input *out);

/* As hpct_data_pipeline_waited. */
double hpct_train_batch_source_waited(const hpct_train_batch_source *input_source);

/* Removes the model's input; NULL is allowed. */
void hpct_train_batch_source_close(hpct_train_batch_source *input_source);

#endif
