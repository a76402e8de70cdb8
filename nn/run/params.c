/* Parameters in Keras' layout, stored in the model or in an arena; initial values. */
#include "nn/run/run.h"

#include "base/status.h"
#include "nn/graph/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static hpct_op *op_of(const hpct_model *model, const hpct_graph_param *param)
{
    return model->run->nodes[param->node].op;
}

hpct_status hpct_run_param_get(const hpct_model *model, int index, float *keras)
{
    const hpct_graph_param *param = &model->params[index];
    if (model->run != NULL) {
        hpct_op *op = op_of(model, param);
        const float *arena = hpct_run_param(model, model->run, index);
        return hpct_op_export(op, param->index, arena, keras);
    }
    if (param->value == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "model %s has no weights yet: initialize or load them",
                         model->name);
    memcpy(keras, param->value, hpct_graph_shape_count(&param->shape) * sizeof(float));
    return HPCT_OK;
}

/* Stores in the model itself. */
static hpct_status keep(const hpct_graph_param *param, float **kept, const float *keras)
{
    size_t bytes = hpct_graph_shape_count(&param->shape) * sizeof *keras;
    if (*kept == NULL)
        *kept = malloc(bytes);
    if (*kept == NULL)
        return hpct_fail_memory(bytes);
    memcpy(*kept, keras, bytes);
    return HPCT_OK;
}

hpct_status hpct_run_param_set(hpct_model *model, int index, const float *keras)
{
    hpct_graph_param *param = &model->params[index];
    if (model->run != NULL) {
        hpct_op *op = op_of(model, param);
        float *arena = hpct_run_param(model, model->run, index);
        model->run->arenas.stale = true;
        return hpct_op_import(op, param->index, keras, arena);
    }
    return keep(param, &param->value, keras);
}

/* Address of a slot in its arena, or NULL if the model stores it. */
static float *slot_in_arena(const hpct_model *model, int index, int slot)
{
    const hpct_run *run = model->run;
    bool there = run != NULL && run->arenas.slot[slot] != NULL;
    return there ? run->arenas.slot[slot] + run->arenas.param_offsets[index] : NULL;
}

hpct_status hpct_run_param_get_slot(const hpct_model *model, int index, int slot, float *keras,
                                    bool *any)
{
    const hpct_graph_param *param = &model->params[index];
    const float *arena = slot_in_arena(model, index, slot);
    *any = arena != NULL || param->slot[slot] != NULL;
    if (arena != NULL) {
        hpct_op *op = op_of(model, param);
        return hpct_op_export(op, param->index, arena, keras);
    }
    if (*any)
        memcpy(keras, param->slot[slot], hpct_graph_shape_count(&param->shape) * sizeof *keras);
    return HPCT_OK;
}

hpct_status hpct_run_param_set_slot(hpct_model *model, int index, int slot, const float *keras)
{
    hpct_graph_param *param = &model->params[index];
    float *arena = slot_in_arena(model, index, slot);
    if (arena == NULL)
        return keep(param, &param->slot[slot], keras);
    hpct_op *op = op_of(model, param);
    return hpct_op_import(op, param->index, keras, arena);
}

/* Box and Muller, A note on the generation of random normal deviates, 1958. Each attempt uses its
 * own pair of numbers. */
static double draw_normal(uint64_t seed, uint32_t stream, uint64_t index, double limit)
{
    for (uint64_t attempt = 0;; attempt++) {
        uint64_t at = 2 * (index + (attempt << 32)); /* there are fewer than 2^31 elements */
        double radius = sqrt(-2 * log(1 - (double) hpct_graph_uniform(seed, stream, at)));
        double normal = radius * cos(2 * M_PI * (double) hpct_graph_uniform(seed, stream, at + 1));
        if (fabs(normal) <= limit)
            return normal;
    }
}

