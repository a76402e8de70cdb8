/* nn/backend/ref/norm.h - BATCH_NORM and GROUP_NORM of the reference. */
#ifndef HPCT_NN_BACKEND_REF_NORM_H
#define HPCT_NN_BACKEND_REF_NORM_H

#include "nn/backend/backend.h"

/* BATCH_NORM. */
hpct_status hpct_ref_normalize_forward(hpct_op *op, const hpct_op_call *call);
hpct_status hpct_ref_normalize_backward(hpct_op *op, const hpct_op_call *call);
/* GROUP_NORM. */
hpct_status hpct_ref_group_forward(hpct_op *op, const hpct_op_call *call);
hpct_status hpct_ref_group_backward(hpct_op *op, const hpct_op_call *call);
/* Bytes of workspace and scratch of either. */
void hpct_ref_lay_out_norm(hpct_op *op);

/* ADD: adds the sources, normalizing those with a BATCH_NORM fused downstream. */
void hpct_ref_add_with_norms(const hpct_op *op, const hpct_op_call *call);

/* A fused ReLU: on the result, and on its gradient (ref.c). */
void hpct_ref_finish_forward(const hpct_op *op, const hpct_op_call *call);
void hpct_ref_start_backward(const hpct_op *op, const hpct_op_call *call);

#endif
