/* Convolutions and average pooling by oneDNN. */
#include "base/status.h"
#include "nn/backend/cpu/dnnl.h"

#include <string.h>

/* Memory descriptors of a window over n samples. */
typedef struct window_mds {
    md src, kernel, bias, dst; /* `bias` has no sizes without one */
    dnnl_dims_t strides, size, pad_begin, pad_end, dilation;
    int in_c, in_w, out_c, out_w;
    bool bf16;
} window_mds;

static int64_t far_padding(int in, int out, int reach, int stride, int begin)
{
    int64_t needed = (int64_t) (out - 1) * stride + reach - in - begin;
    return needed > 0 ? needed : 0;
}

/* Types of the three memories, which may be gradients; a bias is fp32. */
typedef struct window_types {
    dnnl_data_type_t src, kernel, dst;
} window_types;

static hpct_status open_window(window_mds *m, const hpct_op_spec *spec, const window_types *types,
                               int n)
{
    const hpct_graph_window *w = &spec->window;
    bool bias = spec->kind == HPCT_OP_CONV2D && !spec->no_bias;
    dnnl_format_tag_t picture = spec->src_blocks || spec->dst_blocks ? dnnl_nChw16c : dnnl_nhwc;
    memset(m, 0, sizeof *m);
    if (hpct_cpu_dnnl_engine() == NULL)
        return hpct_fail(HPCT_ERR_INTERNAL, "oneDNN: there is no CPU engine");
    const dnnl_dim_t src[] = {n, w->in_c, w->in_h, w->in_w}, channels[] = {w->out_c},
                     dst[] = {n, w->out_c, w->out_h, w->out_w};
    int reach_h = hpct_graph_window_reach(w->kernel_h, w->dilation_h),
        reach_w = hpct_graph_window_reach(w->kernel_w, w->dilation_w);
    m->in_c = w->in_c;
    m->in_w = w->in_w;
    m->out_c = w->out_c;
    m->out_w = w->out_w;
    m->bf16 = types->src == dnnl_bf16 || types->dst == dnnl_bf16;
    m->strides[0] = w->stride_h;
    m->strides[1] = w->stride_w;
    m->size[0] = w->kernel_h;
    m->size[1] = w->kernel_w;
    m->dilation[0] = w->dilation_h - 1; /* oneDNN counts from 0 */
    m->dilation[1] = w->dilation_w - 1;
    m->pad_begin[0] = w->pad_top;
    m->pad_begin[1] = w->pad_left;
    m->pad_end[0] = far_padding(w->in_h, w->out_h, reach_h, w->stride_h, w->pad_top);
    m->pad_end[1] = far_padding(w->in_w, w->out_w, reach_w, w->stride_w, w->pad_left);
    dnnl_status_t status = hpct_cpu_md_make(&m->src, 4, src, types->src, picture);
    if (status == dnnl_success)
        status = hpct_cpu_md_make_kernel(&m->kernel, w, types->kernel, false);
    if (status == dnnl_success && bias)
        status = hpct_cpu_md_make(&m->bias, 1, channels, dnnl_f32, dnnl_a);
    if (status == dnnl_success)
        status = hpct_cpu_md_make(&m->dst, 4, dst, types->dst, picture);
    return hpct_cpu_dnnl_check(status, "describing memory");
}

static void close_window(window_mds *m)
{
    hpct_cpu_md_free(&m->src);
    hpct_cpu_md_free(&m->kernel);
    hpct_cpu_md_free(&m->bias);
    hpct_cpu_md_free(&m->dst);
}

static bool is_unsafe(const_dnnl_primitive_desc_t desc, hpct_cpu_prim_kind what,
                      const window_mds *m)
{
    hpct_cpu_onednn library = hpct_cpu_shim_library();
    hpct_cpu_conv_choice choice = {.bf16 = m->bf16,
                                   .inner = what == HPCT_CPU_PRIM_BACKWARD_DATA      ? m->out_c
                                            : what == HPCT_CPU_PRIM_BACKWARD_WEIGHTS ? 0
                                                                                     : m->in_c,
                                   .in_c = m->in_c,
                                   .in_w = m->in_w,
                                   .out_c = m->out_c,
                                   .out_w = m->out_w,
                                   .stride_h = (int) m->strides[0],
                                   .stride_w = (int) m->strides[1]};
    return dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *) &choice.name) ==
               dnnl_success &&
           hpct_cpu_conv_is_known_bad(&library, &choice);
}

#if V3

/* Moves to oneDNN's first safe implementation. */
static dnnl_status_t pass_unsafe(dnnl_primitive_desc_t desc, hpct_cpu_prim_kind what,
                                 const window_mds *m)
{
    dnnl_status_t status = dnnl_success;
    while (status == dnnl_success && is_unsafe(desc, what, m))
        status = dnnl_primitive_desc_next_impl(desc);
    return status;
}

