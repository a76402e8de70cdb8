/* oneDNN 2 and 3 behind one face. What differs between them: memory descriptors are a struct in 2
 * and a handle in 3, and 2 goes through operation descriptors to make a primitive descriptor. */
#include "nn/cpu/shim.h"

#include "base/status.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define V3 (DNNL_VERSION_MAJOR >= 3)

/* A memory descriptor that owns itself in both versions. */
typedef dnnl_memory_desc_t md;
#if V3
typedef const_dnnl_memory_desc_t md_ref; /* how functions take one */
#define MD(m) (m)
#else
typedef const dnnl_memory_desc_t *md_ref;
#define MD(m) (&(m))
#endif

struct hpct_kernel_layout {
    md desc;
};

struct hpct_prim {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    md_ref kernel; /* belongs to desc; NULL when it has none */
    size_t scratch_bytes;
    int num_args; /* without the scratchpad, which is the last of `args` */
    dnnl_exec_arg_t args[HPCT_PRIM_MAX_ARGS + 1];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void open_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) == dnnl_success)
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
}

static hpct_status check(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return HPCT_OK;
    if (status == dnnl_out_of_memory)
        return hpct_fail_memory(0);
    return hpct_fail(HPCT_ERR_INTERNAL, "oneDNN: %s failed with status %d", what, (int) status);
}

/* ---- memory descriptors ---- */

static dnnl_status_t md_make_of(md *out, int rank, const dnnl_dim_t *sizes, dnnl_data_type_t type,
                                dnnl_format_tag_t tag)
{
    dnnl_dims_t dims;
    memcpy(dims, sizes, (size_t) rank * sizeof *sizes);
#if V3
    return dnnl_memory_desc_create_with_tag(out, rank, dims, type, tag);
#else
    return dnnl_memory_desc_init_by_tag(out, rank, dims, type, tag);
#endif
}

static dnnl_status_t md_make(md *out, int rank, const dnnl_dim_t *sizes, dnnl_format_tag_t tag)
{
    return md_make_of(out, rank, sizes, dnnl_f32, tag);
}

static dnnl_status_t md_copy(md *out, md_ref from)
{
#if V3
    return dnnl_memory_desc_clone(out, from);
#else
    *out = *from;
    return dnnl_success;
#endif
}

static void md_free(md *desc)
{
#if V3
    if (*desc != NULL)
        dnnl_memory_desc_destroy(*desc);
    *desc = NULL;
#else
    (void) desc;
#endif
}

/* The descriptors of a window over n samples. */
typedef struct window_mds {
    md src, kernel, bias, dst; /* `bias` has no sizes without one */
    dnnl_dims_t strides, size, pad_begin, pad_end, dilation;
} window_mds;

static int64_t far_padding(int in, int out, int reach, int stride, int begin)
{
    int64_t needed = (int64_t) (out - 1) * stride + reach - in - begin;
    return needed > 0 ? needed : 0;
}

/* A convolution's kernel; in groups, these come first. */
static dnnl_status_t make_kernel(md *out, const hpct_window *w, dnnl_data_type_t type, bool plain)
{
    const dnnl_dim_t sizes[] = {w->groups, w->out_c / w->groups, w->in_c / w->groups, w->kernel_h,
                                w->kernel_w};
    if (w->groups > 1)
        return md_make_of(out, 5, sizes, type, plain ? dnnl_hwigo : dnnl_format_tag_any);
    return md_make_of(out, 4, sizes + 1, type, plain ? dnnl_hwio : dnnl_format_tag_any);
}

/* Of its three memories, which can be the gradients; a bias is fp32. */
typedef struct window_types {
    dnnl_data_type_t src, kernel, dst;
} window_types;

