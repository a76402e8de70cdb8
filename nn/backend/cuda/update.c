/* The optimizer's update: groups of ranges, preceded by sums for LARS, LAMB and clipping by norms.
 * All on the device; sums of ranges split among replicas are all-reduced in device memory. */
#include "nn/backend/cuda/update.h"
#include "nn/backend/cuda/ops.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

#define UNIT HPCT_BACKEND_ARENA_ALIGN /* floats per unit of the table */

/* ---- groups of ranges ---- */

static uint32_t units_of(size_t floats)
{
    return (uint32_t) (floats / UNIT);
}

/* Index of a range's factor in the table, to which it is added; false if there is no room. */
static bool put_factor(hpct_cuda_update_table *t, int *num, const hpct_backend_update_range *range,
                       int i)
{
    float factor = range->rate_factor > 0 ? range->rate_factor : 1;
    int k = 0;
    while (k < *num && t->factors[k] != factor)
        k++;
    if (k == HPCT_CUDA_UPDATE_FACTORS)
        return false;
    *num += k == *num;
    t->factors[k] = factor;
    t->factor[i] = (uint8_t) k;
    return true;
}

/* Ranges from `first` on, as many as there is room for; chunks are enlarged if there would be too
 * many. */
static hpct_cuda_update_table table_of(const hpct_backend_update_call *call, int first)
{
    hpct_cuda_update_table t = {.chunk = HPCT_CUDA_UPDATE_CHUNK / UNIT};
    const hpct_backend_update_range *ranges = call->ranges + first;
    int left = call->num_ranges - first, factors = 0;
    uint64_t units = 0;
    while (t.num_ranges < left && t.num_ranges < HPCT_CUDA_UPDATE_RANGES &&
           put_factor(&t, &factors, &ranges[t.num_ranges], t.num_ranges))
        t.num_ranges++;
    for (int i = 0; i < t.num_ranges; i++)
        units += units_of(ranges[i].count);
    uint64_t even = (units + HPCT_CUDA_UPDATE_CHUNKS - 1) / HPCT_CUDA_UPDATE_CHUNKS;
    if (even > t.chunk)
        t.chunk = (uint32_t) even;
    for (int i = 0; i < t.num_ranges; i++) {
        t.offset[i] = units_of(ranges[i].offset);
        t.count[i] = units_of(ranges[i].count);
        t.adapt[i] = ranges[i].adapt;
        t.first_chunk[i + 1] = t.first_chunk[i] + (t.count[i] + t.chunk - 1) / t.chunk;
    }
    return t;
}

/* ---- one group ---- */

typedef struct group {
    const hpct_backend_update_call *call;
    hpct_cuda_update_table table;
    hpct_cuda_update_args args;
    int first; /* its first range */
} group;

hpct_cuda_update_args hpct_cuda_update_args_of(const hpct_backend_update_call *call)
{
    hpct_cuda_update_args args = {
        .nesterov = call->nesterov,
        .rate = call->learning_rate,
        .decay = call->learning_rate * call->weight_decay,
        .momentum = call->momentum,
        .epsilon = call->epsilon,
        .trust = call->trust_coefficient,
        .mix_1 = call->mix_1,
        .mix_2 = call->mix_2,
        .grad_scale = call->grad_scale,
        .clipvalue = call->clipvalue,
        .param = call->param,
        .slot = {call->slot[0], call->slot[1], call->slot[2]},
        .grad = call->grad,
        .scaling = call->scaling,
    };
    if (call->kind != HPCT_SGD && call->kind != HPCT_LARS &&
        call->kind != HPCT_RMSPROP) { /* RMSprop has no bias correction */
        args.bias_1 = call->bias_1;
        args.bias_2 = call->bias_2;
    }
    switch (call->kind) {
    case HPCT_SGD:
        args.kind = HPCT_CUDA_UPDATE_SGD;
        break;
    case HPCT_ADAM:
    case HPCT_ADAMW:
        args.kind = HPCT_CUDA_UPDATE_ADAM;
        args.rate *= sqrtf(call->bias_2) / call->bias_1;
        break;
    case HPCT_LARS:
        args.kind = HPCT_CUDA_UPDATE_LARS;
        args.decay = call->weight_decay;
        break;
    case HPCT_LAMB:
        args.kind = HPCT_CUDA_UPDATE_LAMB_MOMENTS;
        break;
    case HPCT_RMSPROP:
        args.kind = HPCT_CUDA_UPDATE_RMSPROP;
        break;
    case HPCT_OPTIMIZER_KINDS:
        break;
    }
    return args;
}

