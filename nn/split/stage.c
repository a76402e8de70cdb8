/* A pipeline stage: the whole model's graph reduced to a range of operations, built once, with
 * several blocks of activations that it switches between. */
#include "nn/split/stage.h"

#include "base/status.h"
#include "nn/run/clone.h"
#include "nn/run/resident.h"
#include "nn/run/run.h"

#include <stdlib.h>
#include <string.h>

/* Tensors received from or sent to a neighbour stage. */
typedef struct border {
    int num;
    int *tensors;
    bool *requires_grad;
} border;

/* State of a micro-batch between forward and backward. */
typedef struct place {
    char *block; /* the first place has the build's own block */
    hpct_run_stage stage;
} place;

struct hpct_split_stage {
    hpct_model *model;
    border entry, exit; /* empty for the first and the last stage */
    bool last;
    place *places; /* [num_places] */
    int num_places;
    float *sum; /* [arena_floats], sum over the micro-batches so far */
    /* of the whole batch: */
    const float *input;
    const int32_t *labels;
    const float *targets; /* NULL: labels are used */
    const hpct_run_resident
        *resident;           /* data set in device memory, instead of input and labels, and */
    const hpct_drawn *drawn; /* its selected samples */
    int64_t first_sample;
};

/* ---- the graph ---- */

static hpct_status border_make(border *b, const hpct_model *whole, int node)
{
    size_t tensors = (size_t) whole->num_tensors;
    bool *requires_grad = calloc(tensors, sizeof *requires_grad);
    b->tensors = calloc(tensors, sizeof *b->tensors);
    b->requires_grad = calloc(tensors, sizeof *b->requires_grad);
    bool all = requires_grad != NULL && b->tensors != NULL && b->requires_grad != NULL;
    if (all) {
        hpct_split_cut_requires_grad(whole, requires_grad);
        b->num = hpct_split_cut_tensors(whole, node, b->tensors);
        for (int k = 0; k < b->num; k++)
            b->requires_grad[k] = requires_grad[b->tensors[k]];
    }
    free(requires_grad);
    return all ? HPCT_OK : hpct_fail_memory(tensors * sizeof *b->tensors);
}

void hpct_split_stage_parameters(const hpct_model *whole, const hpct_split_cut *cut, int stage,
                                 int *first, int *count)
{
    *first = *count = 0;
    for (int i = 0; i < cut->first[stage + 1]; i++)
        *(i < cut->first[stage] ? first : count) += whole->nodes[i].num_params;
}

/* Parameters are in the order of their nodes. */
static void keep_range(hpct_model *model, const hpct_split_cut *cut, int stage)
{
    int node = cut->first[stage], first, count;
    hpct_split_stage_parameters(model, cut, stage, &first, &count);
    model->num_nodes = cut->first[stage + 1] - node;
    model->num_params = count;
    memmove(model->nodes, model->nodes + node, (size_t) model->num_nodes * sizeof *model->nodes);
    memmove(model->params, model->params + first, (size_t) count * sizeof *model->params);
    for (int i = 0; i < model->num_nodes; i++) {
        model->nodes[i].first_param -= first;
        model->nodes[i].added -= node; /* random streams follow the whole model's index */
    }
    for (int i = 0; i < count; i++)
        model->params[i].node -= node;
}

/* The head of a stage that is not the last is any of its stage outputs. */
static void mark_borders(hpct_split_stage *stage)
{
    hpct_model *model = stage->model;
    for (int k = 0; k < stage->entry.num; k++) {
        hpct_graph_tensor *tensor = &model->tensors[stage->entry.tensors[k]];
        tensor->stage_input = true;
        tensor->requires_grad = stage->entry.requires_grad[k];
    }
    for (int k = 0; k < stage->exit.num; k++)
        model->tensors[stage->exit.tensors[k]].stage_output = true;
    model->inner = !stage->last;
    model->has_targets = model->has_targets && stage->last;
    if (model->inner)
        model->output = stage->exit.tensors[stage->exit.num - 1];
}

hpct_status hpct_split_stage_open(hpct_split_stage **out, const hpct_model *whole,
                                  const hpct_split_cut *cut, int stage)
{
    if (whole->optimizer.global_clipnorm > 0)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "global_clipnorm needs the norm of all gradients, of which each stage has "
                         "a part: take clipnorm, or another strategy");
    hpct_split_stage *s = calloc(1, sizeof *s);
    hpct_status status = s != NULL ? HPCT_OK : hpct_fail_memory(sizeof *s);
    if (status == HPCT_OK)
        status = hpct_model_clone(&s->model, whole);
    if (status == HPCT_OK && stage > 0)
        status = border_make(&s->entry, whole, cut->first[stage]);
    if (status == HPCT_OK && stage + 1 < cut->stages)
        status = border_make(&s->exit, whole, cut->first[stage + 1]);
    if (status != HPCT_OK) {
        hpct_split_stage_close(s);
        return status;
    }
    s->last = stage + 1 == cut->stages;
    keep_range(s->model, cut, stage);
    mark_borders(s);
    *out = s;
    return HPCT_OK;
}