static hpct_status open_window(window_mds *m, const hpct_op_spec *spec, const window_types *types,
                               int n)
{
    const hpct_window *w = &spec->window;
    bool bias = spec->kind == HPCT_OP_CONV2D && !spec->no_bias;
    dnnl_format_tag_t picture = spec->src_blocks || spec->dst_blocks ? dnnl_nChw16c : dnnl_nhwc;
    memset(m, 0, sizeof *m);
    pthread_once(&once, open_engine);
    if (stream == NULL)
        return hpct_fail(HPCT_ERR_INTERNAL, "oneDNN: there is no CPU engine");
    const dnnl_dim_t src[] = {n, w->in_c, w->in_h, w->in_w}, channels[] = {w->out_c},
                     dst[] = {n, w->out_c, w->out_h, w->out_w};
    int reach_h = hpct_window_reach(w->kernel_h, w->dilation_h),
        reach_w = hpct_window_reach(w->kernel_w, w->dilation_w);
    m->strides[0] = w->stride_h;
    m->strides[1] = w->stride_w;
    m->size[0] = w->kernel_h;
    m->size[1] = w->kernel_w;
    m->dilation[0] = w->dilation_h - 1; /* cells between */
    m->dilation[1] = w->dilation_w - 1;
    m->pad_begin[0] = w->pad_top;
    m->pad_begin[1] = w->pad_left;
    m->pad_end[0] = far_padding(w->in_h, w->out_h, reach_h, w->stride_h, w->pad_top);
    m->pad_end[1] = far_padding(w->in_w, w->out_w, reach_w, w->stride_w, w->pad_left);
    dnnl_status_t status = md_make_of(&m->src, 4, src, types->src, picture);
    if (status == dnnl_success)
        status = make_kernel(&m->kernel, w, types->kernel, false);
    if (status == dnnl_success && bias)
        status = md_make(&m->bias, 1, channels, dnnl_a);
    if (status == dnnl_success)
        status = md_make_of(&m->dst, 4, dst, types->dst, picture);
    return check(status, "describing memory");
}

static void close_window(window_mds *m)
{
    md_free(&m->src);
    md_free(&m->kernel);
    md_free(&m->bias);
    md_free(&m->dst);
}

/* ---- layouts of kernels ---- */

static hpct_status layout_of(hpct_kernel_layout **out, md_ref desc)
{
    hpct_kernel_layout *layout = calloc(1, sizeof *layout);
    if (layout == NULL)
        return hpct_fail_memory(sizeof *layout);
    hpct_status status = check(md_copy(&layout->desc, desc), "copying a descriptor");
    if (status == HPCT_OK)
        *out = layout;
    else
        free(layout);
    return status;
}

hpct_status hpct_kernel_layout_plain(hpct_kernel_layout **out, const hpct_window *w)
{
    md desc;
    hpct_status status = check(make_kernel(&desc, w, dnnl_f32, true), "describing memory");
    if (status != HPCT_OK)
        return status;
    status = layout_of(out, MD(desc));
    md_free(&desc);
    return status;
}

void hpct_kernel_layout_free(hpct_kernel_layout *layout)
{
    if (layout == NULL)
        return;
    md_free(&layout->desc);
    free(layout);
}

bool hpct_kernel_layout_equal(const hpct_kernel_layout *a, const hpct_kernel_layout *b)
{
    return dnnl_memory_desc_equal(MD(a->desc), MD(b->desc)) != 0;
}

size_t hpct_kernel_layout_bytes(const hpct_kernel_layout *layout)
{
    return dnnl_memory_desc_get_size(MD(layout->desc));
}

uint64_t hpct_kernel_layout_fingerprint(const hpct_kernel_layout *layout)
{
    uint64_t hash = HPCT_HASH_START;
    int rank, blocks;
    const dnnl_dim_t *padded, *strides, *sizes, *axes;
#if V3
    const_dnnl_memory_desc_t desc = layout->desc;
    dnnl_dims_t *array[4];
    dnnl_memory_desc_query(desc, dnnl_query_ndims_s32, &rank);
    dnnl_memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks);
    dnnl_memory_desc_query(desc, dnnl_query_padded_dims, &array[0]);
    dnnl_memory_desc_query(desc, dnnl_query_strides, &array[1]);
    dnnl_memory_desc_query(desc, dnnl_query_inner_blks, &array[2]);
    dnnl_memory_desc_query(desc, dnnl_query_inner_idxs, &array[3]);
    padded = *array[0];
    strides = *array[1];
    sizes = *array[2];
    axes = *array[3];