static group group_of(const hpct_backend_update_call *call, int first)
{
    group g = {call, table_of(call, first), hpct_cuda_update_args_of(call), first};
    if (hpct_cuda_gpu.recording) {
        g.args.now = hpct_cuda_gpu.now;
        g.args.rate = g.args.decay = g.args.bias_1 = g.args.bias_2 = 0;
    }
    return g;
}

static hpct_status update(const group *g)
{
    return hpct_cuda_check(hpct_cuda_launch_update(&g->table, &g->args), "update");
}

static hpct_status settle(const group *g, hpct_cuda_update_settle what, float limit, bool first)
{
    return hpct_cuda_check(hpct_cuda_launch_update_settle(&g->table, &g->args, what, limit, first),
                           "update of norms");
}

/* All-reduces sums of split ranges. */
static hpct_status share(const group *g)
{
    float *sums = NULL;
    for (int i = 0; g->call->add_up != NULL && i < g->table.num_ranges; i++) {
        if (!g->call->ranges[g->first + i].split)
            continue;
        HPCT_TRY(sums == NULL ? HPCT_CUDA(hpct_cuda_update_sums(&sums)) : HPCT_OK);
        HPCT_TRY(g->call->add_up(g->call->argument, sums + 2 * i, 2));
        HPCT_TRY(HPCT_CUDA(hpct_cuda_launch_update_take(i, 1)));
    }
    return HPCT_OK;
}

static hpct_status own_norms(const group *g, bool scaled)
{
    return hpct_cuda_check(hpct_cuda_launch_update_norms(&g->table, &g->args, scaled), "norms");
}

static hpct_status norms(const group *g, bool scaled)
{
    HPCT_TRY(own_norms(g, scaled));
    return share(g);
}

/* Whether a range's update depends on norms. */
static bool needs_norms(const hpct_backend_update_call *call)
{
    return call->global_clipnorm > 0 || call->clipnorm > 0 || call->kind == HPCT_LARS ||
           call->kind == HPCT_LAMB;
}

/* Computes the gradient scale of the group's ranges, from norms of unscaled gradients. */
static hpct_status settle_scale(group *g)
{
    const hpct_backend_update_call *call = g->call;
    HPCT_TRY(settle(g,
                    call->global_clipnorm > 0 ? HPCT_CUDA_SETTLE_CLIP_ALL : HPCT_CUDA_SETTLE_START,
                    call->global_clipnorm, false));
    if (call->clipnorm > 0) {
        HPCT_TRY(norms(g, false));
        HPCT_TRY(settle(g, HPCT_CUDA_SETTLE_CLIP_RANGE, call->clipnorm, false));
    }
    g->args.settled = true;
    return HPCT_OK;
}

static hpct_status lars(const group *g)
{
    HPCT_TRY(norms(g, true));
    HPCT_TRY(settle(g, HPCT_CUDA_SETTLE_LARS, 0, false));
    return update(g);
}

static hpct_status lamb(group *g)
{
    HPCT_TRY(update(g));
    HPCT_TRY(share(g));
    HPCT_TRY(settle(g, HPCT_CUDA_SETTLE_LAMB, 0, false));
    g->args.kind = HPCT_CUDA_UPDATE_LAMB_APPLY;
    return update(g);
}

static hpct_status update_group(group *g)
{
    HPCT_TRY(needs_norms(g->call) ? settle_scale(g) : HPCT_OK);
    return g->call->kind == HPCT_LARS ? lars(g) : g->call->kind == HPCT_LAMB ? lamb(g) : update(g);
}

/* The norm of the whole gradient, kept on the device; to detect non-finite gradients, each replica
 * measures its own. */
