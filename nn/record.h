/* nn/record.h - parameters, states and optimizer slots of a model as a record of floats in Keras'
 * layout, to be sent to a model that has the same ones, however that is built. Private to nn/ and
 * the strategies. */
#ifndef HPCT_NN_RECORD_H
#define HPCT_NN_RECORD_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>

/* Parameters first … first + count - 1 of a model, states among them, in its order. */
typedef struct hpct_record {
    int first, count;
    bool slots; /* the optimizer's too */
} hpct_record;

hpct_record hpct_record_all(const hpct_model *model, bool slots);

size_t hpct_record_floats(const hpct_model *model, const hpct_record *record);

/* Into and out of floats[hpct_record_floats]. A slot that no step has made yet is zeros. */
hpct_status hpct_record_put(const hpct_model *model, const hpct_record *record, float *floats);
hpct_status hpct_record_take(hpct_model *model, const hpct_record *record, const float *floats);

#endif
