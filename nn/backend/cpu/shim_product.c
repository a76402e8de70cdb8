/* Matrix products by oneDNN: matmul primitives, and dnnl_sgemm. */
#include "nn/backend/cpu/dnnl.h"

#include <string.h>

static dnnl_status_t describe_product(dnnl_primitive_desc_t *out, const md *a, const md *b,
                                      const md *bias, const md *c, dnnl_primitive_attr_t attributes)
{
#if V3
    return dnnl_matmul_primitive_desc_create(out, hpct_cpu_dnnl_engine(), *a, *b,
                                             bias != NULL ? *bias : NULL, *c, attributes);
#else
    dnnl_matmul_desc_t op;
    dnnl_status_t status = dnnl_matmul_desc_init(&op, a, b, bias, c);
    return status == dnnl_success
               ? dnnl_primitive_desc_create(out, &op, attributes, hpct_cpu_dnnl_engine(), NULL)
               : status;
#endif
}

hpct_status hpct_cpu_shim_product(hpct_cpu_prim **out, const hpct_cpu_product *p)
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
    dnnl_data_type_t type = p->type == HPCT_BF16 ? dnnl_bf16 : dnnl_f32;
    dnnl_status_t made = hpct_cpu_md_make(&a, 2, sizes_a, type, p->trans_a ? dnnl_ba : dnnl_ab);
    if (made == dnnl_success)
        made = hpct_cpu_md_make(&b, 2, sizes_b, type, p->trans_b ? dnnl_ba : dnnl_ab);
    if (made == dnnl_success)
        made = hpct_cpu_md_make(&c, 2, sizes_c, dnnl_f32, dnnl_ab);
    if (made == dnnl_success && p->bias)
        made = hpct_cpu_md_make(&bias, 2, sizes_bias, dnnl_f32, dnnl_ab);
    hpct_status status = hpct_cpu_dnnl_check(made, "describing memory");
    if (status == HPCT_OK)
        status = hpct_cpu_dnnl_check(hpct_cpu_dnnl_attributes(&attributes, p->relu, p->add),
                                     "setting attributes");
    if (status == HPCT_OK)
        status = hpct_cpu_dnnl_check(
            describe_product(&desc, &a, &b, p->bias ? &bias : NULL, &c, attributes),
            "describing a matrix product");
    if (status == HPCT_OK)
        status = hpct_cpu_prim_finish(out, desc, args, p->bias ? 4 : 3);
    dnnl_primitive_attr_destroy(attributes);
    hpct_cpu_md_free(&a);
    hpct_cpu_md_free(&b);
    hpct_cpu_md_free(&c);
    hpct_cpu_md_free(&bias);
    return status;
}

hpct_status hpct_cpu_shim_gemm(const hpct_cpu_gemm *g)
{
    return hpct_cpu_dnnl_check(dnnl_sgemm(g->trans_a, g->trans_b, (dnnl_dim_t) g->m,
                                          (dnnl_dim_t) g->n, (dnnl_dim_t) g->k, g->alpha, g->a,
                                          (dnnl_dim_t) g->lda, g->b, (dnnl_dim_t) g->ldb, g->beta,
                                          g->c, (dnnl_dim_t) g->ldc),
                               "dnnl_sgemm");
}