static hpct_status measure_all(const hpct_backend_update_call *call)
{
    for (int i = 0; i < call->num_ranges;) {
        group g = group_of(call, i);
        HPCT_TRY(call->global_clipnorm > 0 ? norms(&g, false) : own_norms(&g, false));
        HPCT_TRY(settle(&g, HPCT_CUDA_SETTLE_COUNT_ALL, 0, i == 0));
        i += g.table.num_ranges;
    }
    return HPCT_OK;
}

/* Detects non-finite gradients; a replica without ranges has none, and takes part in the
 * all-reduce. */
static hpct_status find_infinite(const hpct_backend_update_call *call)
{
    HPCT_TRY(hpct_cuda_check(hpct_cuda_launch_scaling_judge(call->scaling, call->num_ranges > 0),
                             "loss scaling"));
    if (call->judge == NULL)
        return HPCT_OK;
    return call->judge(call->argument, &call->scaling->infinite, 1);
}

static hpct_status move_scale(const hpct_backend_update_call *call)
{
    return hpct_cuda_check(hpct_cuda_launch_scaling_move(call->scaling, 1 - (double) call->mix_1,
                                                         1 - (double) call->mix_2),
                           "loss scaling");
}

hpct_status hpct_cuda_update(const hpct_backend_update_call *call)
{
    bool scaled = call->scaling != NULL;
    HPCT_TRY(scaled || call->global_clipnorm > 0 ? measure_all(call) : HPCT_OK);
    if (scaled)
        HPCT_TRY(find_infinite(call));
    for (int i = 0; i < call->num_ranges;) {
        group g = group_of(call, i);
        HPCT_TRY(update_group(&g));
        i += g.table.num_ranges;
    }
    return scaled ? move_scale(call) : HPCT_OK;
}

/* ---- arenas and activations ---- */

/* Fills the table for one launch; returns the number of copies. */
static int fill_table(hpct_cuda_copy_table *t, const hpct_backend_param_copy *copies, int num)
{
    t->num = num < HPCT_CUDA_COPY_MOST ? num : HPCT_CUDA_COPY_MOST;
    t->first_chunk[0] = 0;
    for (int i = 0; i < t->num; i++) {
        size_t chunks = (copies[i].count + HPCT_CUDA_COPY_CHUNK - 1) / HPCT_CUDA_COPY_CHUNK;
        t->from[i] = copies[i].from;
        t->to[i] = copies[i].to;
        t->count[i] = (uint32_t) copies[i].count;
        t->first_chunk[i + 1] = t->first_chunk[i] + (uint32_t) chunks;
    }
    return t->num;
}

hpct_status hpct_cuda_copy_params(hpct_precision values, const hpct_backend_param_copy *copies,
                                  int num)
{
    hpct_cuda_copy_table table;
    for (int taken; num > 0; copies += taken, num -= taken) {
        taken = fill_table(&table, copies, num);
        HPCT_TRY(hpct_cuda_check(hpct_cuda_launch_copies(values, &table), "copies"));
    }
    return HPCT_OK;
}

hpct_status hpct_cuda_accumulate(size_t count, const float *src, float *dst, bool first)
{
    return hpct_cuda_check(hpct_cuda_launch_rescale(HPCT_FP32, count, 1, 0, src, !first, dst),
                           "accumulate");
}

hpct_status hpct_cuda_add_values(hpct_precision values, size_t count, const float *src, float *dst)
{
    return hpct_cuda_check(hpct_cuda_launch_rescale(values, count, 1, 0, src, true, dst),
                           "add_values");
}

hpct_status hpct_cuda_scale(size_t count, float factor, float *dst)
{
    return hpct_cuda_check(hpct_cuda_launch_rescale(HPCT_FP32, count, factor, 0, dst, false, dst),
                           "scale");
}

hpct_status hpct_cuda_to_values(hpct_precision values, size_t count, const float *from, float *to)
{
    return hpct_cuda_check(
        hpct_cuda_launch_cast(hpct_cuda_gpu.stream, count, HPCT_FP32, from, values, to),
        "to_values");
}

hpct_status hpct_cuda_from_values(hpct_precision values, size_t count, const float *from, float *to)
{
    return hpct_cuda_check(
        hpct_cuda_launch_cast(hpct_cuda_gpu.stream, count, values, from, HPCT_FP32, to),
        "from_values");
}