/* Switches the model back to the first block, allocated by its build. */
static void drop_places(hpct_split_stage *stage)
{
    hpct_run *run = stage->model->run;
    if (run == NULL || stage->num_places == 0)
        return;
    hpct_run_move(run, stage->places[0].block);
    for (int i = 1; i < stage->num_places; i++)
        run->backend->release(stage->places[i].block);
    run->backend->release(stage->sum);
    free(stage->places);
    stage->places = NULL;
    stage->sum = NULL;
    stage->num_places = 0;
}

void hpct_split_stage_close(hpct_split_stage *stage)
{
    if (stage == NULL)
        return;
    if (stage->model != NULL) {
        drop_places(stage);
        hpct_model_free(stage->model);
    }
    free(stage->entry.tensors);
    free(stage->entry.requires_grad);
    free(stage->exit.tensors);
    free(stage->exit.requires_grad);
    free(stage);
}

hpct_model *hpct_split_stage_model(hpct_split_stage *stage)
{
    return stage->model;
}

void hpct_split_stage_tell_steps(const hpct_split_stage *stage, hpct_model *whole)
{
    whole->steps = stage->model->steps;
}

/* ---- memory ---- */

static hpct_status make_places(hpct_split_stage *stage, int num)
{
    hpct_run *run = stage->model->run;
    size_t arena = run->arenas.floats * sizeof *stage->sum;
    stage->places = calloc((size_t) num, sizeof *stage->places);
    if (stage->places == NULL)
        return hpct_fail_memory((size_t) num * sizeof *stage->places);
    stage->num_places = num;
    stage->places[0].block = run->plan.block;
    for (int i = 1; i < num; i++) {
        stage->places[i].block = run->backend->allocate(run->plan.block_bytes);
        if (stage->places[i].block == NULL)
            return hpct_backend_memory_fail(run->backend, run->plan.block_bytes,
                                            "a piece's activations");
    }
    stage->sum = run->backend->allocate(arena);
    return stage->sum != NULL
               ? HPCT_OK
               : hpct_backend_memory_fail(run->backend, arena, "the pieces' gradients");
}

hpct_status hpct_split_stage_build(hpct_split_stage *stage, const hpct_run_build_options *options,
                                   int places)
{
    drop_places(stage);
    HPCT_TRY(hpct_model_build(stage->model, options));
    return make_places(stage, places);
}

hpct_status hpct_split_stage_need(const hpct_split_stage *stage,
                                  const hpct_run_build_options *options, int places, size_t *bytes)
{
    hpct_run_memory_plan plan;
    hpct_status status = hpct_model_plan(stage->model, options, &plan);
    *bytes = hpct_run_memory_plan_growth(&plan) + (size_t) (places - 1) * plan.activations +
             plan.gradients;
    return status;
}

/* ---- a batch ---- */

void hpct_split_stage_begin(hpct_split_stage *stage)
{
    const hpct_model *model = stage->model;
    stage->input = model->run->input.given;
    stage->labels = model->run->input.given_labels;
    stage->targets = stage->last ? model->run->input.given_targets : NULL;
    stage->resident = model->run->input.resident;
    stage->drawn = model->run->input.given_drawn;
    stage->first_sample = model->position.first_sample;
}

/* Sets the samples from `first` on as input. */
static void set_input(const hpct_split_stage *stage, int first)
{
    hpct_model *model = stage->model;
    size_t sample = hpct_graph_shape_count(&model->tensors[0].shape);
    if (stage->resident != NULL)
        hpct_model_set_resident_input(model, stage->resident, stage->drawn + first);
    else
        hpct_model_set_input(model, stage->input + (size_t) first * sample, stage->labels + first);
    if (stage->targets != NULL)
        hpct_model_set_targets(model,
                               stage->targets + (size_t) first * hpct_model_output_floats(model));
}

void hpct_split_stage_end(hpct_split_stage *stage)
{
    set_input(stage, 0);
    stage->model->position.first_sample = stage->first_sample;
}

/* Switches to this micro-batch's activations, input and stage. */
static void turn_to(hpct_split_stage *stage, const hpct_split_piece *piece)
{
    hpct_model *model = stage->model;
    hpct_run_move(model->run, stage->places[piece->place].block);
    set_input(stage, piece->first);
    model->position.first_sample = stage->first_sample + piece->first;
}

static float *value_of(const hpct_run *run, int tensor)
{
    return (float *) (void *) (run->plan.block + run->plan.value_offsets[tensor]);
}

static float *gradient_of(const hpct_run *run, int tensor)
{
    return (float *) (void *) (run->plan.block + run->plan.diff_offsets[tensor]);
}

/* Floats of a tensor in a message: its bytes in memory, rounded up to floats. */
static size_t floats_of(const hpct_model *model, int tensor, int samples)
{
    size_t count = (size_t) samples * hpct_graph_shape_count(&model->tensors[tensor].shape);
    size_t bytes = count * hpct_backend_precision_bytes(model->run->values);
    return (bytes + sizeof(float) - 1) / sizeof(float);
}

