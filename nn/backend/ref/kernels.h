/* nn/backend/ref/kernels.h - every operation as a plain loop over its definition, to test the fast
 * backends against. Sums are in double. Compiled with HPCT_REF_REAL=double for numerical gradients.
 *
 * Shapes are Keras': images [n][h][w][c], rows [rows][features], Conv2D kernels [kh][kw][in /
 * groups][out], Dense kernels [in][out]. Outputs are overwritten; biases and their gradients may be
 * NULL. */
#ifndef HPCT_NN_BACKEND_REF_KERNELS_H
#define HPCT_NN_BACKEND_REF_KERNELS_H

#include "nn/backend/backend.h"
#include "nn/backend/dropout.h"
#include "nn/backend/permute.h"
#include "nn/backend/picture.h"

#ifndef HPCT_REF_REAL
#define HPCT_REF_REAL float
#define HPCT_REF(name) hpct_ref_##name
#else
#define HPCT_REF(name) hpct_ref64_##name
#endif
typedef HPCT_REF_REAL hpct_ref_real;

void HPCT_REF(conv2d_forward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                              const hpct_ref_real *kernel, const hpct_ref_real *bias,
                              hpct_ref_real *dst);
void HPCT_REF(conv2d_backward_data)(const hpct_graph_window *w, int n,
                                    const hpct_ref_real *diff_dst, const hpct_ref_real *kernel,
                                    hpct_ref_real *diff_src);
void HPCT_REF(conv2d_backward_weights)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                                       const hpct_ref_real *diff_dst, hpct_ref_real *diff_kernel,
                                       hpct_ref_real *diff_bias);

/* On ties the first cell (by row, then column) gets the gradient. */
void HPCT_REF(max_pool2d_forward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                                  hpct_ref_real *dst);
void HPCT_REF(max_pool2d_backward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                                   const hpct_ref_real *diff_dst, hpct_ref_real *diff_src);

/* The mean over the cells inside the image. */
void HPCT_REF(average_pool2d_forward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                                      hpct_ref_real *dst);
void HPCT_REF(average_pool2d_backward)(const hpct_graph_window *w, int n,
                                       const hpct_ref_real *diff_dst, hpct_ref_real *diff_src);

void HPCT_REF(dense_forward)(int rows, int in, int out, const hpct_ref_real *src,
                             const hpct_ref_real *kernel, const hpct_ref_real *bias,
                             hpct_ref_real *dst);
void HPCT_REF(dense_backward_data)(int rows, int in, int out, const hpct_ref_real *diff_dst,
                                   const hpct_ref_real *kernel, hpct_ref_real *diff_src);
void HPCT_REF(dense_backward_weights)(int rows, int in, int out, const hpct_ref_real *src,
                                      const hpct_ref_real *diff_dst, hpct_ref_real *diff_kernel,
                                      hpct_ref_real *diff_bias);

/* n samples of `rows` rows, which all lose the same of their `size` elements; backward is the same
 * with the gradients. */
void HPCT_REF(dropout)(const hpct_backend_dropout *dropout, int first_sample, int n, size_t rows,
                       size_t size, const hpct_ref_real *src, hpct_ref_real *dst);
/* n samples of `size` elements. */
void HPCT_REF(gaussian_noise)(const hpct_graph_draw *draw, double stddev, int first_sample, int n,
                              size_t size, const hpct_ref_real *src, hpct_ref_real *dst);

/* `count` elements of several samples; with `add` added to dst. */
void HPCT_REF(permute)(const hpct_backend_permute *permute, size_t count, const hpct_ref_real *src,
                       bool add, hpct_ref_real *dst);

/* src * scale + offset; backward the same with the gradients and no offset. */
void HPCT_REF(rescaling)(size_t count, hpct_ref_real scale, hpct_ref_real offset,
                         const hpct_ref_real *src, hpct_ref_real *dst);

/* One sample: a box of the image, bilinearly resized; the gradient of the whole image's. */
void HPCT_REF(resize_forward)(const hpct_graph_picture *picture, const hpct_backend_box *box,
                              const hpct_ref_real *src, hpct_ref_real *dst);
void HPCT_REF(resize_backward)(const hpct_graph_picture *picture, const hpct_ref_real *diff_dst,
                               hpct_ref_real *diff_src);

/* One sample, with the words that it has drawn. */
void HPCT_REF(affine)(const hpct_graph_picture *picture, const uint32_t *words,
                      const hpct_ref_real *src, hpct_ref_real *dst);
void HPCT_REF(tone)(const hpct_graph_picture *picture, const uint32_t *words,
                    const hpct_ref_real *src, hpct_ref_real *dst);

/* Activations of single elements (nn/graph/elements.h), in place allowed. data: the source or the
 * result, as the gradient needs. */
void HPCT_REF(element_forward)(const hpct_op_spec *spec, size_t count, const hpct_ref_real *src,
                               hpct_ref_real *dst);
void HPCT_REF(element_backward)(const hpct_op_spec *spec, size_t count, const hpct_ref_real *data,
                                const hpct_ref_real *diff_dst, hpct_ref_real *diff_src);

/* dst[rows][channels] = (src - mean) scale + offset, per channel; backward: diff_dst scale. `line`
 * holds mean[channels], scale[channels], offset[channels]. */
void HPCT_REF(normalization_forward)(size_t rows, size_t channels, const hpct_ref_real *line,
                                     const hpct_ref_real *src, hpct_ref_real *dst);
void HPCT_REF(normalization_backward)(size_t rows, size_t channels, const hpct_ref_real *line,
                                      const hpct_ref_real *diff_dst, hpct_ref_real *diff_src);
