/* nn/backend/ref/ref.h - the reference backend, and parts of it that other backends use. */
#ifndef HPCT_NN_BACKEND_REF_REF_H
#define HPCT_NN_BACKEND_REF_REF_H

#include "nn/backend/backend.h"

extern const hpct_backend hpct_ref_backend;

hpct_status hpct_ref_make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);
hpct_status hpct_ref_loss(const hpct_backend_loss_call *call);
hpct_status hpct_ref_update(const hpct_backend_update_call *call);
hpct_status hpct_ref_penalize(const hpct_backend_penalty_call *call);
hpct_status hpct_ref_accumulate(size_t count, const float *src, float *dst, bool first);

#endif
