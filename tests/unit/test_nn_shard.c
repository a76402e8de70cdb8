/* Models in parts (nn/shard.h): drawn graphs, computed by parts on threads of their own, against
 * the whole model: outputs, loss, and what a step makes of every parameter. */
#include "nn/run.h"
#include "nn/shard.h"
#include "nn/step.h"
#include "tests/unit/unit.h"

#include <hpctrain/model.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 6
#define MOST_PARTS 7 /* more than samples: one part has none of its own */
#define CLASSES 5

/* ---- a graph drawn from a seed ---- */

static uint32_t draw_bits(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's */
    return (uint32_t) (*state >> 33);
}

static int draw(uint64_t *state, int low, int high)
{
    return low + (int) (draw_bits(state) % (uint32_t) (high - low + 1));
}

static int channels_of(hpct_model *model)
{
    return hpct_model_output_shape(model).size[2];
}

static void draw_convolution(hpct_model *model, uint64_t *state, int filters)
{
    static const hpct_activation activations[] = {HPCT_LINEAR, HPCT_RELU, HPCT_TANH};
    int side = 1 + 2 * draw(state, 0, 1);
    hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = filters,
                                                .kernel = {side, side},
                                                .padding = HPCT_SAME,
                                                .no_bias = draw(state, 0, 1) == 1,
                                                .activation = activations[draw(state, 0, 2)]});
}

static int most_vectors; /* of 16 channels that a convolution may have; 0: any number of few */

static int draw_filters(uint64_t *state, int low, int high)
{
    int filters = draw(state, low, high);
    return most_vectors > 0 ? 16 * (1 + filters % most_vectors) : filters;
}

static void draw_block(hpct_model *model, uint64_t *state, bool synchronized)
{
    int shortcut = hpct_model_head(model), channels = channels_of(model);
    switch (draw(state, 0, 7)) {
    case 0:
        draw_convolution(model, state, draw_filters(state, 4, 9));
        break;
    case 1:
        draw_convolution(model, state, draw_filters(state, 4, 9));
        hpct_model_add_batch_normalization(
            model, &(hpct_batch_normalization){.no_scale = draw(state, 0, 1) == 1,
                                               .synchronized = synchronized});
        hpct_model_add_activation(model, HPCT_RELU);
        break;
    case 2:
        hpct_model_add_depthwise_conv2d(
            model, &(hpct_depthwise_conv2d){
                       .kernel = {3, 3}, .padding = HPCT_SAME, .multiplier = draw(state, 1, 2)});
        break;
    case 3:
        hpct_model_add_max_pool2d(
            model, &(hpct_max_pool2d){.pool = {2, 2}, .strides = {1, 1}, .padding = HPCT_SAME});
        break;
    case 4:
        hpct_model_add_average_pool2d(model,
                                      &(hpct_average_pool2d){.pool = {2, 2}, .strides = {1, 1}});
        break;
    case 5:
        draw_convolution(model, state, channels);
        hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        break;
    case 6:
        draw_convolution(model, state, draw_filters(state, 4, 6));
        hpct_model_add_concatenate(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        break;
    case 7:
        hpct_model_add_zero_padding2d(model, &(hpct_zero_padding2d){.padding = {{1, 0}, {0, 1}}});
        break;
    }
}

static double clipnorm, global_clipnorm; /* of all models that are made */

static hpct_model *finish(hpct_model *model, bool softmax, uint64_t seed)
{
    hpct_model_add_dense(
        model, &(hpct_dense){.units = CLASSES, .activation = softmax ? HPCT_SOFTMAX : HPCT_LINEAR});
    hpct_status status = hpct_model_compile(
        model,
        softmax ? HPCT_SPARSE_CATEGORICAL_CROSSENTROPY
                : HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
        &(hpct_optimizer){
            .learning_rate = 0.5, .clipnorm = clipnorm, .global_clipnorm = global_clipnorm});
    if (status != HPCT_OK)
        fail_msg("seed %d: %s", (int) seed, hpct_last_error());
    assert_int_equal(hpct_model_initialize(model, seed), HPCT_OK);
    return model;
}

static hpct_model *draw_model(uint64_t seed)
{
    static const hpct_activation activations[] = {HPCT_RELU, HPCT_TANH, HPCT_GELU};
    uint64_t state = seed * 7919 + 1;
    int side = draw(&state, 5, 8);
    bool synchronized = seed % 2 == 0;
    hpct_model *model = hpct_model_new("drawn", HPCT_SHAPE(side, side, draw(&state, 1, 3)));
    draw_convolution(model, &state, draw_filters(&state, 4, 9));
    for (int blocks = draw(&state, 0, 3); blocks > 0; blocks--)
        draw_block(model, &state, synchronized);
    hpct_model_add_flatten(model);
    for (int hidden = draw(&state, 0, 3); hidden > 0; hidden--) {
        hpct_model_add_dense(model, &(hpct_dense){.units = draw(&state, 8, 40),
                                                  .activation = activations[draw(&state, 0, 2)],
                                                  .no_bias = draw(&state, 0, 3) == 0});
        if (draw(&state, 0, 3) == 0)
            hpct_model_add_dropout(model, 0.25);
    }
    return finish(model, draw(&state, 0, 1) == 1, seed);
}

static hpct_model *dense_model(const int *units, uint64_t seed)
{
    hpct_model *model = hpct_model_new("dense", HPCT_SHAPE(24));
    for (; *units > 0; units++)
        hpct_model_add_dense(model, &(hpct_dense){.units = *units, .activation = HPCT_TANH});
    return finish(model, false, seed);
}

/* Two splits, one behind the other, where steps are large: the sum at the end of the first has to
 * add up a gradient. */
static hpct_model *deep_model(uint64_t seed)
{
    return dense_model((int[]){1600, 1600, 1600, 1600, 0}, seed);
}

/* The first Dense is computed by all, and its gradient is in parts. */
static hpct_model *narrow_model(uint64_t seed)
{
    return dense_model((int[]){8, 600, 0}, seed);
}

/* A convolution whose cells can be split, with an activation of its own or one behind it. */
static hpct_model *picture_model(uint64_t seed)
{
    hpct_model *model = hpct_model_new("picture", HPCT_SHAPE(9, 8, 2));
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 16,
                                         .kernel = {3, 3},
                                         .activation = seed % 2 == 0 ? HPCT_RELU : HPCT_LINEAR});
    if (seed % 2 == 1)
        hpct_model_add_activation(model, HPCT_TANH);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &(hpct_dense){.units = 30, .activation = HPCT_RELU});
    return finish(model, false, seed);
}

