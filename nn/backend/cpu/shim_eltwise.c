/* Elementwise functions by oneDNN. */
#include "nn/backend/cpu/dnnl.h"

#include "base/status.h"

/* alpha and beta of hardswish are read by oneDNN 2.7 and later. */
typedef struct eltwise {
    dnnl_alg_kind_t algorithm;
    float alpha, beta;
} eltwise;

#define ROW(kind, name, reads, type, forward, gradient, algorithm, alpha, beta, ...)               \
    [HPCT_OP_##kind] = {algorithm, alpha, beta}

static eltwise eltwise_of(const hpct_op_spec *spec)
{
    const float slope = spec->slope;
    const eltwise all[HPCT_OP_KINDS] = {HPCT_GRAPH_ELEMENT_ROWS(ROW)};
    return all[spec->kind];
}

bool hpct_cpu_shim_has_eltwise(const hpct_op_spec *spec)
{
    return eltwise_of(spec).algorithm != dnnl_alg_kind_undef;
}

static dnnl_status_t describe_eltwise(dnnl_primitive_desc_t *out, hpct_cpu_prim_kind what,
                                      const eltwise *e, const md *row,
                                      dnnl_primitive_attr_t attributes,
                                      const_dnnl_primitive_desc_t hint)
{
#if V3
    if (what == HPCT_CPU_PRIM_BACKWARD_DATA)
        return dnnl_eltwise_backward_primitive_desc_create(out, hpct_cpu_dnnl_engine(),
                                                           e->algorithm, *row, *row, *row, e->alpha,
                                                           e->beta, hint, attributes);
    return dnnl_eltwise_forward_primitive_desc_create(out, hpct_cpu_dnnl_engine(),
                                                      hpct_cpu_prop_kind(what), e->algorithm, *row,
                                                      *row, e->alpha, e->beta, attributes);
#else
    dnnl_eltwise_desc_t op;
    dnnl_status_t status =
        what == HPCT_CPU_PRIM_BACKWARD_DATA
            ? dnnl_eltwise_backward_desc_init(&op, e->algorithm, row, row, e->alpha, e->beta)
            : dnnl_eltwise_forward_desc_init(&op, hpct_cpu_prop_kind(what), e->algorithm, row,
                                             e->alpha, e->beta);
    return status == dnnl_success
               ? dnnl_primitive_desc_create(out, &op, attributes, hpct_cpu_dnnl_engine(), hint)
               : status;
#endif
}

static hpct_status make_eltwise(hpct_cpu_prim **out, hpct_cpu_prim_kind what,
                                const hpct_op_spec *spec, size_t count,
                                const hpct_cpu_prim *forward, const wanted_arg *args, int num_args)
{
    const dnnl_dim_t sizes[] = {(dnnl_dim_t) count};
    eltwise e = eltwise_of(spec);
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    md row;
    HPCT_TRY(hpct_cpu_dnnl_check(hpct_cpu_md_make(&row, 1, sizes, dnnl_f32, dnnl_a),
                                 "describing memory"));
    hpct_status status = hpct_cpu_dnnl_check(hpct_cpu_dnnl_attributes(&attributes, false, false),
                                             "setting attributes");
    if (status == HPCT_OK)
        status = hpct_cpu_dnnl_check(describe_eltwise(&desc, what, &e, &row, attributes,
                                                      forward != NULL ? forward->desc : NULL),
                                     "describing a primitive");
    if (status == HPCT_OK)
        status = hpct_cpu_prim_finish(out, desc, args, num_args);
    dnnl_primitive_attr_destroy(attributes);
    hpct_cpu_md_free(&row);
    return status;
}

hpct_status hpct_cpu_shim_eltwise_forward(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                          size_t count, bool training)
{
    static const wanted_arg args[] = {{DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                      {DNNL_ARG_DST, dnnl_query_dst_md, 0}};
    return make_eltwise(out, training ? HPCT_CPU_PRIM_FORWARD : HPCT_CPU_PRIM_INFERENCE, spec,
                        count, NULL, args, 2);
}

hpct_status hpct_cpu_shim_eltwise_backward(hpct_cpu_prim **out, const hpct_op_spec *spec,
                                           size_t count, const hpct_cpu_prim *forward)
{
    static const wanted_arg from_dst[] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                          {DNNL_ARG_DST, dnnl_query_dst_md, 0},
                                          {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0}},
                            from_src[] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, 0},
                                          {DNNL_ARG_SRC, dnnl_query_src_md, 0},
                                          {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, 0}};
    return make_eltwise(out, HPCT_CPU_PRIM_BACKWARD_DATA, spec, count, forward,
                        hpct_op_gradient_from_src(spec->kind) ? from_src : from_dst, 3);
}
