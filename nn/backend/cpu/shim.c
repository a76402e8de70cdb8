/* oneDNN's engine, memory descriptors and kernel layouts; creation and execution of primitives. */
#include "base/debug.h"
#include "base/fnv.h"
#include "base/status.h"
#include "nn/backend/cpu/dnnl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct hpct_cpu_kernel_layout {
    md desc;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void open_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) == dnnl_success)
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
}

dnnl_engine_t hpct_cpu_dnnl_engine(void)
{
    pthread_once(&once, open_engine);
    return stream != NULL ? engine : NULL;
}

hpct_status hpct_cpu_dnnl_check(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return HPCT_OK;
    if (status == dnnl_out_of_memory)
        return hpct_fail_memory(0);
    return hpct_fail(HPCT_ERR_INTERNAL, "oneDNN: %s failed with status %d", what, (int) status);
}

/* ---- memory descriptors ---- */

dnnl_status_t hpct_cpu_md_make(md *out, int rank, const dnnl_dim_t *sizes, dnnl_data_type_t type,
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

static dnnl_status_t md_copy(md *out, md_ref from)
{
#if V3
    return dnnl_memory_desc_clone(out, from);
#else
    *out = *from;
    return dnnl_success;
#endif
}

void hpct_cpu_md_free(md *desc)
{
#if V3
    if (*desc != NULL)
        dnnl_memory_desc_destroy(*desc);
    *desc = NULL;
#else
    (void) desc;
#endif
}

dnnl_status_t hpct_cpu_md_make_kernel(md *out, const hpct_graph_window *w, dnnl_data_type_t type,
                                      bool plain)
{
    const dnnl_dim_t sizes[] = {w->groups, w->out_c / w->groups, w->in_c / w->groups, w->kernel_h,
                                w->kernel_w};
    if (w->groups > 1)
        return hpct_cpu_md_make(out, 5, sizes, type, plain ? dnnl_hwigo : dnnl_format_tag_any);
    return hpct_cpu_md_make(out, 4, sizes + 1, type, plain ? dnnl_hwio : dnnl_format_tag_any);
}

/* ---- layouts of kernels ---- */

static hpct_status layout_of(hpct_cpu_kernel_layout **out, md_ref desc)
{
    hpct_cpu_kernel_layout *layout = calloc(1, sizeof *layout);
    if (layout == NULL)
        return hpct_fail_memory(sizeof *layout);
    hpct_status status = hpct_cpu_dnnl_check(md_copy(&layout->desc, desc), "copying a descriptor");
    if (status == HPCT_OK)
        *out = layout;
    else
        free(layout);
    return status;
}

hpct_status hpct_cpu_kernel_layout_plain(hpct_cpu_kernel_layout **out, const hpct_graph_window *w)
{
    md desc;
    HPCT_TRY(hpct_cpu_dnnl_check(hpct_cpu_md_make_kernel(&desc, w, dnnl_f32, true),
                                 "describing memory"));
    hpct_status status = layout_of(out, MD(desc));
    hpct_cpu_md_free(&desc);
    return status;
}

void hpct_cpu_kernel_layout_free(hpct_cpu_kernel_layout *layout)
{
    if (layout == NULL)
        return;
    hpct_cpu_md_free(&layout->desc);
    free(layout);
}

bool hpct_cpu_kernel_layout_equal(const hpct_cpu_kernel_layout *a, const hpct_cpu_kernel_layout *b)
{
    return dnnl_memory_desc_equal(MD(a->desc), MD(b->desc)) != 0;
}

size_t hpct_cpu_kernel_layout_bytes(const hpct_cpu_kernel_layout *layout)
{
    return dnnl_memory_desc_get_size(MD(layout->desc));
}

uint64_t hpct_cpu_kernel_layout_fingerprint(const hpct_cpu_kernel_layout *layout)
{
    uint64_t hash = HPCT_FNV_START;
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
    hash = hpct_fnv(hash, padded, (size_t) rank * sizeof *padded);
    hash = hpct_fnv(hash, strides, (size_t) rank * sizeof *strides);
    hash = hpct_fnv(hash, sizes, (size_t) blocks * sizeof *sizes);
    return hpct_fnv(hash, axes, (size_t) blocks * sizeof *axes);
}

/* ---- primitives ---- */

void hpct_cpu_prim_free(hpct_cpu_prim *prim)
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

size_t hpct_cpu_prim_scratch_bytes(const hpct_cpu_prim *prim)
{
    return prim->scratch_bytes;
}

hpct_status hpct_cpu_prim_kernel_layout(const hpct_cpu_prim *prim, hpct_cpu_kernel_layout **out)
{
    return layout_of(out, prim->kernel);
}

static dnnl_status_t add_memory(hpct_cpu_prim *prim, int slot, int arg, md_ref desc)
{
    prim->args[slot].arg = arg;
    return dnnl_memory_create(&prim->args[slot].memory, desc, hpct_cpu_dnnl_engine(),
                              DNNL_MEMORY_NONE);
}

dnnl_status_t hpct_cpu_dnnl_attributes(dnnl_primitive_attr_t *out, bool relu, bool add)
{
    dnnl_post_ops_t post = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(out);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) /* whatever ONEDNN_DEFAULT_FPMATH_MODE says: fp32 is fp32 */
        status = dnnl_primitive_attr_set_fpmath_mode(*out, dnnl_fpmath_mode_strict);
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

hpct_status hpct_cpu_prim_finish(hpct_cpu_prim **out, dnnl_primitive_desc_t desc,
                                 const wanted_arg *wanted, int num_args)
{
    hpct_cpu_prim *prim = calloc(1, sizeof *prim);
    if (prim == NULL) {
        dnnl_primitive_desc_destroy(desc);
        return hpct_fail_memory(sizeof *prim);
    }
    prim->desc = desc;
    prim->num_args = num_args;
    const char *implementation = "?";
    if (hpct_debugs(HPCT_DEBUG_OPS))
        dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *) &implementation);
    hpct_debug(
        HPCT_DEBUG_OPS, "    oneDNN's %s, %zu bytes of scratch", implementation,
        dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0)));
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
        hpct_cpu_prim_free(prim);
        return hpct_cpu_dnnl_check(status, "creating a primitive");
    }
    *out = prim;
    return HPCT_OK;
}