/* Convolutions of few cells and many channels, which some processors want in blocks, at the end. */
static hpct_model *deep_convolutions(uint64_t seed)
{
    hpct_model *model = hpct_model_new("deep", HPCT_SHAPE(8, 8, 3));
    hpct_model_add_conv2d(model,
                          &(hpct_conv2d){.filters = 16, .kernel = {3, 3}, .padding = HPCT_SAME});
    hpct_model_add_average_pool2d(model, &(hpct_average_pool2d){.pool = {4, 4}});
    hpct_model_add_batch_normalization(model,
                                       &(hpct_batch_normalization){.synchronized = seed % 2 == 0});
    for (int i = 0; i < 3; i++) {
        int shortcut;
        hpct_model_add_conv2d(model, &(hpct_conv2d){.filters = 128, .kernel = {1, 1}});
        shortcut = hpct_model_head(model);
        hpct_model_add_conv2d(
            model, &(hpct_conv2d){.filters = 128, .kernel = {1, 1}, .activation = HPCT_RELU});
        hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        hpct_model_add_batch_normalization(
            model, &(hpct_batch_normalization){.synchronized = seed % 2 == 0});
    }
    hpct_model_add_flatten(model);
    return finish(model, true, seed);
}

static void fill(hpct_model *model, uint64_t seed)
{
    hpct_shape shape = hpct_model_input_shape(model);
    size_t count = hpct_shape_count(&shape) * SAMPLES;
    float *input = hpct_model_input(model);
    int32_t *labels = hpct_model_labels(model);
    uint64_t state = seed + 99;
    for (size_t i = 0; i < count; i++)
        input[i] = (float) draw(&state, -1000, 1000) / 1000;
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = draw(&state, 0, CLASSES - 1);
    hpct_model_set_position(model, seed, 3, 0);
}

/* ---- parts on threads ---- */

typedef struct meeting {
    pthread_barrier_t barrier;
    int parts;
    const float *data[MOST_PARTS];
    float *total;
} meeting;

