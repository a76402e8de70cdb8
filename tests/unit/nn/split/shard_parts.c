/* Parts on threads, which meet at a barrier, and their whole. */
#include "tests/unit/nn/split/shard_parts.h"

#include "nn/backend/cpu/backend.h"
#include "nn/run/run.h"
#include "tests/unit/nn/split/shard_models.h"
#include "tests/unit/unit.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct meeting {
    pthread_barrier_t barrier;
    int parts;
    const float *data[SHARD_MOST_PARTS];
    float *total;
} meeting;

typedef struct worker {
    meeting *meeting;
    int part;
    const char *backend;
    const hpct_model *whole;
    hpct_split_shard *shard;
    uint64_t seed;
    bool fuse;
    bool halves, between; /* sums may be made in two halves; it is between them */
    float output[SHARD_SAMPLES * SHARD_CLASSES], piggyback[HPCT_GRAPH_PIGGYBACK];
    hpct_backend_batch_sums sums;
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
    *first = (size_t) hpct_graph_samples_first((int) rows, w->part, w->meeting->parts);
    *own = (size_t) hpct_graph_samples_count((int) rows, w->part, w->meeting->parts);
    hpct_status status = sum_parts(w, data, rows * width);
    for (size_t i = 0; i < rows * width; i++)
        data[i] = i / width >= *first && i / width < *first + *own ? data[i] : NAN;
    w->between = true;
    return status;
}

static hpct_status spread_rows(void *argument, float *data, size_t rows, size_t width,
                               float *piggyback)
{
    worker *w = argument;
    size_t parts = (size_t) w->meeting->parts, own = (rows + parts - 1) / parts * width;
    for (size_t i = 0; i < rows * width; i++) {
        int row = (int) (i / width),
            first = hpct_graph_samples_first((int) rows, w->part, (int) parts);
        bool mine = row >= first &&
                    row < first + hpct_graph_samples_count((int) rows, w->part, (int) parts);
        data[i] = mine ? data[i] : 0;
    }
    size_t before = w->handed;
    hpct_status status = sum_parts(w, data, rows * width);
    w->handed = before + (w->between ? 0 : own);
    w->between = false;
    return piggyback != NULL && status == HPCT_OK ? sum_parts(w, piggyback, HPCT_GRAPH_PIGGYBACK)
                                                  : status;
}

/* A part that fails would leave the others waiting. */
static void must(hpct_status status)
{
    if (status == HPCT_OK)
        return;
    fprintf(stderr, "a part failed: %s\n", hpct_last_error());
    abort();
}

static void step(hpct_model *model, bool update, hpct_backend_batch_sums *sums, float *output)
{
    bool due;
    must(hpct_model_forward(model, SHARD_SAMPLES, true));
    must(hpct_model_loss(model, SHARD_SAMPLES, 1.0f / SHARD_SAMPLES, sums));
    memcpy(output, hpct_model_output(model), SHARD_SAMPLES * SHARD_CLASSES * sizeof *output);
    must(hpct_model_backward(model, SHARD_SAMPLES));
    must(hpct_model_accumulate(model, &due));
    if (update)
        must(hpct_model_update(model));
}

hpct_run_build_options shard_options_for(const char *backend, bool fuse)
{
    static const int sizes[] = {SHARD_SAMPLES};
    return (hpct_run_build_options){
        .backend = backend, .batch_sizes = sizes, .num_batch_sizes = 1, .fuse_update = fuse};
}

/* As the strategy does before it gathers. */
static void mean_own_states(worker *w)
{
    size_t count;
    hpct_split_shard_range range = hpct_split_shard_own_states(w->shard);
    float *states = hpct_model_states(hpct_split_shard_model(w->shard), &count) + range.offset;
    must(sum_parts(w, states, range.count));
    for (size_t i = 0; i < range.count; i++)
        states[i] /= (float) w->meeting->parts;
}

static void *work(void *argument)
{
    worker *w = argument;
    hpct_model *model = hpct_split_shard_model(w->shard);
    hpct_run_build_options options = shard_options_for(w->backend, w->fuse);
    int num;
    size_t count;
    hpct_cpu_set_threads(1);
    must(hpct_split_shard_take(w->shard, w->whole));
    must(hpct_model_build(model, &options));
    w->piggyback[0] = (float) w->part;
    w->piggyback[1] = 1;
    hpct_graph_step_peers replicas = {
        .sum = sum_parts, .argument = w, .gather = gather_parts, .piggyback = w->piggyback};
    if (w->halves) {
        replicas.reduce_rows = reduce_rows;
        replicas.spread_rows = spread_rows;
        replicas.halves_from = 100;
    }
    hpct_model_set_peers(model, &replicas);
    shard_fill(model, w->seed);
    step(model, false, &w->sums, w->output);
    const hpct_split_shard_range *ranges = hpct_split_shard_summed(w->shard, &num);
    float *gradients = hpct_model_gradients(model, &count);
    size_t handed = w->handed;
    for (int i = 0; i < num; i++) {
        must(sum_parts(w, gradients + ranges[i].offset, ranges[i].count));
        w->summed += ranges[i].count;
    }
    must(hpct_model_update(model));
    mean_own_states(w);
    w->handed = handed - hpct_model_synced_floats(model);
    w->record = malloc(hpct_split_shard_record_floats(w->shard, w->part) * sizeof *w->record);
    must(hpct_split_shard_put(w->shard, w->record));
    return NULL;
}