hpct_status hpct_cpu_prim_execute(hpct_cpu_prim *prim, void *scratch, void *const args[])
{
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < prim->num_args + 1 && status == dnnl_success; i++) {
        void *wanted = i < prim->num_args ? args[i] : scratch, *set = NULL;
        status = dnnl_memory_get_data_handle(prim->args[i].memory, &set);
        if (status == dnnl_success && set != wanted) /* setting is slower than comparing */
            status = dnnl_memory_set_data_handle(prim->args[i].memory, wanted);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_execute(prim->primitive, stream, prim->num_args + 1, prim->args);
    if (status == dnnl_success)
        status = dnnl_stream_wait(stream);
    return status == dnnl_success ? HPCT_OK : hpct_cpu_dnnl_check(status, "executing a primitive");
}

hpct_status hpct_cpu_shim_reorder(hpct_cpu_prim **out, const hpct_cpu_kernel_layout *from,
                                  const hpct_cpu_kernel_layout *to)
{
    static const wanted_arg args[] = {{DNNL_ARG_FROM, dnnl_query_src_md, 0},
                                      {DNNL_ARG_TO, dnnl_query_dst_md, 0}};
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t desc = NULL;
    hpct_status status = hpct_cpu_dnnl_check(hpct_cpu_dnnl_attributes(&attributes, false, false),
                                             "setting attributes");
    if (status == HPCT_OK)
        status = hpct_cpu_dnnl_check(
            dnnl_reorder_primitive_desc_create(&desc, MD(from->desc), hpct_cpu_dnnl_engine(),
                                               MD(to->desc), hpct_cpu_dnnl_engine(), attributes),
            "describing a reorder");
    if (status == HPCT_OK)
        status = hpct_cpu_prim_finish(out, desc, args, 2);
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

bool hpct_cpu_shim_has_bf16(void)
{
    /* an ISA's bits include those of lower ones */
    const unsigned wanted = (unsigned) dnnl_cpu_isa_avx512_core_bf16;
    return ((unsigned) dnnl_get_effective_cpu_isa() & wanted) == wanted;
}

static bool has_isa(dnnl_cpu_isa_t isa)
{
    return (dnnl_get_effective_cpu_isa() & isa) == isa;
}

int hpct_cpu_shim_lanes(void)
{
    return has_isa(dnnl_cpu_isa_avx512_core) ? 16 : has_isa(dnnl_cpu_isa_avx2) ? 8 : 4;
}

bool hpct_cpu_shim_prefers_blocks(int cells)
{
    return has_isa(cells > 1 ? dnnl_cpu_isa_avx512_core_amx : dnnl_cpu_isa_avx512_core);
}

hpct_cpu_onednn hpct_cpu_shim_library(void)
{
    const dnnl_version_t *v = dnnl_version();
    return (hpct_cpu_onednn){.version = 10000 * v->major + 100 * v->minor + v->patch,
                             .amx = has_isa(dnnl_cpu_isa_avx512_core_amx)};
}

const char *hpct_cpu_shim_version(void)
{
    static _Thread_local char text[48];
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
    return text;
}