typedef struct worker {
    meeting *meeting;
    int part;
    const char *backend;
    const hpct_model *whole;
    hpct_shard *shard;
    uint64_t seed;
    bool fuse;
    bool halves, between; /* sums may be made in two halves; it is between them */
    float output[SAMPLES * CLASSES], riders[HPCT_RIDERS];
    hpct_batch_sums sums;
    size_t summed, handed; /* floats */
    float *record;
} worker;

static hpct_status sum_parts(void *argument, float *data, size_t count)
{
    worker *w = argument;
    meeting *m = w->meeting;
    m->data[w->part] = data;
    w->handed += count;
    pthread_barrier_wait(&m->barrier);
    if (w->part == 0) {
        m->total = calloc(count, sizeof *m->total);
        for (int part = 0; part < m->parts; part++)
            for (size_t i = 0; i < count; i++)
                m->total[i] += m->data[part][i];
    }
    pthread_barrier_wait(&m->barrier);
    memcpy(data, m->total, count * sizeof *data);
    pthread_barrier_wait(&m->barrier);
    if (w->part == 0)
        free(m->total);
    return HPCT_OK;
}

static hpct_status gather_parts(void *argument, const float *mine, float *all, size_t count)
{
    worker *w = argument;
    meeting *m = w->meeting;
    m->data[w->part] = mine;
    w->handed += count;
    pthread_barrier_wait(&m->barrier);
    for (int part = 0; part < m->parts; part++)
        memcpy(all + (size_t) part * count, m->data[part], count * sizeof *all);
    pthread_barrier_wait(&m->barrier);
    return HPCT_OK;
}

/* One half of a sum, and the other, or that alone. */
static hpct_status reduce_rows(void *argument, float *data, size_t rows, size_t width,
                               size_t *first, size_t *own)
{
    worker *w = argument;
    *first = (size_t) hpct_samples_first((int) rows, w->part, w->meeting->parts);
    *own = (size_t) hpct_samples_count((int) rows, w->part, w->meeting->parts);
    hpct_status status = sum_parts(w, data, rows * width);
    for (size_t i = 0; i < rows * width; i++)
        data[i] = i / width >= *first && i / width < *first + *own ? data[i] : NAN;
    w->between = true;
    return status;
}

static hpct_status spread_rows(void *argument, float *data, size_t rows, size_t width,
                               float *riders)
{
    worker *w = argument;
    size_t parts = (size_t) w->meeting->parts, own = (rows + parts - 1) / parts * width;
    for (size_t i = 0; i < rows * width; i++) {
        int row = (int) (i / width), first = hpct_samples_first((int) rows, w->part, (int) parts);
        bool mine =
            row >= first && row < first + hpct_samples_count((int) rows, w->part, (int) parts);
        data[i] = mine ? data[i] : 0;
    }
    size_t before = w->handed;
    hpct_status status = sum_parts(w, data, rows * width);
    w->handed = before + (w->between ? 0 : own);
    w->between = false;
    return riders != NULL && status == HPCT_OK ? sum_parts(w, riders, HPCT_RIDERS) : status;
}

/* A part that fails would leave the others waiting. */
static void must(hpct_status status)
{
    if (status == HPCT_OK)
        return;
    fprintf(stderr, "a part failed: %s\n", hpct_last_error());
    abort();
}

static void step(hpct_model *model, bool update, hpct_batch_sums *sums, float *output)
{
    bool due;
    must(hpct_model_forward(model, SAMPLES, true));
    must(hpct_model_loss(model, SAMPLES, 1.0f / SAMPLES, sums));
    memcpy(output, hpct_model_output(model), SAMPLES * CLASSES * sizeof *output);
    must(hpct_model_backward(model, SAMPLES));
    must(hpct_model_accumulate(model, &due));
    if (update)
        must(hpct_model_update(model));
}

static hpct_build_options options_for(const char *backend, bool fuse)
{
    static const int sizes[] = {SAMPLES};
    return (hpct_build_options){
        .backend = backend, .batch_sizes = sizes, .num_batch_sizes = 1, .fuse_update = fuse};
}

/* As the strategy does before it gathers. */
static void mean_own_states(worker *w)
{
    size_t count;
    hpct_shard_range range = hpct_shard_own_states(w->shard);
    float *states = hpct_model_states(hpct_shard_model(w->shard), &count) + range.offset;
    must(sum_parts(w, states, range.count));
    for (size_t i = 0; i < range.count; i++)
        states[i] /= (float) w->meeting->parts;
}