#else
    const dnnl_blocking_desc_t *blocking = &layout->desc.format_desc.blocking;
    rank = layout->desc.ndims;
    blocks = blocking->inner_nblks;
    padded = layout->desc.padded_dims;
    strides = blocking->strides;
    sizes = blocking->inner_blks;
    axes = blocking->inner_idxs;
#endif
    hash = hpct_hash(hash, padded, (size_t) rank * sizeof *padded);
    hash = hpct_hash(hash, strides, (size_t) rank * sizeof *strides);
    hash = hpct_hash(hash, sizes, (size_t) blocks * sizeof *sizes);
    return hpct_hash(hash, axes, (size_t) blocks * sizeof *axes);
}

/* ---- primitives ---- */

void hpct_prim_free(hpct_prim *prim)
{
    if (prim == NULL)
        return;
    for (int i = 0; i < prim->num_args + 1; i++) {
        if (prim->args[i].memory != NULL)
            dnnl_memory_destroy(prim->args[i].memory);
    }
    if (prim->primitive != NULL)
        dnnl_primitive_destroy(prim->primitive);
    if (prim->desc != NULL)
        dnnl_primitive_desc_destroy(prim->desc);
    free(prim);
}

size_t hpct_prim_scratch_bytes(const hpct_prim *prim)
{
    return prim->scratch_bytes;
}

hpct_status hpct_prim_kernel_layout(const hpct_prim *prim, hpct_kernel_layout **out)
{
    return layout_of(out, prim->kernel);
}

/* One argument, with the descriptor that the primitive settled on. */
typedef struct wanted_arg {
    int arg;
    dnnl_query_t query;
    int index; /* of the query */
} wanted_arg;

static dnnl_status_t add_memory(hpct_prim *prim, int slot, int arg, md_ref desc)
{
    prim->args[slot].arg = arg;
    return dnnl_memory_create(&prim->args[slot].memory, desc, engine, DNNL_MEMORY_NONE);
}

/* Attributes: scratchpad from the caller and, if wanted, ReLU on the result, or the result added to
 * what is there. */
static dnnl_status_t make_attributes(dnnl_primitive_attr_t *out, bool relu, bool add)
{
    dnnl_post_ops_t post = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status != dnnl_success || (!relu && !add))
        return status;
    status = dnnl_post_ops_create(&post);
    if (status == dnnl_success) {
#if V3
        status = add ? dnnl_post_ops_append_sum(post, 1.0f, 0, dnnl_data_type_undef)
                     : dnnl_post_ops_append_eltwise(post, dnnl_eltwise_relu, 0.0f, 0.0f);
#else
        status = add ? dnnl_post_ops_append_sum(post, 1.0f)
                     : dnnl_post_ops_append_eltwise(post, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f);
#endif
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(*out, post);
        dnnl_post_ops_destroy(post);
    }
    return status;
}

/* Takes `desc` over and makes everything that execution needs. */
static hpct_status finish(hpct_prim **out, dnnl_primitive_desc_t desc, const wanted_arg *wanted,
                          int num_args)
{
    hpct_prim *prim = calloc(1, sizeof *prim);
    if (prim == NULL) {
        dnnl_primitive_desc_destroy(desc);
        return hpct_fail_memory(sizeof *prim);
    }
    prim->desc = desc;
    prim->num_args = num_args;
    dnnl_status_t status = dnnl_primitive_create(&prim->primitive, desc);
    for (int i = 0; i < num_args && status == dnnl_success; i++) {
        md_ref memory = dnnl_primitive_desc_query_md(desc, wanted[i].query, wanted[i].index);
        status = add_memory(prim, i, wanted[i].arg, memory);
        bool kernel = wanted[i].arg == DNNL_ARG_WEIGHTS || wanted[i].arg == DNNL_ARG_DIFF_WEIGHTS;
        if (kernel)
            prim->kernel = memory;
    }
    if (status == dnnl_success) {
        md_ref scratch = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
        prim->scratch_bytes = dnnl_memory_desc_get_size(scratch);
        status = add_memory(prim, num_args, DNNL_ARG_SCRATCHPAD, scratch);
    }
    if (status != dnnl_success) {
        hpct_prim_free(prim);
        return check(status, "creating a primitive");
    }
    *out = prim;
    return HPCT_OK;
}

