/* nn/backend/cpu/loops_body.h - the loops of loops.h, included once per instruction set by
 * base/variants.h. Vectors are GCC's generic ones; each function must carry the target attribute
 * itself, as generic vectors are lowered by the function that contains them. The parts use the
 * names below, and undefine those that they define. */

#define LANES HPCT_VARIANT_LANES

/* Vectors; the ...u types are for unaligned loads and stores. */
typedef float HPCT_VARIANT(vec) __attribute__((vector_size(4 * LANES)));
typedef float HPCT_VARIANT(vecu) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int HPCT_VARIANT(mask) __attribute__((vector_size(4 * LANES)));
typedef int8_t HPCT_VARIANT(bytes) __attribute__((vector_size(LANES)));
typedef int8_t HPCT_VARIANT(bytesu) __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef uint32_t HPCT_VARIANT(words) __attribute__((vector_size(4 * LANES)));
typedef uint64_t HPCT_VARIANT(pairs) __attribute__((vector_size(4 * LANES)));
typedef double HPCT_VARIANT(wide) __attribute__((vector_size(8 * LANES)));
#define vec HPCT_VARIANT(vec)
#define words HPCT_VARIANT(words)
#define pairs HPCT_VARIANT(pairs)
#define LOAD(p) (*(const HPCT_VARIANT(vecu) *) (p))
#define STORE(p, v) (*(HPCT_VARIANT(vecu) *) (p) = (v))
/* v where the mask m is set, else zeros; a where m is set, else b. */
#define MASKED(v, m) ((vec) ((HPCT_VARIANT(mask))(v) & (m)))
#define SELECT(m, a, b) ((vec) (((HPCT_VARIANT(mask))(a) & (m)) | ((HPCT_VARIANT(mask))(b) & ~(m))))

/* A loop with constant count, unrolled so that arrays become registers. */
#define EACH(i, n) HPCT_UNROLL for (int i = 0; i < (n); i++)

#include "nn/backend/cpu/loops_bf16.h"
#include "nn/backend/cpu/loops_direct.h"
#include "nn/backend/cpu/loops_dropout.h"
#include "nn/backend/cpu/loops_elements.h"
#include "nn/backend/cpu/loops_group.h"
#include "nn/backend/cpu/loops_norm.h"
#include "nn/backend/cpu/loops_pool.h"
#include "nn/backend/cpu/loops_update.h"

static const hpct_cpu_loops HPCT_VARIANT(loops) = {
    .name = HPCT_VARIANT_NAME,
    .lanes = LANES,
    .supported = HPCT_VARIANT(supported),
    .direct_forward = HPCT_VARIANT(direct_forward),
    .direct_pool = HPCT_VARIANT(direct_pool),
    .direct_mask = HPCT_VARIANT(direct_mask),
    .direct_unpool = HPCT_VARIANT(direct_unpool),
    .direct_backward = HPCT_VARIANT(direct_backward),
    .bias_transposed = HPCT_VARIANT(bias_transposed),
    .mask_and_sum = HPCT_VARIANT(mask_and_sum),
    .relu_forward = HPCT_VARIANT(relu_forward),
    .relu_backward = HPCT_VARIANT(relu_backward),
    .leaky_forward = HPCT_VARIANT(leaky_forward),
    .leaky_backward = HPCT_VARIANT(leaky_backward),
    .hard_sigmoid_forward = HPCT_VARIANT(hard_sigmoid_forward),
    .hard_sigmoid_backward = HPCT_VARIANT(hard_sigmoid_backward),
    .rescaling = HPCT_VARIANT(rescaling),
    .to_bf16 = HPCT_VARIANT(to_bf16),
    .diff_to_bf16 = HPCT_VARIANT(diff_to_bf16),
    .dropout = HPCT_VARIANT(dropout),
    .add = HPCT_VARIANT(add),
    .scale = HPCT_VARIANT(scale),
    .sum = HPCT_VARIANT(sum),
    .product = HPCT_VARIANT(product),
    .column_moments = HPCT_VARIANT(column_moments),
    .normalize = HPCT_VARIANT(normalize),
    .norm_sums = HPCT_VARIANT(norm_sums),
    .norm_backward = HPCT_VARIANT(norm_backward),
    .group_moments = HPCT_VARIANT(group_moments),
    .group_normalize = HPCT_VARIANT(group_normalize),
    .group_sums = HPCT_VARIANT(group_sums),
    .group_backward = HPCT_VARIANT(group_backward),
    .max_pool = HPCT_VARIANT(max_pool),
    .max_pool_backward = HPCT_VARIANT(max_pool_backward),
    .sgd = HPCT_VARIANT(sgd),
    .adam = HPCT_VARIANT(adam),
    .lars = HPCT_VARIANT(lars),
    .lamb = HPCT_VARIANT(lamb),
    .rmsprop = HPCT_VARIANT(rmsprop),
    .norms = HPCT_VARIANT(norms),
    .moments = HPCT_VARIANT(moments),
};

#undef LANES
#undef SELECT
#undef vec
#undef words
#undef pairs
#undef LOAD
#undef STORE
#undef MASKED
#undef EACH