static void *work(void *argument)
{
    worker *w = argument;
    hpct_model *model = hpct_shard_model(w->shard);
    hpct_build_options options = options_for(w->backend, w->fuse);
    int num;
    size_t count;
    hpct_cpu_set_threads(1);
    must(hpct_shard_take(w->shard, w->whole));
    must(hpct_model_build(model, &options));
    w->riders[0] = (float) w->part;
    w->riders[1] = 1;
    hpct_replicas replicas = {
        .sum = sum_parts, .argument = w, .gather = gather_parts, .riders = w->riders};
    if (w->halves) {
        replicas.reduce = reduce_rows;
        replicas.spread = spread_rows;
        replicas.halves_from = 100;
    }
    hpct_model_set_replicas(model, &replicas);
    fill(model, w->seed);
    step(model, false, &w->sums, w->output);
    const hpct_shard_range *ranges = hpct_shard_summed(w->shard, &num);
    float *gradients = hpct_model_gradients(model, &count);
    size_t handed = w->handed;
    for (int i = 0; i < num; i++) {
        must(sum_parts(w, gradients + ranges[i].offset, ranges[i].count));
        w->summed += ranges[i].count;
    }
    must(hpct_model_update(model));
    mean_own_states(w);
    w->handed = handed - hpct_model_synced_floats(model);
    w->record = malloc(hpct_shard_record_floats(w->shard, w->part) * sizeof *w->record);
    must(hpct_shard_put(w->shard, w->record));
    return NULL;
}

/* ---- comparing ---- */

static float *value_of(const hpct_model *model, int param)
{
    float *value = malloc(hpct_shape_count(&model->params[param].shape) * sizeof *value);
    assert_int_equal(hpct_param_get(model, param, value), HPCT_OK);
    return value;
}

/* |change of a - change of b|, by the change's norm: of one parameter in a step from `before`. */
static double change_differs(const hpct_model *before, const hpct_model *a, const hpct_model *b,
                             int param, double *norm)
{
    float *from = value_of(before, param), *x = value_of(a, param), *y = value_of(b, param);
    double difference = 0;
    *norm = 0;
    for (size_t i = 0; i < hpct_shape_count(&before->params[param].shape); i++) {
        difference += pow((double) x[i] - (double) y[i], 2);
        *norm += pow((double) y[i] - (double) from[i], 2);
    }
    free(from);
    free(x);
    free(y);
    *norm = sqrt(*norm);
    return sqrt(difference);
}

static void compare(uint64_t seed, const worker *workers, int parts, const hpct_model *before,
                    hpct_model *result, const hpct_model *expected, const float *output,
                    const hpct_batch_sums *sums)
{
    size_t floats = 0, at = 0;
    double norm, all = 0;
    for (int part = 0; part < parts; part++)
        floats += hpct_shard_record_floats(workers[part].shard, part);
    assert_int_equal(floats, hpct_model_count_parameters(before)); /* no slots */
    float *records = malloc(floats * sizeof *records);
    for (int part = 0; part < parts; part++) {
        const worker *w = &workers[part];
        size_t own = hpct_shard_record_floats(w->shard, part);
        memcpy(records + at, w->record, own * sizeof *records);
        at += own;
        for (int i = 0; i < SAMPLES * CLASSES; i++)
            assert_true(fabsf(w->output[i] - output[i]) < 1e-4f * (1 + fabsf(output[i])));
        assert_true(fabs(w->sums.loss - sums->loss) < 1e-4 * sums->loss);
        assert_int_equal(w->sums.correct, sums->correct);
        assert_true(w->riders[0] == (float) (parts * (parts - 1) / 2));
        assert_true(w->riders[1] == (float) parts);
        if (w->handed != hpct_shard_floats(w->shard, SAMPLES))
            fail_msg("seed %d, part %d of %d: %zu floats handed over, not %zu", (int) seed, part,
                     parts, w->handed, hpct_shard_floats(w->shard, SAMPLES));
    }
    assert_int_equal(hpct_shard_spread(workers[0].shard, records, result), HPCT_OK);
    free(records);
    for (int i = 0; i < before->num_params; i++) {
        change_differs(before, result, expected, i, &norm);
        all = fmax(all, norm);
    }
    for (int i = 0; i < before->num_params; i++) {
        double difference = change_differs(before, result, expected, i, &norm);
        if (!(difference <= 1e-3 * norm + 1e-4 * all))
            fail_msg("seed %d, %d parts, %s: its step differs by %g of %g", (int) seed, parts,
                     before->params[i].name, difference, norm);
    }
}