hpct_status hpct_prim_execute(hpct_prim *prim, void *scratch, void *const args[])
{
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < prim->num_args + 1 && status == dnnl_success; i++) {
        void *wanted = i < prim->num_args ? args[i] : scratch, *set = NULL;
        status = dnnl_memory_get_data_handle(prim->args[i].memory, &set);
        if (status == dnnl_success && set != wanted) /* setting costs more than looking */
            status = dnnl_memory_set_data_handle(prim->args[i].memory, wanted);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_execute(prim->primitive, stream, prim->num_args + 1, prim->args);
    if (status == dnnl_success)
        status = dnnl_stream_wait(stream);
    return status == dnnl_success ? HPCT_OK : check(status, "executing a primitive");
}

typedef enum which { FORWARD, INFERENCE, BACKWARD_DATA, BACKWARD_WEIGHTS } which;

static dnnl_prop_kind_t prop_kind(which what)
{
    return what == FORWARD ? dnnl_forward_training : dnnl_forward_inference;
}

#if V3

static dnnl_status_t describe_conv(dnnl_primitive_desc_t *out, which what, const window_mds *m,
                                   dnnl_primitive_attr_t attributes,
                                   const_dnnl_primitive_desc_t hint)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    if (what == BACKWARD_DATA)
        return dnnl_convolution_backward_data_primitive_desc_create(
            out, engine, direct, m->src, m->kernel, m->dst, m->strides, m->dilation, m->pad_begin,
            m->pad_end, hint, attributes);
    if (what == BACKWARD_WEIGHTS)
        return dnnl_convolution_backward_weights_primitive_desc_create(
            out, engine, direct, m->src, m->kernel, m->bias, m->dst, m->strides, m->dilation,
            m->pad_begin, m->pad_end, hint, attributes);
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, prop_kind(what), direct, m->src, m->kernel, m->bias, m->dst, m->strides,
        m->dilation, m->pad_begin, m->pad_end, attributes);
}

static dnnl_status_t describe_pool(dnnl_primitive_desc_t *out, which what, const window_mds *m,
                                   dnnl_primitive_attr_t attributes,
                                   const_dnnl_primitive_desc_t hint)
{
    if (what == BACKWARD_DATA)
        return dnnl_pooling_backward_primitive_desc_create(
            out, engine, dnnl_pooling_avg_exclude_padding, m->src, m->dst, m->strides, m->size,
            m->dilation, m->pad_begin, m->pad_end, hint, attributes);
    return dnnl_pooling_forward_primitive_desc_create(
        out, engine, prop_kind(what), dnnl_pooling_avg_exclude_padding, m->src, m->dst, m->strides,
        m->size, m->dilation, m->pad_begin, m->pad_end, attributes);
}

#else

static dnnl_status_t describe_conv(dnnl_primitive_desc_t *out, which what, const window_mds *m,
                                   dnnl_primitive_attr_t attributes,
                                   const_dnnl_primitive_desc_t hint)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    dnnl_convolution_desc_t op;
    dnnl_status_t status;
    if (what == BACKWARD_DATA)
        status = dnnl_dilated_convolution_backward_data_desc_init(&op, direct, &m->src, &m->kernel,
                                                                  &m->dst, m->strides, m->dilation,
                                                                  m->pad_begin, m->pad_end);
    else if (what == BACKWARD_WEIGHTS)
        status = dnnl_dilated_convolution_backward_weights_desc_init(
            &op, direct, &m->src, &m->kernel, &m->bias, &m->dst, m->strides, m->dilation,
            m->pad_begin, m->pad_end);
    else
        status = dnnl_dilated_convolution_forward_desc_init(
            &op, prop_kind(what), direct, &m->src, &m->kernel, &m->bias, &m->dst, m->strides,
            m->dilation, m->pad_begin, m->pad_end);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &op, attributes, engine, hint)
                                  : status;
}

