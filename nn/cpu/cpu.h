/* nn/cpu/cpu.h - the cpu backend's operations, one maker per kind. Each fills the op's class, sizes
 * and needs; `spec` and `build` are set by the caller. */
#ifndef HPCT_NN_CPU_CPU_H
#define HPCT_NN_CPU_CPU_H

#include "nn/backend.h"

/* *out is set also on failure when there is something to destroy. */
hpct_status hpct_cpu_make_conv2d(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build);
hpct_status hpct_cpu_make_direct(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build);
hpct_status hpct_cpu_make_dense(hpct_op **out, const hpct_op_spec *spec,
                                const hpct_op_build *build);
hpct_status hpct_cpu_make_dropout(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build);
hpct_status hpct_cpu_make_eltwise(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build);
hpct_status hpct_cpu_make_picture(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build);
hpct_status hpct_cpu_make_average_pool2d(hpct_op **out, const hpct_op_spec *spec,
                                         const hpct_op_build *build);
hpct_status hpct_cpu_make_max_pool2d(hpct_op **out, const hpct_op_spec *spec,
                                     const hpct_op_build *build);
hpct_status hpct_cpu_make_rescaling(hpct_op **out, const hpct_op_spec *spec,
                                    const hpct_op_build *build);
hpct_status hpct_cpu_make_relu(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);

hpct_status hpct_cpu_loss(const hpct_loss_call *call);
hpct_status hpct_cpu_update(const hpct_update_call *call);
hpct_status hpct_cpu_accumulate(size_t count, const float *src, float *dst, bool first);
/* The backend's `measure`. */
hpct_status hpct_cpu_measure(hpct_precision precision, hpct_rates *rates);

hpct_status hpct_cpu_make_batch_norm(hpct_op **out, const hpct_op_spec *spec,
                                     const hpct_op_build *build);
hpct_status hpct_cpu_make_pad2d(hpct_op **out, const hpct_op_spec *spec,
                                const hpct_op_build *build);
hpct_status hpct_cpu_make_join(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);

/* In bf16: what is a matrix product, and the other convolutions. Which of them gain by it; those of
 * groups or of few input channels stay fp32. */
hpct_status hpct_cpu_make_product(hpct_op **out, const hpct_op_spec *spec,
                                  const hpct_op_build *build);
hpct_status hpct_cpu_make_conv2d_bf16(hpct_op **out, const hpct_op_spec *spec,
                                      const hpct_op_build *build);
bool hpct_cpu_product_fits(const hpct_op_spec *spec);
bool hpct_cpu_conv2d_bf16_fits(const hpct_op_spec *spec);

/* Whether the direct loops serve this convolution: few input channels, no padding, nothing to pass
 * further back. */
bool hpct_cpu_direct_fits(const hpct_op_spec *spec, const hpct_op_build *build);
/* The backend's `merges`: such a convolution and windows side by side. */
bool hpct_cpu_direct_merges(const hpct_op_spec *spec, const hpct_op_build *build,
                            const hpct_op_spec *next);

#endif
