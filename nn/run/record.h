/* nn/run/record.h - serializes parameters, states and optimizer slots as floats in Keras' layout,
 * to send them to a model of the same layers built with any layout. Private to nn/ and
 * strategies. */
#ifndef HPCT_NN_RUN_RECORD_H
#define HPCT_NN_RUN_RECORD_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>

/* Parameters [first, first + count) of a model, states included. */
typedef struct hpct_run_record {
    int first, count;
    bool slots; /* with optimizer slots */
} hpct_run_record;

hpct_run_record hpct_run_record_all(const hpct_model *model, bool slots);

size_t hpct_run_record_floats(const hpct_model *model, const hpct_run_record *record);

/* put writes, take reads floats[hpct_run_record_floats]. Slots that were never set are zeros. */
hpct_status hpct_run_record_put(const hpct_model *model, const hpct_run_record *record,
                                float *floats);
hpct_status hpct_run_record_take(hpct_model *model, const hpct_run_record *record,
                                 const float *floats);

#endif