/* ---- comparing ---- */

static float *value_of(const hpct_model *model, int param)
{
    float *value = malloc(hpct_graph_shape_count(&model->params[param].shape) * sizeof *value);
    assert_int_equal(hpct_run_param_get(model, param, value), HPCT_OK);
    return value;
}

/* |change of a - change of b|, by the change's norm: of one parameter in a step from `before`. */
static double change_differs(const hpct_model *before, const hpct_model *a, const hpct_model *b,
                             int param, double *norm)
{
    float *from = value_of(before, param), *x = value_of(a, param), *y = value_of(b, param);
    double difference = 0;
    *norm = 0;
    for (size_t i = 0; i < hpct_graph_shape_count(&before->params[param].shape); i++) {
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
                    const hpct_backend_batch_sums *sums)
{
    size_t floats = 0, at = 0;
    double norm, all = 0;
    for (int part = 0; part < parts; part++)
        floats += hpct_split_shard_record_floats(workers[part].shard, part);
    assert_int_equal(floats, hpct_model_count_parameters(before)); /* no slots */
    float *records = malloc(floats * sizeof *records);
    for (int part = 0; part < parts; part++) {
        const worker *w = &workers[part];
        size_t own = hpct_split_shard_record_floats(w->shard, part);
        memcpy(records + at, w->record, own * sizeof *records);
        at += own;
        for (int i = 0; i < SHARD_SAMPLES * SHARD_CLASSES; i++)
            assert_true(fabsf(w->output[i] - output[i]) < 1e-4f * (1 + fabsf(output[i])));
        assert_true(fabs(w->sums.loss - sums->loss) < 1e-4 * sums->loss);
        assert_int_equal(w->sums.correct, sums->correct);
        assert_true(w->piggyback[0] == (float) (parts * (parts - 1) / 2));
        assert_true(w->piggyback[1] == (float) parts);
        if (w->handed != hpct_split_shard_floats(w->shard, SHARD_SAMPLES))
            fail_msg("seed %d, part %d of %d: %zu floats handed over, not %zu", (int) seed, part,
                     parts, w->handed, hpct_split_shard_floats(w->shard, SHARD_SAMPLES));
    }
    hpct_split_shard_model(workers[0].shard)->scaling.scale = 256;
    assert_int_equal(hpct_split_shard_spread(workers[0].shard, records, result), HPCT_OK);
    assert_true(result->scaling.scale == 256);
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

static int cells_of(hpct_split_shard *shard)
{
    return hpct_split_shard_model(shard)->nodes[0].spec.window.cells;
}

int shard_gathers_in_blocks(hpct_split_shard *shard)
{
    const hpct_run *run = hpct_split_shard_model(shard)->run;
    int gathers = 0;
    for (int i = 0; i < run->num_nodes; i++) {
        const hpct_op_spec *spec = &run->nodes[i].op->spec;
        gathers += spec->kind == HPCT_OP_GATHER_PARTS && spec->dst_blocks;
    }
    return gathers;
}

static bool adds_gradients(hpct_split_shard *shard)
{
    const hpct_model *model = hpct_split_shard_model(shard);
    bool any = false;
    for (int i = 0; i < model->num_nodes; i++)
        any = any ||
              (hpct_op_is_collective(&model->nodes[i].spec) && model->nodes[i].spec.parts.sum_diff);
    return any;
}

static hpct_model *build_replica(const shard_scenario *s, int part, bool plain)
{
    int n = hpct_graph_samples_count(SHARD_SAMPLES, part, s->parts), all = SHARD_SAMPLES;
    hpct_model *replica = s->make(s->seed);
    hpct_run_build_options options = shard_options_for(s->backend, false);
    options.batch_sizes = n > 0 ? &n : &all;
    options.plain_layout = plain;
    must(hpct_model_build(replica, &options));
    return replica;
}

/* Whether the backend lays parameters out in the same way for the whole batch and for each part;
 * where it does not, replicas agree on the plain layout, as the strategies do. */
static bool layouts_agree(const shard_scenario *s)
{
    hpct_model *whole = s->make(s->seed);
    hpct_run_build_options options = shard_options_for(s->backend, false);
    bool agree = true;
    must(hpct_model_build(whole, &options));
    for (int part = 0; part < s->parts; part++) {
        hpct_model *replica = build_replica(s, part, false);
        agree =
            agree && hpct_model_layout_fingerprint(replica) == hpct_model_layout_fingerprint(whole);
        hpct_model_free(replica);
    }
    hpct_model_free(whole);
    return agree;
}

/* As data-parallel replicas whose statistics are their own: outputs and sums of all, and what
 * `expected`, whose own step was made of the whole batch, becomes by their gradients and states. */
static void step_apart(const shard_scenario *s, bool plain, hpct_model *expected,
                       hpct_backend_batch_sums *sums, float *output)
{
    size_t floats, states_floats;
    float *gradients = hpct_model_gradients(expected, &floats),
          *states = hpct_model_states(expected, &states_floats);
    memset(gradients, 0, floats * sizeof *gradients);
    memset(states, 0, states_floats * sizeof *states);
    *sums = (hpct_backend_batch_sums){0};
    for (int part = 0; part < s->parts; part++) {
        hpct_backend_batch_sums own = {0};
        hpct_model *replica = build_replica(s, part, plain);
        int first = hpct_graph_samples_first(SHARD_SAMPLES, part, s->parts),
            n = hpct_graph_samples_count(SHARD_SAMPLES, part, s->parts);
        size_t sample = hpct_graph_shape_count(&replica->tensors[0].shape);
        assert_true(hpct_model_layout_fingerprint(replica) ==
                    hpct_model_layout_fingerprint(expected));
        if (n > 0) {
            memcpy(hpct_model_input(replica), expected->run->input.given + (size_t) first * sample,
                   (size_t) n * sample * sizeof(float));
            memcpy(hpct_model_labels(replica), expected->run->input.given_labels + first,
                   (size_t) n * sizeof(int32_t));
            hpct_model_set_position(replica, s->seed, 3, first);
            must(hpct_model_forward(replica, n, true));
            must(hpct_model_loss(replica, n, 1.0f / SHARD_SAMPLES, &own));
            memcpy(output + (ptrdiff_t) first * SHARD_CLASSES, hpct_model_output(replica),
                   (size_t) n * SHARD_CLASSES * sizeof *output);
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

bool shard_try_parts(const shard_scenario *s, bool *adds)
{
    const char *backend = s->backend;
    uint64_t seed = s->seed;
    int parts = s->parts;
    hpct_model *before = s->make(seed), *expected = s->make(seed), *result = s->make(seed);
    hpct_run_build_options options = shard_options_for(backend, false);
    worker workers[SHARD_MOST_PARTS] = {0};
    pthread_t threads[SHARD_MOST_PARTS];
    meeting m = {.parts = parts};
    float output[SHARD_SAMPLES * SHARD_CLASSES];
    hpct_backend_batch_sums sums;
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
        hpct_status status = hpct_split_shard_open(
            &workers[part].shard, before,
            &(hpct_split_shard_options){
                .part = part, .parts = parts, .samples = s->samples, .form = s->form});
        possible = status == HPCT_OK;
        assert_true(possible || (status == HPCT_ERR_CONFIG && part == 0)); /* all alike */
    }
    if (possible) {
        for (int part = 0; part < parts; part++)
            pthread_create(&threads[part], NULL, work, &workers[part]);
        options.plain_layout = hpct_model_has_own_statistics(before) && !layouts_agree(s);
        assert_int_equal(hpct_model_build(expected, &options), HPCT_OK);
        shard_fill(expected, seed);
        for (int part = 0; part < parts; part++)
            pthread_join(threads[part], NULL);
        step(expected, false, &sums, output);
        if (hpct_model_has_own_statistics(before))
            step_apart(s, options.plain_layout, expected, &sums, output);
        must(hpct_model_update(expected));
        compare(seed, workers, parts, before, result, expected, output, &sums);
        *adds = adds_gradients(workers[0].shard);
        if (s->blocks)
            assert_true(shard_gathers_in_blocks(workers[0].shard) > 0);
        if (s->cells > 0)
            assert_int_equal(cells_of(workers[0].shard), s->cells);
    }
    for (int part = 0; part < parts; part++) {
        hpct_split_shard_close(workers[part].shard);
        free(workers[part].record);
    }
    pthread_barrier_destroy(&m.barrier);
    hpct_model_free(before);
    hpct_model_free(expected);
    hpct_model_free(result);
    return possible;
}