/* What to compute in parts: a model, as for steps of so many samples, of which SAMPLES are made. */
typedef struct scenario {
    const char *backend;
    hpct_model *(*make)(uint64_t seed);
    uint64_t seed;
    int parts, samples;
    hpct_shard_form form;
    bool fuse;
    int cells;   /* of the picture that the first part has to compute, where not 0 */
    bool blocks; /* channels are gathered in blocks */
} scenario;

static int cells_of(hpct_shard *shard)
{
    return hpct_shard_model(shard)->nodes[0].spec.window.cells;
}

static int gathers_in_blocks(hpct_shard *shard)
{
    const hpct_run *run = hpct_shard_model(shard)->run;
    int gathers = 0;
    for (int i = 0; i < run->num_nodes; i++) {
        const hpct_op_spec *spec = &run->nodes[i].op->spec;
        gathers += spec->kind == HPCT_OP_GATHER_PARTS && spec->dst_blocks;
    }
    return gathers;
}

static bool adds_gradients(hpct_shard *shard)
{
    const hpct_model *model = hpct_shard_model(shard);
    bool any = false;
    for (int i = 0; i < model->num_nodes; i++)
        any = any ||
              (hpct_op_is_collective(&model->nodes[i].spec) && model->nodes[i].spec.parts.sum_diff);
    return any;
}

/* As data-parallel replicas whose statistics are their own: outputs and sums of all, and what
 * `expected`, whose own step was made of the whole batch, becomes by their gradients and states. */
static void step_apart(const scenario *s, hpct_model *expected, hpct_batch_sums *sums,
                       float *output)
{
    size_t floats, states_floats;
    float *gradients = hpct_model_gradients(expected, &floats),
          *states = hpct_model_states(expected, &states_floats);
    memset(gradients, 0, floats * sizeof *gradients);
    memset(states, 0, states_floats * sizeof *states);
    *sums = (hpct_batch_sums){0};
    for (int part = 0; part < s->parts; part++) {
        hpct_batch_sums own = {0};
        hpct_model *replica = s->make(s->seed);
        int first = hpct_samples_first(SAMPLES, part, s->parts),
            n = hpct_samples_count(SAMPLES, part, s->parts), all = SAMPLES;
        size_t sample = hpct_shape_count(&replica->tensors[0].shape);
        hpct_build_options options = options_for(s->backend, false);
        options.batch_sizes = n > 0 ? &n : &all;
        must(hpct_model_build(replica, &options));
        assert_true(hpct_model_layout_fingerprint(replica) ==
                    hpct_model_layout_fingerprint(expected));
        if (n > 0) {
            memcpy(hpct_model_input(replica), expected->run->given + (size_t) first * sample,
                   (size_t) n * sample * sizeof(float));
            memcpy(hpct_model_labels(replica), expected->run->given_labels + first,
                   (size_t) n * sizeof(int32_t));
            hpct_model_set_position(replica, s->seed, 3, first);
            must(hpct_model_forward(replica, n, true));
            must(hpct_model_loss(replica, n, 1.0f / SAMPLES, &own));
            memcpy(output + (ptrdiff_t) first * CLASSES, hpct_model_output(replica),
                   (size_t) n * CLASSES * sizeof *output);
            must(hpct_model_backward(replica, n));
            for (size_t i = 0; i < floats; i++)
                gradients[i] += hpct_model_gradients(replica, &floats)[i];
        }
        for (size_t i = 0; i < states_floats; i++)
            states[i] += hpct_model_states(replica, &states_floats)[i] / (float) s->parts;
        sums->loss += own.loss;
        sums->correct += own.correct;
        hpct_model_free(replica);
    }
}