static dnnl_status_t describe_pool(dnnl_primitive_desc_t *out, which what, const window_mds *m,
                                   dnnl_primitive_attr_t attributes,
                                   const_dnnl_primitive_desc_t hint)
{
    dnnl_pooling_desc_t op;
    dnnl_status_t status =
        what == BACKWARD_DATA
            ? dnnl_pooling_backward_desc_init(&op, dnnl_pooling_avg_exclude_padding, &m->src,
                                              &m->dst, m->strides, m->size, m->pad_begin,
                                              m->pad_end)
            : dnnl_pooling_forward_desc_init(&op, prop_kind(what), dnnl_pooling_avg_exclude_padding,
                                             &m->src, &m->dst, m->strides, m->size, m->pad_begin,
                                             m->pad_end);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &op, attributes, engine, hint)
                                  : status;
}

#endif

typedef dnnl_status_t describe_function(dnnl_primitive_desc_t *out, which what, const window_mds *m,
                                        dnnl_primitive_attr_t attributes,
                                        const_dnnl_primitive_desc_t hint);

/* What is read is of the lower precision, what is written fp32. */
static window_types types_of(hpct_precision type, which what)
{
    dnnl_data_type_t low = type == HPCT_BF16 ? dnnl_bf16 : dnnl_f32;
    window_types types = {low, low, low};
    if (what == BACKWARD_DATA)
        types.src = dnnl_f32;
    else if (what == BACKWARD_WEIGHTS)
        types.kernel = dnnl_f32;
    else
        types.dst = dnnl_f32;
    return types;
}

/* A primitive over a window, with these arguments. */
static hpct_status make_windowed(hpct_prim **out, describe_function *describe, which what,
                                 const hpct_op_spec *spec, hpct_precision type, int n,
                                 const hpct_prim *forward, const wanted_arg *args, int num_args)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    window_mds m;
    bool relu = spec->relu && what <= INFERENCE;
    window_types types = types_of(type, what);
    hpct_status status = open_window(&m, spec, &types, n);
    if (status == HPCT_OK)
        status = check(make_attributes(&attributes, relu, false), "setting attributes");
    if (status == HPCT_OK)
        status =
            check(describe(&desc, what, &m, attributes, forward != NULL ? forward->desc : NULL),
                  "describing a primitive");
    if (status == HPCT_OK)
        status = finish(out, desc, args, num_args);
    dnnl_primitive_attr_destroy(attributes);
    close_window(&m);
    return status;
}

hpct_status hpct_shim_conv_forward(hpct_prim **out, const hpct_op_spec *spec, hpct_precision type,
                                   int n, bool training)
{
    static const wanted_arg args[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                      {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0},
                                      {DNNL_ARG_DST, dnnl_query_dst_md, 0},
                                      {DNNL_ARG_BIAS, dnnl_query_weights_md, 1}};
    return make_windowed(out, describe_conv, training ? FORWARD : INFERENCE, spec, type, n, NULL,
                         args, spec->no_bias ? 3 : 4);
}

hpct_status hpct_shim_conv_backward_data(hpct_prim **out, const hpct_op_spec *spec,
                                         hpct_precision type, int n, const hpct_prim *forward)
{
    static const wanted_arg args[] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                      {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0},
                                      {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0}};
    return make_windowed(out, describe_conv, BACKWARD_DATA, spec, type, n, forward, args, 3);
}

hpct_status hpct_shim_conv_backward_weights(hpct_prim **out, const hpct_op_spec *spec,
                                            hpct_precision type, int n, const hpct_prim *forward)
{
    static const wanted_arg args[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                      {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                      {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, 0},
                                      {DNNL_ARG_DIFF_BIAS, dnnl_query_diff_weights_md, 1}};
    return make_windowed(out, describe_conv, BACKWARD_WEIGHTS, spec, type, n, forward, args,
                         spec->no_bias ? 3 : 4);
}

hpct_status hpct_shim_pool_forward(hpct_prim **out, const hpct_op_spec *spec, int n, bool training)
{
    static const wanted_arg args[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                      {DNNL_ARG_DST, dnnl_query_dst_md, 0}};
    return make_windowed(out, describe_pool, training ? FORWARD : INFERENCE, spec, HPCT_FP32, n,
                         NULL, args, 2);
}

hpct_status hpct_shim_pool_backward(hpct_prim **out, const hpct_op_spec *spec, int n,
                                    const hpct_prim *forward)
{
    static const wanted_arg args[] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                      {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0}};
    return make_windowed(out, describe_pool, BACKWARD_DATA, spec, HPCT_FP32, n, forward, args, 2);
}

