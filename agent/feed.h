/* agent/feed.h - the batches of a data set, one after the other, as a model's input: made by a
 * pipeline on the host, or, where the model computes on a device that has room for the pictures,
 * made there of those (nn/resident.h). */
#ifndef HPCT_AGENT_FEED_H
#define HPCT_AGENT_FEED_H

#include "agent/data/pipeline.h"

#include <hpctrain/model.h>

typedef struct hpct_feed hpct_feed;

/* `model` is built. Batches have samples [first, first + count) of the data set alone. What the
 * options say of memory, pixels, labels and drawn is not looked at: that is the feed's. */
hpct_status hpct_feed_open(hpct_feed **out, hpct_model *model, const hpct_pipeline_options *options,
                           size_t first, size_t count);

/* The next batch becomes the model's input; errors as of hpct_pipeline_next. out->pixels and labels
 * are NULL where the device has them. */
hpct_status hpct_feed_next(hpct_feed *feed, hpct_input *out);

/* As hpct_pipeline_waited. */
double hpct_feed_waited(const hpct_feed *feed);

/* The model has no input afterwards; allows NULL. */
void hpct_feed_close(hpct_feed *feed);

#endif