static dnnl_status_t create_conv(dnnl_primitive_desc_t *out, hpct_cpu_prim_kind what,
                                 const window_mds *m, dnnl_primitive_attr_t attributes,
                                 const_dnnl_primitive_desc_t hint)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    if (what == HPCT_CPU_PRIM_BACKWARD_DATA)
        return dnnl_convolution_backward_data_primitive_desc_create(
            out, hpct_cpu_dnnl_engine(), direct, m->src, m->kernel, m->dst, m->strides, m->dilation,
            m->pad_begin, m->pad_end, hint, attributes);
    if (what == HPCT_CPU_PRIM_BACKWARD_WEIGHTS)
        return dnnl_convolution_backward_weights_primitive_desc_create(
            out, hpct_cpu_dnnl_engine(), direct, m->src, m->kernel, m->bias, m->dst, m->strides,
            m->dilation, m->pad_begin, m->pad_end, hint, attributes);
    return dnnl_convolution_forward_primitive_desc_create(
        out, hpct_cpu_dnnl_engine(), hpct_cpu_prop_kind(what), direct, m->src, m->kernel, m->bias,
        m->dst, m->strides, m->dilation, m->pad_begin, m->pad_end, attributes);
}

static dnnl_status_t describe_conv(dnnl_primitive_desc_t *out, hpct_cpu_prim_kind what,
                                   const window_mds *m, dnnl_primitive_attr_t attributes,
                                   const_dnnl_primitive_desc_t hint)
{
    dnnl_status_t status = create_conv(out, what, m, attributes, hint);
    if (status == dnnl_success && (status = pass_unsafe(*out, what, m)) != dnnl_success) {
        dnnl_primitive_desc_destroy(*out);
        *out = NULL;
    }
    return status;
}

static dnnl_status_t describe_pool(dnnl_primitive_desc_t *out, hpct_cpu_prim_kind what,
                                   const window_mds *m, dnnl_primitive_attr_t attributes,
                                   const_dnnl_primitive_desc_t hint)
{
    if (what == HPCT_CPU_PRIM_BACKWARD_DATA)
        return dnnl_pooling_backward_primitive_desc_create(
            out, hpct_cpu_dnnl_engine(), dnnl_pooling_avg_exclude_padding, m->src, m->dst,
            m->strides, m->size, m->dilation, m->pad_begin, m->pad_end, hint, attributes);
    return dnnl_pooling_forward_primitive_desc_create(
        out, hpct_cpu_dnnl_engine(), hpct_cpu_prop_kind(what), dnnl_pooling_avg_exclude_padding,
        m->src, m->dst, m->strides, m->size, m->dilation, m->pad_begin, m->pad_end, attributes);
}

#else

/* Creates oneDNN's first safe implementation. */
static dnnl_status_t create_conv(dnnl_primitive_desc_t *out, const dnnl_convolution_desc_t *op,
                                 hpct_cpu_prim_kind what, const window_mds *m,
                                 dnnl_primitive_attr_t attributes, const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_iterator_t all;
    dnnl_status_t status =
        dnnl_primitive_desc_iterator_create(&all, op, attributes, hpct_cpu_dnnl_engine(), hint);
    if (status != dnnl_success)
        return status;
    *out = dnnl_primitive_desc_iterator_fetch(all);
    while (status == dnnl_success && *out != NULL && is_unsafe(*out, what, m)) {
        dnnl_primitive_desc_destroy(*out);
        *out = NULL;
        status = dnnl_primitive_desc_iterator_next(all);
        if (status == dnnl_success)
            *out = dnnl_primitive_desc_iterator_fetch(all);
    }
    dnnl_primitive_desc_iterator_destroy(all);
    return *out != NULL || status != dnnl_success ? status : dnnl_out_of_memory;
}

static dnnl_status_t describe_conv(dnnl_primitive_desc_t *out, hpct_cpu_prim_kind what,
                                   const window_mds *m, dnnl_primitive_attr_t attributes,
                                   const_dnnl_primitive_desc_t hint)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_convolution_desc_t op;
    dnnl_status_t status;
    if (what == HPCT_CPU_PRIM_BACKWARD_DATA)
        status = dnnl_dilated_convolution_backward_data_desc_init(&op, direct, &m->src, &m->kernel,
                                                                  &m->dst, m->strides, m->dilation,
                                                                  m->pad_begin, m->pad_end);
    else if (what == HPCT_CPU_PRIM_BACKWARD_WEIGHTS)
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &op, direct, &m->src, &m->kernel, &m->bias, &m->dst, m->strides, m->dilation,
            m->pad_begin, m->pad_end);
    else
        status = dnnl_dilated_convolution_forward_desc_init(
            &op, hpct_cpu_prop_kind(what), direct, &m->src, &m->kernel, &m->bias, &m->dst,
            m->strides, m->dilation, m->pad_begin, m->pad_end);
    return status == dnnl_success ? create_conv(out, &op, what, m, attributes, hint) : status;
}