typedef struct eltwise {
    dnnl_alg_kind_t algorithm;
    float alpha, beta;
} eltwise;

static eltwise eltwise_of(hpct_op_kind kind)
{
    switch (kind) {
    case HPCT_OP_SIGMOID:
        return (eltwise){.algorithm = dnnl_eltwise_logistic_use_dst_for_bwd};
    case HPCT_OP_TANH:
        return (eltwise){.algorithm = dnnl_eltwise_tanh_use_dst_for_bwd};
    case HPCT_OP_GELU:
        return (eltwise){.algorithm = dnnl_eltwise_gelu_erf};
    default:
        return (eltwise){.algorithm = dnnl_eltwise_clip_v2_use_dst_for_bwd, .beta = 6};
    }
}

static dnnl_status_t describe_eltwise(dnnl_primitive_desc_t *out, which what, const eltwise *e,
                                      const md *row, dnnl_primitive_attr_t attributes,
                                      const_dnnl_primitive_desc_t hint)
{
#if V3
    if (what == BACKWARD_DATA)
        return dnnl_eltwise_backward_primitive_desc_create(
            out, engine, e->algorithm, *row, *row, *row, e->alpha, e->beta, hint, attributes);
    return dnnl_eltwise_forward_primitive_desc_create(out, engine, prop_kind(what), e->algorithm,
                                                      *row, *row, e->alpha, e->beta, attributes);
#else
    dnnl_eltwise_desc_t op;
    dnnl_status_t status =
        what == BACKWARD_DATA
            ? dnnl_eltwise_backward_desc_init(&op, e->algorithm, row, row, e->alpha, e->beta)
            : dnnl_eltwise_forward_desc_init(&op, prop_kind(what), e->algorithm, row, e->alpha,
                                             e->beta);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &op, attributes, engine, hint)
                                  : status;
#endif
}

static hpct_status make_eltwise(hpct_prim **out, which what, hpct_op_kind kind, size_t count,
                                const hpct_prim *forward, const wanted_arg *args, int num_args)
{
    const dnnl_dim_t sizes[] = {(dnnl_dim_t) count};
    eltwise e = eltwise_of(kind);
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    md row;
    pthread_once(&once, open_engine);
    hpct_status status = check(md_make(&row, 1, sizes, dnnl_a), "describing memory");
    if (status != HPCT_OK)
        return status;
    status = check(make_attributes(&attributes, false, false), "setting attributes");
    if (status == HPCT_OK)
        status = check(describe_eltwise(&desc, what, &e, &row, attributes,
                                        forward != NULL ? forward->desc : NULL),
                       "describing a primitive");
    if (status == HPCT_OK)
        status = finish(out, desc, args, num_args);
    dnnl_primitive_attr_destroy(attributes);
    md_free(&row);
    return status;
}

hpct_status hpct_shim_eltwise_forward(hpct_prim **out, hpct_op_kind kind, size_t count,
                                      bool training)
{
    static const wanted_arg args[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                      {DNNL_ARG_DST, dnnl_query_dst_md, 0}};
    return make_eltwise(out, training ? FORWARD : INFERENCE, kind, count, NULL, args, 2);
}

hpct_status hpct_shim_eltwise_backward(hpct_prim **out, hpct_op_kind kind, size_t count,
                                       const hpct_prim *forward)
{
    static const wanted_arg from_dst[] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                          {DNNL_ARG_DST, dnnl_query_dst_md, 0},
                                          {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0}},
                            from_src[] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                          {DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                          {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0}};
    return make_eltwise(out, BACKWARD_DATA, kind, count, forward,
                        kind == HPCT_OP_GELU ? from_src : from_dst, 3);
}

