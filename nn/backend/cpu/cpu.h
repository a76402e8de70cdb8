/* nn/backend/cpu/cpu.h - the cpu backend's operations, one constructor per kind. Each fills the
 * op's class, sizes and requirements; the caller sets `spec` and `build`. */
#ifndef HPCT_NN_BACKEND_CPU_CPU_H
#define HPCT_NN_BACKEND_CPU_CPU_H

#include "nn/backend/backend.h"

/* On failure *out may be set, too, and must be destroyed. */
typedef hpct_status hpct_cpu_maker(hpct_op **out, const hpct_op_spec *spec,
                                   const hpct_op_build *build);
hpct_cpu_maker hpct_cpu_make_activation, hpct_cpu_make_batch_norm, hpct_cpu_make_conv2d,
    hpct_cpu_make_conv2d_transpose, hpct_cpu_make_dense, hpct_cpu_make_direct,
    hpct_cpu_make_dropout, hpct_cpu_make_group_norm, hpct_cpu_make_max_pool2d,
    hpct_cpu_make_multiply, hpct_cpu_make_picture;
hpct_cpu_maker hpct_cpu_make_line;      /* NORMALIZATION, PRELU */
hpct_cpu_maker hpct_cpu_make_prims;     /* AVERAGE_POOL2D; hpct_cpu_shim_has_eltwise */
hpct_cpu_maker hpct_cpu_make_variation; /* RANDOM_FLIP, _AFFINE, _TONE */

/* Operations without parameters, scratch and workspace. */
extern const hpct_op_class hpct_cpu_add, hpct_cpu_concatenate, hpct_cpu_gaussian_noise,
    hpct_cpu_pad2d, hpct_cpu_permute, hpct_cpu_rescaling;

hpct_status hpct_cpu_loss(const hpct_backend_loss_call *call);
hpct_status hpct_cpu_update(const hpct_backend_update_call *call);
hpct_status hpct_cpu_penalize(const hpct_backend_penalty_call *call);
hpct_status hpct_cpu_accumulate(size_t count, const float *src, float *dst, bool first);
/* hpct_backend.measure */
hpct_status hpct_cpu_measure(hpct_precision precision, hpct_backend_rates *rates);

/* bf16: Dense and 1x1 convolutions as matrix products, and other convolutions. *_fits: whether bf16
 * is faster; grouped convolutions and those with few input channels stay fp32. */
hpct_cpu_maker hpct_cpu_make_product, hpct_cpu_make_conv2d_bf16;
bool hpct_cpu_product_fits(const hpct_op_spec *spec);
bool hpct_cpu_conv2d_bf16_fits(const hpct_op_spec *spec);

/* Whether the direct loops support this convolution: few input channels, no padding, no gradient of
 * the source needed. */
bool hpct_cpu_direct_fits(const hpct_op_spec *spec, const hpct_op_build *build);
/* HPCT_BACKEND_FUSION_POOL: such a CONV2D before a MAX_POOL2D without overlapping windows. */
bool hpct_cpu_direct_merges(const hpct_op_spec *spec, const hpct_op_build *build,
                            const hpct_op_spec *next);

#endif
