/* nn/ref/ref.h - pieces of the reference backend that others use as they are. */
#ifndef HPCT_NN_REF_REF_H
#define HPCT_NN_REF_REF_H

#include "nn/backend.h"

hpct_status hpct_ref_make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);
/* With build->norm; make_op does it then. */
hpct_status hpct_ref_make_normed(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build);
hpct_status hpct_ref_loss(const hpct_loss_call *call);
hpct_status hpct_ref_update(const hpct_update_call *call);
hpct_status hpct_ref_accumulate(size_t count, const float *src, float *dst, bool first);

/* Copies; the layout is Keras' own. */
hpct_status hpct_ref_import(hpct_op *op, int which, const float *keras, float *arena);
hpct_status hpct_ref_export(hpct_op *op, int which, const float *arena, float *keras);

#endif