/* Whether these parts could be, and whether they added up a gradient of an activation. */
static bool try_parts(const scenario *s, bool *adds)
{
    const char *backend = s->backend;
    uint64_t seed = s->seed;
    int parts = s->parts;
    hpct_model *before = s->make(seed), *expected = s->make(seed), *result = s->make(seed);
    hpct_build_options options = options_for(backend, false);
    worker workers[MOST_PARTS] = {0};
    pthread_t threads[MOST_PARTS];
    meeting m = {.parts = parts};
    float output[SAMPLES * CLASSES];
    hpct_batch_sums sums;
    bool possible = true;
    pthread_barrier_init(&m.barrier, NULL, (unsigned) parts);
    for (int part = 0; part < parts && possible; part++) {
        workers[part] = (worker){.meeting = &m,
                                 .part = part,
                                 .backend = backend,
                                 .whole = before,
                                 .seed = seed,
                                 .fuse = s->fuse,
                                 .halves = seed % 3 != 0};
        hpct_status status = hpct_shard_open(
            &workers[part].shard, before,
            &(hpct_shard_options){
                .part = part, .parts = parts, .samples = s->samples, .form = s->form});
        possible = status == HPCT_OK;
        assert_true(possible || (status == HPCT_ERR_CONFIG && part == 0)); /* all alike */
    }
    if (possible) {
        for (int part = 0; part < parts; part++)
            pthread_create(&threads[part], NULL, work, &workers[part]);
        assert_int_equal(hpct_model_build(expected, &options), HPCT_OK);
        fill(expected, seed);
        for (int part = 0; part < parts; part++)
            pthread_join(threads[part], NULL);
        step(expected, false, &sums, output);
        if (hpct_model_has_own_statistics(before))
            step_apart(s, expected, &sums, output);
        must(hpct_model_update(expected));
        compare(seed, workers, parts, before, result, expected, output, &sums);
        *adds = adds_gradients(workers[0].shard);
        if (s->blocks)
            assert_true(gathers_in_blocks(workers[0].shard) > 0);
        if (s->cells > 0)
            assert_int_equal(cells_of(workers[0].shard), s->cells);
    }
    for (int part = 0; part < parts; part++) {
        hpct_shard_close(workers[part].shard);
        free(workers[part].record);
    }
    pthread_barrier_destroy(&m.barrier);
    hpct_model_free(before);
    hpct_model_free(expected);
    hpct_model_free(result);
    return possible;
}

static void try_graphs(const char *backend, int seeds)
{
    int rows = 0, columns = 0, back = 0;
    bool adds;
    for (int seed = 0; seed < seeds; seed++) {
        scenario s = {.backend = backend,
                      .make = draw_model,
                      .seed = (uint64_t) seed,
                      .parts = 2 + seed % 3,
                      .samples = SAMPLES,
                      .form = HPCT_SHARD_ROWS,
                      .fuse = seed % 2 == 0};
        most_vectors = seed % 3 == 2 ? 4 : 0;
        rows += try_parts(&s, &adds);
        s.form = HPCT_SHARD_COLUMNS;
        columns += try_parts(&s, &adds);
        s.form = HPCT_SHARD_BACK;
        s.parts = 2 + seed % (MOST_PARTS - 1);
        back += try_parts(&s, &adds);
    }
    most_vectors = 0;
    print_message("%s: %d graphs by rows, %d by columns, %d in their last layers, of %d\n", backend,
                  rows, columns, back, seeds);
    assert_true(rows > seeds / 4 && columns > seeds / 4 && back > seeds / 4);
}

static void test_ref(void **state)
{
    (void) state;
    try_graphs("ref", getenv("HPC_TRAIN_LONG") != NULL ? 400 : unit_cases(24));
}

static void test_cpu(void **state)
{
    (void) state;
    try_graphs("cpu", getenv("HPC_TRAIN_LONG") != NULL ? 400 : unit_cases(40));
}

static void test_two_splits(void **state)
{
    (void) state;
    bool adds = false;
    for (int parts = 2; parts < 4; parts++) {
        assert_true(try_parts(&(scenario){.backend = "cpu",
                                          .make = deep_model,
                                          .seed = 1,
                                          .parts = parts,
                                          .samples = 1024,
                                          .form = HPCT_SHARD_COLUMNS,
                                          .fuse = true},
                              &adds));
        assert_true(adds);
    }
}

static void test_dense_before(void **state)
{
    (void) state;
    bool adds;
    assert_true(try_parts(&(scenario){.backend = "cpu",
                                      .make = narrow_model,
                                      .seed = 1,
                                      .parts = 3,
                                      .samples = SAMPLES,
                                      .form = HPCT_SHARD_COLUMNS,
                                      .fuse = true},
                          &adds));
}

/* By channels, every part of 16 would compute all vectors. */
static void test_cells(void **state)
{
    (void) state;
    bool adds;
    for (int parts = 3; parts <= 4; parts++) {
        for (int seed = 0; seed < 4; seed++)
            assert_true(try_parts(&(scenario){.backend = seed < 2 ? "cpu" : "ref",
                                              .make = picture_model,
                                              .seed = (uint64_t) seed,
                                              .parts = parts,
                                              .samples = 256,
                                              .form = HPCT_SHARD_ROWS,
                                              .fuse = true,
                                              .cells = 42 / parts},
                                  &adds));
    }
}