static dnnl_status_t describe_pool(dnnl_primitive_desc_t *out, hpct_cpu_prim_kind what,
                                   const window_mds *m, dnnl_primitive_attr_t attributes,
                                   const_dnnl_primitive_desc_t hint)
{
    dnnl_pooling_desc_t op;
    dnnl_status_t status =
        what == HPCT_CPU_PRIM_BACKWARD_DATA
            ? dnnl_pooling_backward_desc_init(&op, dnnl_pooling_avg_exclude_padding, &m->src,
                                              &m->dst, m->strides, m->size, m->pad_begin,
                                              m->pad_end)
            : dnnl_pooling_forward_desc_init(&op, hpct_cpu_prop_kind(what),
                                             dnnl_pooling_avg_exclude_padding, &m->src, &m->dst,
                                             m->strides, m->size, m->pad_begin, m->pad_end);
    return status == dnnl_success
               ? dnnl_primitive_desc_create(out, &op, attributes, hpct_cpu_dnnl_engine(), hint)
               : status;
}

#endif

typedef dnnl_status_t describe_function(dnnl_primitive_desc_t *out, hpct_cpu_prim_kind what,
                                        const window_mds *m, dnnl_primitive_attr_t attributes,
                                        const_dnnl_primitive_desc_t hint);

/* Inputs are of the lower precision, outputs fp32. */
static window_types types_of(hpct_precision type, hpct_cpu_prim_kind what)
{
    dnnl_data_type_t low = type == HPCT_BF16 ? dnnl_bf16 : dnnl_f32;
    window_types types = {low, low, low};
    if (what == HPCT_CPU_PRIM_BACKWARD_DATA)
        types.src = dnnl_f32;
    else if (what == HPCT_CPU_PRIM_BACKWARD_WEIGHTS)
        types.kernel = dnnl_f32;
    else
        types.dst = dnnl_f32;
    return types;
}

/* Creates a primitive over a window, with these arguments. */
static hpct_status make_windowed(hpct_cpu_prim **out, describe_function *describe,
                                 hpct_cpu_prim_kind what, const hpct_op_spec *spec,
                                 hpct_precision type, int n, const hpct_cpu_prim *forward,
                                 const wanted_arg *args, int num_args)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    window_mds m;
    bool relu = spec->relu && what <= HPCT_CPU_PRIM_INFERENCE;
    window_types types = types_of(type, what);
    hpct_status status = open_window(&m, spec, &types, n);
    if (status == HPCT_OK)
        status = hpct_cpu_dnnl_check(hpct_cpu_dnnl_attributes(&attributes, relu, false),
                                     "setting attributes");
    if (status == HPCT_OK)
        status = hpct_cpu_dnnl_check(
            describe(&desc, what, &m, attributes, forward != NULL ? forward->desc : NULL),
            "describing a primitive");
    if (status == HPCT_OK)
        status = hpct_cpu_prim_finish(out, desc, args, num_args);
    dnnl_primitive_attr_destroy(attributes);
    close_window(&m);
    return status;
}

hpct_status hpct_cpu_shim_conv_forward(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                       hpct_precision type, int n, bool training)
{
    static const wanted_arg args[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                      {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0},
                                      {DNNL_ARG_DST, dnnl_query_dst_md, 0},
                                      {DNNL_ARG_BIAS, dnnl_query_weights_md, 1}};
    return make_windowed(out, describe_conv,
                         training ? HPCT_CPU_PRIM_FORWARD : HPCT_CPU_PRIM_INFERENCE, spec, type, n,
                         NULL, args, spec->no_bias ? 3 : 4);
}

hpct_status hpct_cpu_shim_conv_backward_data(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                             hpct_precision type, int n,
                                             const hpct_cpu_prim *forward)
{
    static const wanted_arg args[] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                      {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0},
                                      {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0}};
    return make_windowed(out, describe_conv, HPCT_CPU_PRIM_BACKWARD_DATA, spec, type, n, forward,
                         args, 3);
}

hpct_status hpct_cpu_shim_conv_backward_weights(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                                hpct_precision type, int n,
                                                const hpct_cpu_prim *forward)
{
    static const wanted_arg args[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                      {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                      {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, 0},
                                      {DNNL_ARG_DIFF_BIAS, dnnl_query_diff_weights_md, 1}};
    return make_windowed(out, describe_conv, HPCT_CPU_PRIM_BACKWARD_WEIGHTS, spec, type, n, forward,
                         args, spec->no_bias ? 3 : 4);
}

hpct_status hpct_cpu_shim_pool_forward(hpct_cpu_prim **out, const hpct_op_spec *spec, int n,
                                       bool training)
{
    static const wanted_arg args[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                      {DNNL_ARG_DST, dnnl_query_dst_md, 0}};
    return make_windowed(out, describe_pool,
                         training ? HPCT_CPU_PRIM_FORWARD : HPCT_CPU_PRIM_INFERENCE, spec,
                         HPCT_FP32, n, NULL, args, 2);
}

hpct_status hpct_cpu_shim_pool_backward(hpct_cpu_prim **out, const hpct_op_spec *spec, int n,
                                        const hpct_cpu_prim *forward)
{
    static const wanted_arg args[] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                      {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0}};
    return make_windowed(out, describe_pool, HPCT_CPU_PRIM_BACKWARD_DATA, spec, HPCT_FP32, n,
                         forward, args, 2);
}
