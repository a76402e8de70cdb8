/* The table of compression methods, and the uncompressed steps of the warm-up. */
#include "agent/strategy/gradients/compress.h"

#include "base/status.h"
#include "nn/run/state.h"

#include <math.h>
#include <stdlib.h>

static const hpct_grad_compressor_ops *const ways[] = {
    [HPCT_COMPRESS_NONE] = NULL,
    [HPCT_COMPRESS_POWERSGD] = &hpct_grad_powersgd,
    [HPCT_COMPRESS_TOP_K] = &hpct_grad_top_k,
};

hpct_status hpct_grad_compression_check(const hpct_compression *o)
{
    if (o->kind == HPCT_COMPRESS_POWERSGD && (o->rank < 1 || o->rank > HPCT_POWERSGD_MAX_RANK))
        return hpct_fail(HPCT_ERR_USAGE, "--compress powersgd: the rank is %d, it must be 1 to %d",
                         o->rank, HPCT_POWERSGD_MAX_RANK);
    if (o->kind == HPCT_COMPRESS_TOP_K && !(o->share > 0 && o->share <= 1))
        return hpct_fail(HPCT_ERR_USAGE,
                         "--compress topk: the share is %g, it must be more than 0 and at most 1",
                         o->share);
    return HPCT_OK;
}

static int64_t warmup_steps(const hpct_compression *options)
{
    if (options->warmup_steps == 0)
        return HPCT_COMPRESS_WARMUP_STEPS;
    return options->warmup_steps < 0 ? 0 : options->warmup_steps;
}

/* Leaves NULL if no layout is padded. */
static hpct_status find_padding(hpct_grad_compressor *c)
{
    size_t words = c->count / 32 + 1;
    bool any = false;
    c->padding = calloc(words, sizeof *c->padding);
    if (c->padding == NULL)
        return hpct_fail_memory(words * sizeof *c->padding);
    hpct_status status = hpct_model_mark_padding(c->model, c->padding, &any);
    if (!any) {
        free(c->padding);
        c->padding = NULL;
    }
    return status;
}

static hpct_status open_one(hpct_grad_compressor **out, hpct_context *context, hpct_model *model,
                            const hpct_compression *options)
{
    int num = hpct_model_matrices(model, NULL);
    size_t bytes = (size_t) num * sizeof(hpct_run_arena_matrix);
    hpct_run_arena_matrix *matrices = malloc(bytes > 0 ? bytes : 1);
    if (matrices == NULL)
        return hpct_fail_memory(bytes);
    hpct_model_matrices(model, matrices);
    hpct_grad_compressor_plan plan = {.comm = hpct_context_comm(context),
                                      .matrices = matrices,
                                      .num_matrices = num,
                                      .options = options};
    hpct_model_gradients(model, &plan.count);
    hpct_status status = ways[options->kind]->open(out, &plan);
    free(matrices);
    if (status != HPCT_OK)
        return status;
    (*out)->ops = ways[options->kind];
    (*out)->comm = plan.comm;
    (*out)->count = plan.count;
    (*out)->warmup = warmup_steps(options);
    (*out)->model = model;
    HPCT_TRY(find_padding(*out));
    bytes = (plan.count + HPCT_GRAD_COMPRESS_PIGGYBACK) * sizeof *(*out)->host;
    if (!hpct_model_on_device(model))
        return HPCT_OK;
    (*out)->host = hpct_model_take_host(model, bytes);
    return (*out)->host != NULL ? HPCT_OK : hpct_fail_memory(bytes);
}

hpct_status hpct_grad_compressor_open(hpct_grad_compressor **out, hpct_context *context,
                                      hpct_model *model, const hpct_compression *options)
{
    *out = NULL;
    if (options->kind == HPCT_COMPRESS_NONE || hpct_context_size(context) == 1)
        return HPCT_OK;
    hpct_status status = hpct_context_agree(context, open_one(out, context, model, options));
    if (status != HPCT_OK) {
        hpct_grad_compressor_close(*out);
        *out = NULL;
    }
    return status;
}

void hpct_grad_compressor_close(hpct_grad_compressor *compressor)
{
    if (compressor == NULL)
        return;
    if (compressor->host != NULL)
        hpct_model_return_host(compressor->model, compressor->host);
    free(compressor->padding);
    compressor->ops->close(compressor);
}

size_t hpct_grad_compressor_need(const hpct_compression *options, int ranks, size_t gradients)
{
    double all = (double) gradients;
    if (options->kind == HPCT_COMPRESS_NONE || ranks == 1)
        return 0;
    if (options->kind == HPCT_COMPRESS_TOP_K) /* the residual; pairs of this rank and of all */
        return gradients + (size_t) (all * options->share * 2 * (ranks + 1));
    /* the residual; factors, which are sent only if they are smaller; bits of the padding */
    return 2 * gradients + gradients / 32 + sizeof(uint32_t);
}

static void scale(float *values, size_t count, float factor)
{
    for (size_t i = 0; i < count; i++)
        values[i] *= factor;
}

/* For fp16 gradients, which have a variable loss scale. Values that are not finite would stay in
 * the residuals for ever: if one rank has any, no rank sends gradients or updates. */
static hpct_status reduce_scaled(hpct_grad_compressor *c, float *gradients, size_t piggyback)
{
    float factor = 1, infinite = hpct_run_are_finite(gradients, c->count) ? 0 : 1;
    HPCT_TRY(hpct_model_gradient_scale(c->model, &factor));
    HPCT_TRY(c->comm->ops->allreduce_sum(c->comm, &infinite, 1));
    if (infinite > 0) {
        gradients[0] = NAN;
        return c->comm->ops->allreduce_sum(c->comm, gradients + c->count, piggyback);
    }
    scale(gradients, c->count, 1 / factor);
    hpct_status status = c->ops->reduce(c, gradients, piggyback);
    scale(gradients, c->count, factor);
    return status;
}

hpct_status hpct_grad_compressor_reduce(hpct_grad_compressor *c, float *gradients, size_t piggyback)
{
    if (c->reduced++ < c->warmup)
        return c->comm->ops->allreduce_sum(c->comm, gradients, c->count + piggyback);
    if (c->host == NULL)
        return c->ops->reduce(c, gradients, piggyback);
    HPCT_TRY(hpct_model_read(c->model, c->host, gradients, c->count + piggyback));
    HPCT_TRY((hpct_model_scaling_bytes(c->model) > 0 ? reduce_scaled : c->ops->reduce)(c, c->host,
                                                                                       piggyback));
    return hpct_model_write(c->model, gradients, c->host, c->count + piggyback);
}

hpct_status hpct_grad_compressor_get_residue(const hpct_grad_compressor *c, int param,
                                             float *floats)
{
    return hpct_run_state_get_arena(c->model, param, c->residue, floats);
}

hpct_status hpct_grad_compressor_put_residue(const hpct_grad_compressor *c, int param,
                                             const float *floats)
{
    return hpct_run_state_put_arena(c->model, param, c->residue, floats);
}

double hpct_grad_compressor_bytes(const hpct_grad_compressor *c)
{
    double plain = (double) (c->count * sizeof(float)), compressed = (double) c->ops->bytes(c);
    int64_t before = c->reduced < c->warmup ? c->reduced : c->warmup;
    if (c->reduced == 0)
        return compressed;
    return compressed + (plain - compressed) * (double) before / (double) c->reduced;
}