/* n samples of `size` elements: x, or alpha x unless x > 0. alpha[period], repeated over the
 * elements of a sample. */
void HPCT_REF(prelu_forward)(int n, size_t size, size_t period, const hpct_ref_real *src,
                             const hpct_ref_real *alpha, hpct_ref_real *dst);
void HPCT_REF(prelu_backward)(int n, size_t size, size_t period, const hpct_ref_real *src,
                              const hpct_ref_real *alpha, const hpct_ref_real *diff_dst,
                              hpct_ref_real *diff_src, hpct_ref_real *diff_alpha);

/* exp(x - max) / sum, row by row. backward: y (g - sum(g y)). */
void HPCT_REF(softmax_forward)(int rows, int size, const hpct_ref_real *src, hpct_ref_real *dst);
void HPCT_REF(softmax_backward)(int rows, int size, const hpct_ref_real *dst,
                                const hpct_ref_real *diff_dst, hpct_ref_real *diff_src);

/* dst = the sum of `num` arrays; dst += src; dst *= factor. */
void HPCT_REF(add_forward)(size_t count, int num, const hpct_ref_real *const *src,
                           hpct_ref_real *dst);
void HPCT_REF(add_to)(size_t count, const hpct_ref_real *src, hpct_ref_real *dst);
void HPCT_REF(scale)(size_t count, hpct_ref_real factor, hpct_ref_real *dst);

/* dst = a b, of n samples of [rows][channels]; b is [rows][channels] or, with `broadcasts`,
 * [channels]. backward: of one of the two, `other` being the factor; with `add` added. */
void HPCT_REF(multiply_forward)(const hpct_op_spec *spec, int n, const hpct_ref_real *a,
                                const hpct_ref_real *b, hpct_ref_real *dst);
void HPCT_REF(multiply_backward)(const hpct_op_spec *spec, int n, int which,
                                 const hpct_ref_real *other, const hpct_ref_real *diff_dst,
                                 bool add, hpct_ref_real *diff_src);

/* Concatenates rows of size[0], size[1], ...; backward extracts the slice of one input, with `add`
 * added to diff_src. */
void HPCT_REF(concatenate_forward)(size_t rows, int num, const int *size,
                                   const hpct_ref_real *const *src, hpct_ref_real *dst);
void HPCT_REF(concatenate_backward)(size_t rows, int num, const int *size, int which,
                                    const hpct_ref_real *diff_dst, bool add,
                                    hpct_ref_real *diff_src);

/* Batch normalization of src[rows][channels]. gamma, beta, their gradients, and diff_src may be
 * NULL; statistics are those of the batch, or in forward the moving ones. */
void HPCT_REF(batch_norm_statistics)(size_t rows, size_t channels, const hpct_ref_real *src,
                                     hpct_ref_real *mean, hpct_ref_real *variance);
void HPCT_REF(batch_norm_forward)(size_t rows, size_t channels, double epsilon,
                                  const hpct_ref_real *src, const hpct_ref_real *mean,
                                  const hpct_ref_real *variance, const hpct_ref_real *gamma,
                                  const hpct_ref_real *beta, hpct_ref_real *dst);
void HPCT_REF(batch_norm_backward)(size_t rows, size_t channels, double epsilon,
                                   const hpct_ref_real *src, const hpct_ref_real *mean,
                                   const hpct_ref_real *variance, const hpct_ref_real *gamma,
                                   const hpct_ref_real *diff_dst, bool add, hpct_ref_real *diff_src,
                                   hpct_ref_real *diff_gamma, hpct_ref_real *diff_beta);
/* moving = momentum * moving + (1 - momentum) * batch. */
void HPCT_REF(batch_norm_move)(size_t channels, double momentum, const hpct_ref_real *batch,
                               hpct_ref_real *moving);

/* GROUP_NORM of n samples. mean, variance: [n rows groups]; gamma, beta, their gradients, and
 * diff_src may be NULL. */
void HPCT_REF(group_norm_statistics)(const hpct_op_spec *spec, int n, const hpct_ref_real *src,
                                     hpct_ref_real *mean, hpct_ref_real *variance);
void HPCT_REF(group_norm_forward)(const hpct_op_spec *spec, int n, const hpct_ref_real *src,
                                  const hpct_ref_real *mean, const hpct_ref_real *variance,
                                  const hpct_ref_real *gamma, const hpct_ref_real *beta,
                                  hpct_ref_real *dst);
void HPCT_REF(group_norm_backward)(const hpct_op_spec *spec, int n, const hpct_ref_real *src,
                                   const hpct_ref_real *mean, const hpct_ref_real *variance,
                                   const hpct_ref_real *gamma, const hpct_ref_real *diff_dst,
                                   bool add, hpct_ref_real *diff_src, hpct_ref_real *diff_gamma,
                                   hpct_ref_real *diff_beta);

void HPCT_REF(pad2d_forward)(const hpct_graph_window *w, int n, const hpct_ref_real *src,
                             hpct_ref_real *dst);
void HPCT_REF(pad2d_backward)(const hpct_graph_window *w, int n, const hpct_ref_real *diff_dst,
                              bool add, hpct_ref_real *diff_src);

/* Fills call->sums; diff_src receives call->scale times the gradient, unless NULL. call->src and
 * call->diff_src are not used. */
void HPCT_REF(loss_rows)(const hpct_backend_loss_call *call, const hpct_ref_real *src,
                         hpct_ref_real *diff_src);

#endif
