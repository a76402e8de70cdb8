/* nn/backend/transposed.h - CONV2D_TRANSPOSE by a backend's own CONV2D: its forward is that one's
 * backward for the source, and the reverse. */
#ifndef HPCT_NN_BACKEND_TRANSPOSED_H
#define HPCT_NN_BACKEND_TRANSPOSED_H

#include "nn/graph/op.h"

/* What the backend provides. Its CONV2D must skip the gradient of the kernel where call->grad of it
 * is NULL. */
typedef struct hpct_backend_transposed_parts {
    hpct_status (*make_conv2d)(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);
    /* dst[rows][channels] += bias. */
    hpct_status (*add_bias)(const hpct_op *op, size_t rows, size_t channels, const float *bias,
                            float *dst);
    /* bias[channels] = the sum of diff[rows][channels], which does not change. */
    hpct_status (*sum_bias)(const hpct_op *op, size_t rows, size_t channels, float *diff,
                            float *bias, float *scratch);
    size_t (*scratch_bytes)(const hpct_op *op, size_t rows, size_t channels); /* for sum_bias */
} hpct_backend_transposed_parts;

/* As hpct_backend.make_op; on failure *out may be set, and must be destroyed. */
hpct_status hpct_backend_make_transposed(hpct_op **out, const hpct_op_spec *spec,
                                         const hpct_op_build *build,
                                         const hpct_backend_transposed_parts *parts);

#endif
