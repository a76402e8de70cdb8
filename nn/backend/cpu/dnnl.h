/* nn/backend/cpu/dnnl.h - shared by the implementation of nn/backend/cpu/shim.h: a common interface
 * to oneDNN 2 and 3, and creation of primitives. The versions differ: memory descriptors are a
 * struct in 2 and a handle in 3, and 2 needs operation descriptors to create a primitive
 * descriptor. */
#ifndef HPCT_NN_BACKEND_CPU_DNNL_H
#define HPCT_NN_BACKEND_CPU_DNNL_H

#include "nn/backend/cpu/shim.h"

#include <oneapi/dnnl/dnnl.h>

#define V3 (DNNL_VERSION_MAJOR >= 3)

/* A memory descriptor, by value in 2, an owned handle in 3. */
typedef dnnl_memory_desc_t md;
#if V3
typedef const_dnnl_memory_desc_t md_ref; /* type of parameters */
#define MD(m) (m)
#else
typedef const dnnl_memory_desc_t *md_ref;
#define MD(m) (&(m))
#endif

struct hpct_cpu_prim {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    md_ref kernel; /* owned by desc; NULL without a kernel */
    size_t scratch_bytes;
    int num_args; /* without the scratchpad, which is the last of `args` */
    dnnl_exec_arg_t args[HPCT_CPU_PRIM_MAX_ARGS + 1];
};

/* The CPU engine; NULL if oneDNN cannot create it. */
dnnl_engine_t hpct_cpu_dnnl_engine(void);

hpct_status hpct_cpu_dnnl_check(dnnl_status_t status, const char *what);

dnnl_status_t hpct_cpu_md_make(md *out, int rank, const dnnl_dim_t *sizes, dnnl_data_type_t type,
                               dnnl_format_tag_t tag);
void hpct_cpu_md_free(md *desc);
/* Descriptor of a convolution's kernel; the group dimension comes first. */
dnnl_status_t hpct_cpu_md_make_kernel(md *out, const hpct_graph_window *w, dnnl_data_type_t type,
                                      bool plain);

typedef enum hpct_cpu_prim_kind {
    HPCT_CPU_PRIM_FORWARD,
    HPCT_CPU_PRIM_INFERENCE,
    HPCT_CPU_PRIM_BACKWARD_DATA,
    HPCT_CPU_PRIM_BACKWARD_WEIGHTS
} hpct_cpu_prim_kind;

static inline dnnl_prop_kind_t hpct_cpu_prop_kind(hpct_cpu_prim_kind what)
{
    return what == HPCT_CPU_PRIM_FORWARD ? dnnl_forward_training : dnnl_forward_inference;
}

/* An argument and the query for the memory descriptor that the primitive chose. */
typedef struct wanted_arg {
    int arg;
    dnnl_query_t query;
    int index; /* of the query */
} wanted_arg;

/* Attributes: user-managed scratchpad and, optionally, ReLU as post-op, or accumulation into
 * dst. */
dnnl_status_t hpct_cpu_dnnl_attributes(dnnl_primitive_attr_t *out, bool relu, bool add);

/* Takes ownership of `desc` and creates the primitive, its memory objects and scratchpad. */
hpct_status hpct_cpu_prim_finish(hpct_cpu_prim **out, dnnl_primitive_desc_t desc,
                                 const wanted_arg *wanted, int num_args);

#endif