hpct_status hpct_shim_reorder(hpct_prim **out, const hpct_kernel_layout *from,
                              const hpct_kernel_layout *to)
{
    static const wanted_arg args[] = {{DNNL_ARG_FROM, dnnl_query_src_md, 0},
                                      {DNNL_ARG_TO, dnnl_query_dst_md, 0}};
    pthread_once(&once, open_engine);
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    hpct_status status = check(make_attributes(&attributes, false, false), "setting attributes");
    if (status == HPCT_OK)
        status = check(dnnl_reorder_primitive_desc_create(&desc, MD(from->desc), engine,
                                                          MD(to->desc), engine, attributes),
                       "describing a reorder");
    if (status == HPCT_OK)
        status = finish(out, desc, args, 2);
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

static dnnl_status_t describe_product(dnnl_primitive_desc_t *out, const md *a, const md *b,
                                      const md *bias, const md *c, dnnl_primitive_attr_t attributes)
{
#if V3
    return dnnl_matmul_primitive_desc_create(out, engine, *a, *b, bias != NULL ? *bias : NULL, *c,
                                             attributes);
#else
    dnnl_matmul_desc_t op;
    dnnl_status_t status = dnnl_matmul_desc_init(&op, a, b, bias, c);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &op, attributes, engine, NULL)
                                  : status;
#endif
}

hpct_status hpct_shim_product(hpct_prim **out, const hpct_product *p)
{
    static const wanted_arg args[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                      {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, 0},
                                      {DNNL_ARG_DST, dnnl_query_dst_md, 0},
                                      {DNNL_ARG_BIAS, dnnl_query_weights_md, 1}};
    const dnnl_dim_t m = (dnnl_dim_t) p->m, n = (dnnl_dim_t) p->n, k = (dnnl_dim_t) p->k,
                     sizes_a[] = {m, k}, sizes_b[] = {k, n}, sizes_c[] = {m, n},
                     sizes_bias[] = {1, n};
    md a, b, c, bias;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    memset(&c, 0, sizeof c);
    memset(&bias, 0, sizeof bias);
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    pthread_once(&once, open_engine);
    dnnl_data_type_t type = p->type == HPCT_BF16 ? dnnl_bf16 : dnnl_f32;
    dnnl_status_t made = md_make_of(&a, 2, sizes_a, type, p->trans_a ? dnnl_ba : dnnl_ab);
    if (made == dnnl_success)
        made = md_make_of(&b, 2, sizes_b, type, p->trans_b ? dnnl_ba : dnnl_ab);
    if (made == dnnl_success)
        made = md_make(&c, 2, sizes_c, dnnl_ab);
    if (made == dnnl_success && p->bias)
        made = md_make(&bias, 2, sizes_bias, dnnl_ab);
    hpct_status status = check(made, "describing memory");
    if (status == HPCT_OK)
        status = check(make_attributes(&attributes, p->relu, p->add), "setting attributes");
    if (status == HPCT_OK)
        status = check(describe_product(&desc, &a, &b, p->bias ? &bias : NULL, &c, attributes),
                       "describing a matrix product");
    if (status == HPCT_OK)
        status = finish(out, desc, args, p->bias ? 4 : 3);
    dnnl_primitive_attr_destroy(attributes);
    md_free(&a);
    md_free(&b);
    md_free(&c);
    md_free(&bias);
    return status;
}

bool hpct_shim_has_bf16(void)
{
    /* each set contains those below it */
    const unsigned wanted = (unsigned) dnnl_cpu_isa_avx512_core_bf16;
    return ((unsigned) dnnl_get_effective_cpu_isa() & wanted) == wanted;
}

static bool has_isa(dnnl_cpu_isa_t isa)
{
    return (dnnl_get_effective_cpu_isa() & isa) == isa;
}

bool hpct_shim_prefers_blocks(int cells)
{
    return has_isa(cells > 1 ? dnnl_cpu_isa_avx512_core_amx : dnnl_cpu_isa_avx512_core);
}

hpct_status hpct_shim_gemm(const hpct_gemm *g)
{
    return check(dnnl_sgemm(g->trans_a, g->trans_b, (dnnl_dim_t) g->m, (dnnl_dim_t) g->n,
                            (dnnl_dim_t) g->k, g->alpha, g->a, (dnnl_dim_t) g->lda, g->b,
                            (dnnl_dim_t) g->ldb, g->beta, g->c, (dnnl_dim_t) g->ldc),
                 "dnnl_sgemm");
}

const char *hpct_shim_version(void)
{
    static _Thread_local char text[48];
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
    return text;
}
