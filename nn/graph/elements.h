/* nn/graph/elements.h - the activations of single elements: one record each, from which operations,
 * the reference, the CPU and GPU backends, Keras' and ONNX' names and the tests are made. A list of
 * words, which get their meaning where it is expanded. For C and CUDA C++. */
#ifndef HPCT_NN_GRAPH_ELEMENTS_H
#define HPCT_NN_GRAPH_ELEMENTS_H

/* kind        HPCT_OP_…, and HPCT_… of hpct_activation
 * name        Keras'
 * reads       what the gradient is computed from: y, the result, if that alone is enough, as the
 *             source is then not kept for backward; else x, the source
 * type        the reference's: REAL, as in memory, or WIDE, double, if it calls a function of
 *             <math.h>; a gradient from y is REAL
 * forward     of x, and slope, threshold, most of hpct_op_spec
 * gradient    of x or y, and g, the gradient of the result
 * algorithm   oneDNN's, its alpha and beta; dnnl_alg_kind_undef: not computed by oneDNN
 * onnx        the function hpct_onnx_add_… that writes it (element: one operation without
 *             attributes), and the operation of ONNX that this gets as `type`
 *
 * Functions that <math.h> does not have: nn/backend/ref/activation.c. */
/* clang-format off */
#define HPCT_GRAPH_ELEMENT_LIST(X, then) \
    X(RELU, relu, y, REAL, \
      x > 0 ? x : 0, \
      y > 0 ? g : 0, \
      dnnl_alg_kind_undef, 0, 0, element, "Relu") then \
    X(RELU6, relu6, y, REAL, \
      x > 0 ? x < 6 ? x : 6 : 0, \
      y > 0 && y < 6 ? g : 0, \
      dnnl_eltwise_clip_v2_use_dst_for_bwd, 0, 6, relu6, "Clip") then \
    X(SIGMOID, sigmoid, y, WIDE, \
      logistic(x), \
      g * y * (1 - y), \
      dnnl_eltwise_logistic_use_dst_for_bwd, 0, 0, element, "Sigmoid") then \
    X(TANH, tanh, y, WIDE, \
      tanh(x), \
      g * (1 - y * y), \
      dnnl_eltwise_tanh_use_dst_for_bwd, 0, 0, element, "Tanh") then \
    X(GELU, gelu, x, WIDE, \
      x * normal_cdf(x), \
      g * (normal_cdf(x) + x * normal_density(x)), \
      dnnl_eltwise_gelu_erf, 0, 0, gelu, "Erf") then \
    X(SILU, silu, x, WIDE, \
      x * logistic(x), \
      g * logistic(x) * (1 + x * (1 - logistic(x))), \
      dnnl_eltwise_swish, 1, 0, silu, "Mul") then \
    X(HARD_SIGMOID, hard_sigmoid, y, REAL, \
      x > -3 ? x < 3 ? (x + 3) / 6 : 1 : 0, \
      y > 0 && y < 1 ? g / 6 : 0, \
      dnnl_alg_kind_undef, 0, 0, hard_sigmoid, "HardSigmoid") then \
    X(HARD_SILU, hard_silu, x, REAL, \
      x * (x > -3 ? x < 3 ? (x + 3) / 6 : 1 : 0), \
      g * (x > -3 ? x < 3 ? (2 * x + 3) / 6 : 1 : 0), \
      dnnl_eltwise_hardswish, 1 / 6.0F, 0.5F, element, "HardSwish") then \
    X(LEAKY_RELU, leaky_relu, x, REAL, \
      x > threshold ? x < most ? x : most : slope * (x - threshold), \
      x > threshold ? x < most ? g : 0 : slope * g, \
      dnnl_alg_kind_undef, 0, 0, leaky_relu, "LeakyRelu") then \
    X(ELU, elu, x, WIDE, \
      x > 0 ? x : slope * expm1(x), \
      x > 0 ? g : g * slope * exp(x), \
      dnnl_eltwise_elu, slope, 0, elu, "Elu") then \
    X(MISH, mish, x, WIDE, \
      x * tanh(log1p(exp(x))), \
      g * (tanh(log1p(exp(x))) + \
           x * logistic(x) * (1 - tanh(log1p(exp(x))) * tanh(log1p(exp(x))))), \
      dnnl_eltwise_mish, 0, 0, element, "Mish")
/* clang-format on */

/* The list as definitions or statements, and as rows of an initializer, with commas between. */
#define HPCT_GRAPH_ELEMENTS(X) HPCT_GRAPH_ELEMENT_LIST(X, )
#define HPCT_GRAPH_ELEMENT_ROWS(X) HPCT_GRAPH_ELEMENT_LIST(X, HPCT_GRAPH_ELEMENT_COMMA)
#define HPCT_GRAPH_ELEMENT_COMMA ,

/* Whether a gradient that reads x or y reads the source. */
#define HPCT_GRAPH_ELEMENT_READS_SRC_x true
#define HPCT_GRAPH_ELEMENT_READS_SRC_y false

#endif