static void draw(const hpct_graph_param *param, uint32_t stream, uint64_t seed, float *values)
{
    size_t count = hpct_graph_shape_count(&param->shape);
    double first = param->init[0], second = param->init[1], limit = INFINITY;
    switch (param->initializer) {
    case HPCT_GRAPH_INIT_ZEROS:
    case HPCT_GRAPH_INIT_ONES:
    case HPCT_GRAPH_INIT_CONSTANT:
        for (size_t i = 0; i < count; i++)
            values[i] = param->initializer == HPCT_GRAPH_INIT_CONSTANT
                            ? (float) first
                            : (float) (param->initializer == HPCT_GRAPH_INIT_ONES);
        return;
    case HPCT_GRAPH_INIT_GLOROT_UNIFORM:
        /* Glorot and Bengio, Understanding the difficulty of training deep feedforward neural
         * networks, 2010; the fans of a kernel include its receptive field. */
        second = sqrt(6.0 / (param->fan_in + param->fan_out));
        hpct_graph_uniforms(seed, stream, count, values);
        for (size_t i = 0; i < count; i++)
            values[i] = (float) second * (2.0f * values[i] - 1.0f);
        return;
    case HPCT_GRAPH_INIT_UNIFORM:
        hpct_graph_uniforms(seed, stream, count, values);
        for (size_t i = 0; i < count; i++)
            values[i] = (float) (first + (second - first) * (double) values[i]);
        return;
    case HPCT_GRAPH_INIT_TRUNCATED_NORMAL:
        limit = 2;
        /* fall through */
    case HPCT_GRAPH_INIT_NORMAL:
        for (size_t i = 0; i < count; i++)
            values[i] = (float) (first + second * draw_normal(seed, stream, i, limit));
        return;
    }
}

hpct_status hpct_model_forget_slots(hpct_model *model)
{
    const hpct_run *run = model->run;
    hpct_model_drop_slots(model);
    if (run != NULL && run->arenas.scaling != NULL)
        HPCT_TRY(hpct_backend_memory_from_host(run->backend, run->arenas.scaling, &model->scaling,
                                               sizeof model->scaling));
    for (int k = 0; run != NULL && k < HPCT_GRAPH_NUM_SLOTS; k++) {
        if (run->arenas.slot[k] != NULL)
            HPCT_TRY(hpct_backend_memory_zero(run->backend, run->arenas.slot[k],
                                              run->arenas.floats * sizeof(float)));
    }
    return HPCT_OK;
}

hpct_status hpct_model_initialize(hpct_model *model, uint64_t seed)
{
    if (!model->compiled)
        return hpct_fail(HPCT_ERR_USAGE, "model %s must be compiled before it is initialized",
                         model->name);
    hpct_status status = HPCT_OK;
    for (int i = 0; i < model->num_params && status == HPCT_OK; i++) {
        size_t bytes = hpct_graph_shape_count(&model->params[i].shape) * sizeof(float);
        float *values = malloc(bytes);
        if (values == NULL)
            return hpct_fail_memory(bytes);
        draw(&model->params[i], (uint32_t) i, seed, values);
        status = hpct_run_param_set(model, i, values);
        free(values);
    }
    return status == HPCT_OK ? hpct_model_forget_slots(model) : status; /* from scratch */
}

/* ---- ImageNet's EfficientNet ---- */

static bool is_rescaled(const hpct_model *model, int tensor)
{
    for (int i = 0; i < model->num_nodes; i++) {
        hpct_op_kind kind = model->nodes[i].spec.kind;
        if ((kind == HPCT_OP_RESCALING || kind == HPCT_OP_NORMALIZATION) &&
            model->nodes[i].inputs[0] == tensor)
            return true;
    }
    return false;
}

bool hpct_model_lacks_rescaling(const hpct_model *model)
{
    static const float means[] = {0.485F, 0.456F, 0.406F};
    for (int i = 0; i < model->num_nodes; i++) {
        const hpct_graph_node *node = &model->nodes[i];
        float got[3];
        if (node->spec.kind != HPCT_OP_NORMALIZATION || node->spec.line.given ||
            node->spec.line.channels != 3 ||
            hpct_run_param_get(model, node->first_param, got) != HPCT_OK)
            continue;
        bool same = true;
        for (int c = 0; c < 3; c++)
            same = same && fabsf(got[c] - means[c]) < 1e-3F;
        if (same && !is_rescaled(model, node->output))
            return true;
    }
    return false;
}