static size_t message_floats(const hpct_split_stage *stage, const border *b, int samples,
                             bool gradients)
{
    size_t floats = 0;
    for (int k = 0; k < b->num; k++)
        floats +=
            gradients && !b->requires_grad[k] ? 0 : floats_of(stage->model, b->tensors[k], samples);
    return floats;
}

size_t hpct_split_stage_message(const hpct_split_stage *stage, int samples, bool before,
                                bool gradients)
{
    return message_floats(stage, before ? &stage->entry : &stage->exit, samples, gradients);
}

/* On a device messages are in device memory. */
static hpct_status copy(const hpct_run *run, float *to, const float *from, size_t floats)
{
    const hpct_backend_device *device = run->backend->device;
    if (device != NULL)
        return device->copy(to, from, floats * sizeof *to);
    memcpy(to, from, floats * sizeof *to);
    return HPCT_OK;
}

/* Copies values or gradients between a message and the tensors of a border. */
static hpct_status pass(const hpct_split_stage *stage, const border *b,
                        const hpct_split_piece *piece, bool gradients, const float *in, float *out)
{
    const hpct_model *model = stage->model;
    hpct_status status = HPCT_OK;
    for (int k = 0; k < b->num && status == HPCT_OK; k++) {
        int tensor = b->tensors[k];
        size_t floats = floats_of(model, tensor, piece->count);
        if (gradients && !b->requires_grad[k])
            continue;
        float *own = gradients ? gradient_of(model->run, tensor) : value_of(model->run, tensor);
        if (in != NULL) {
            status = copy(model->run, own, in, floats);
            in += floats;
        } else {
            status = copy(model->run, out, own, floats);
            out += floats;
        }
    }
    return status;
}

hpct_status hpct_split_stage_forward(hpct_split_stage *stage, const hpct_split_piece *piece,
                                     const float *in, float *out)
{
    hpct_run *run = stage->model->run;
    hpct_status status = HPCT_OK;
    turn_to(stage, piece);
    if (in != NULL)
        status = pass(stage, &stage->entry, piece, false, in, NULL);
    if (status == HPCT_OK)
        status = hpct_model_forward(stage->model, piece->count, true);
    if (status == HPCT_OK && out != NULL)
        status = pass(stage, &stage->exit, piece, false, NULL, out);
    stage->places[piece->place].stage = run->stage;
    return status;
}

/* In the order in which hpct_model_accumulate adds batches. */
static hpct_status add_up(hpct_split_stage *stage, const hpct_split_piece *piece)
{
    hpct_run *run = stage->model->run;
    if (piece->total == 1)
        return HPCT_OK;
    if (piece->number + 1 == piece->total)
        return run->backend->accumulate(run->arenas.floats, stage->sum, run->arenas.gradients,
                                        false);
    return run->backend->accumulate(run->arenas.floats, run->arenas.gradients, stage->sum,
                                    piece->number == 0);
}

/* A device has one input buffer, which may hold another micro-batch's samples by now. */
static hpct_status send_again(const hpct_split_stage *stage, int samples)
{
    hpct_run *run = stage->model->run;
    if (run->backend->device == NULL || stage->num_places == 1)
        return HPCT_OK;
    HPCT_TRY(hpct_run_send_input(stage->model, run, samples));
    return hpct_run_make_input(run, samples);
}

hpct_status hpct_split_stage_backward(hpct_split_stage *stage, const hpct_split_piece *piece,
                                      float scale, const float *in, float *out,
                                      hpct_backend_batch_sums *sums)
{
    hpct_run *run = stage->model->run;
    hpct_backend_batch_sums own = {0};
    turn_to(stage, piece);
    hpct_status status = send_again(stage, piece->count);
    run->stage = stage->places[piece->place].stage;
    run->stage_n = piece->count;
    run->stage_training = true;
    if (status == HPCT_OK && stage->last) {
        status = hpct_model_loss(stage->model, piece->count, scale, &own);
        sums->loss += own.loss;
        sums->correct += own.correct;
        sums->in_top_k += own.in_top_k;
    } else if (status == HPCT_OK) {
        status = pass(stage, &stage->exit, piece, true, in, NULL);
        run->stage = HPCT_RUN_STAGE_LOSS; /* later stages have computed it */
    }
    if (status == HPCT_OK)
        status = hpct_model_backward(stage->model, piece->count);
    if (status == HPCT_OK && out != NULL)
        status = pass(stage, &stage->entry, piece, true, NULL, out);
    return status == HPCT_OK ? add_up(stage, piece) : status;
}

hpct_status hpct_split_stage_skip(hpct_split_stage *stage)
{
    HPCT_TRY(hpct_model_forward_absent(stage->model));
    HPCT_TRY(hpct_model_backward_absent(stage->model));
    return hpct_model_clear_gradients(stage->model);
}