static void test_blocks(void **state)
{
    (void) state;
    bool adds = false;
    const hpct_op_spec wide = {
        .kind = HPCT_OP_CONV2D,
        .window = {.in_c = 16, .out_c = 16, .kernel_h = 1, .kernel_w = 1, .groups = 1}};
    bool blocks = hpct_backend_cpu.blocking(&wide, HPCT_FP32) == HPCT_BLOCKS_ALL;
    for (int seed = 0; seed < 12; seed++)
        assert_true(try_parts(&(scenario){.backend = "cpu",
                                          .make = deep_convolutions,
                                          .seed = (uint64_t) seed,
                                          .parts = 2 + seed % 3,
                                          .samples = SAMPLES,
                                          .form = HPCT_SHARD_BACK,
                                          .blocks = blocks && seed % 3 != 1},
                              &adds));
    assert_true(adds);
}

/* Ranks whose processors want blocks and ranks whose do not agree on a plain layout, in which
 * nobody gathers blocks. */
static void test_plain(void **state)
{
    (void) state;
    hpct_model *whole = deep_convolutions(0);
    hpct_shard *shard = NULL;
    hpct_build_options options = options_for("cpu", false);
    const hpct_shard_options part = {.parts = 2, .samples = SAMPLES, .form = HPCT_SHARD_BACK};
    assert_int_equal(hpct_shard_open(&shard, whole, &part), HPCT_OK);
    assert_int_equal(hpct_shard_take(shard, whole), HPCT_OK);
    assert_int_equal(hpct_model_build(hpct_shard_model(shard), &options), HPCT_OK);
    int blocks = gathers_in_blocks(shard);
    uint64_t own = hpct_shard_fingerprint(shard);
    options.plain_layout = true;
    assert_int_equal(hpct_model_build(hpct_shard_model(shard), &options), HPCT_OK);
    assert_int_equal(gathers_in_blocks(shard), 0);
    assert_true(blocks == 0 || hpct_shard_fingerprint(shard) != own);
    hpct_shard_close(shard);
    hpct_model_free(whole);
}

/* Norms of parameters of which each part has some, and of others, shorten what would be longer. */
static void test_clipping(void **state)
{
    (void) state;
    bool adds;
    for (int i = 0; i < 4; i++) {
        clipnorm = i < 2 ? 0.01 : 0;
        global_clipnorm = i < 2 ? 0 : 0.02;
        for (int form = HPCT_SHARD_ROWS; form <= HPCT_SHARD_COLUMNS; form++)
            assert_true(try_parts(&(scenario){.backend = i % 2 == 0 ? "cpu" : "ref",
                                              .make = picture_model,
                                              .parts = 3,
                                              .samples = SAMPLES,
                                              .form = (hpct_shard_form) form},
                                  &adds));
    }
    clipnorm = global_clipnorm = 0;
}

/* ---- what cannot be ---- */

static hpct_status refused(int parts, hpct_shard_form form)
{
    hpct_model *model = hpct_model_new("small", HPCT_SHAPE(30));
    hpct_shard *shard = NULL;
    hpct_model_add_dense(model, &(hpct_dense){.units = 200, .activation = HPCT_RELU});
    hpct_model_add_dense(model, &(hpct_dense){.units = CLASSES});
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                        &(hpct_optimizer){.learning_rate = 0.1}),
                     HPCT_OK);
    hpct_status status = hpct_shard_open(
        &shard, model,
        &(hpct_shard_options){.part = 1, .parts = parts, .samples = SAMPLES, .form = form});
    hpct_shard_close(shard);
    hpct_model_free(model);
    return status;
}

static void test_refused(void **state)
{
    (void) state;
    assert_int_equal(refused(2, HPCT_SHARD_COLUMNS), HPCT_OK);
    assert_int_equal(refused(201, HPCT_SHARD_AUTO), HPCT_ERR_CONFIG); /* 200 columns */
    assert_non_null(strstr(hpct_last_error(), "201 parts"));
    assert_int_equal(refused(1, HPCT_SHARD_AUTO), HPCT_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref),        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_two_splits), cmocka_unit_test(test_dense_before),
        cmocka_unit_test(test_cells),      cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_plain),      cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
