/* Models in stages: where drawn graphs are cut, against every possible cut; and stages that pass
 * micro-batches to one another, one-forward-one-backward, against the whole model that accumulates
 * as many batches. */
#include "nn/plan/run.h"
#include "nn/run/record.h"
#include "nn/split/cut.h"
#include "nn/split/stage.h"
#include "tests/unit/allocations.h"
#include "tests/unit/nn/split/shard_models.h"
#include "tests/unit/unit.h"

#include <math.h>

#define PIECES 5
#define MOST_OF_A_PIECE 2
#define CLASSES 5

static size_t arena_bytes; /* of a backend: activations, arenas, scratch */

void *__real_hpct_backend_host_allocate(size_t bytes);
void *__wrap_hpct_backend_host_allocate(size_t bytes);
void *__wrap_hpct_backend_host_allocate(size_t bytes)
{
    arena_bytes += bytes;
    return __real_hpct_backend_host_allocate(bytes);
}

/* ---- a graph drawn from a seed ---- */

/* older: a picture from before the last block; a cut between carries both. */
static void draw_block(hpct_model *model, uint64_t *state, int older)
{
    int shortcut = hpct_model_head(model);
    int channels = hpct_model_output_shape(model).size[2];
    switch (shard_draw(state, 0, 8)) {
    case 8: /* squeeze and excitation, dropped per sample */
        hpct_model_add_global_max_pool2d_keepdims(model);
        hpct_model_add_conv2d(
            model, &(hpct_conv2d){.filters = channels, .kernel = {1, 1}, .activation = HPCT_SILU});
        hpct_model_add_multiply(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        hpct_model_add_sample_dropout(model, 0.3);
        hpct_model_add_prelu(model, true);
        break;
    case 0:
    case 1:
        shard_draw_convolution(model, state, shard_draw(state, 2, 20));
        hpct_model_add_batch_normalization(model, &(hpct_batch_normalization){0});
        hpct_model_add_activation(model, HPCT_RELU);
        break;
    case 2:
        hpct_model_add_max_pool2d(
            model, &(hpct_max_pool2d){.pool = {2, 2}, .strides = {1, 1}, .padding = HPCT_SAME});
        break;
    case 3:
        hpct_model_add_dropout(model, 0.3);
        break;
    case 4: /* a branch of two convolutions beside none */
        shard_draw_convolution(model, state, 16);
        shard_draw_convolution(model, state, channels);
        hpct_model_add_add(model, (int[]){shortcut, hpct_model_head(model)}, 2);
        break;
    case 5: /* two branches that begin at one picture */
        shard_draw_convolution(model, state, channels);
        {
            int left = hpct_model_head(model);
            hpct_model_set_head(model, shortcut);
            shard_draw_convolution(model, state, channels);
            hpct_model_add_add(model, (int[]){hpct_model_head(model), left}, 2);
        }
        break;
    default:
        shard_draw_convolution(model, state, shard_draw(state, 2, 6));
        hpct_model_add_concatenate(model, (int[]){older, hpct_model_head(model)}, 2);
        break;
    }
}

static hpct_model *finish(hpct_model *model, bool softmax, int accumulation, uint64_t seed)
{
    hpct_model_add_dense(
        model, &(hpct_dense){.units = CLASSES, .activation = softmax ? HPCT_SOFTMAX : HPCT_LINEAR});
    hpct_status status = hpct_model_compile(
        model,
        softmax ? HPCT_SPARSE_CATEGORICAL_CROSSENTROPY
                : HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
        &(hpct_optimizer){
            .learning_rate = 0.5, .momentum = 0.9, .gradient_accumulation_steps = accumulation});
    if (status != HPCT_OK)
        fail_msg("seed %d: %s", (int) seed, hpct_last_error());
    assert_int_equal(hpct_model_initialize(model, seed), HPCT_OK);
    return model;
}

/* Everything is read once more at the end: every stage hands all before it on, and their gradients
 * back, which are there before most of its own backward. */
static hpct_model *shortcuts_model(uint64_t seed, int accumulation)
{
    hpct_model *model = hpct_model_new("shortcuts", HPCT_SHAPE(6));
    int tensors[6];
    for (int i = 0; i < 6; i++) {
        hpct_model_add_dense(model, &(hpct_dense){.units = 12, .activation = HPCT_TANH});
        tensors[i] = hpct_model_head(model);
    }
    hpct_model_add_concatenate(model, tensors, 6);
    return finish(model, false, accumulation, seed);
}

/* Layers of two operations, and random ones. */
static hpct_model *separable_model(uint64_t seed, int accumulation)
{
    hpct_model *model = hpct_model_new("separable", HPCT_SHAPE(6, 7, 3));
    for (int i = 0; i < 3; i++) {
        hpct_model_add_separable_conv2d(
            model, &(hpct_separable_conv2d){.filters = 8, .kernel = {3, 3}, .padding = HPCT_SAME});
        int shortcut = hpct_model_head(model);
        hpct_model_add_layer_normalization(model, &(hpct_layer_normalization){0});
        hpct_model_add_layer_scale(model, 0.5);
        hpct_model_add_stochastic_depth(model, 0.25);
        hpct_model_add_scaled_add(model, (int[]){shortcut, hpct_model_head(model)}, 0.25);
    }
    hpct_model_add_conv2d_transpose(
        model, &(hpct_conv2d_transpose){.filters = 8, .kernel = {2, 2}, .padding = HPCT_SAME});
    hpct_model_add_group_normalization(model, &(hpct_group_normalization){.groups = 4});
    hpct_model_add_spatial_dropout2d(model, 0.25);
    hpct_model_add_gaussian_noise(model, 0.25);
    hpct_model_add_cropping2d(model, &(hpct_cropping2d){.cropping = {{1, 0}, {0, 2}}});
    hpct_model_add_permute(model, (int[]){2, 3, 1});
    hpct_model_add_up_sampling2d(model, &(hpct_up_sampling2d){.size = {1, 2}});
    hpct_model_add_flatten(model);
    return finish(model, false, accumulation, seed);
}

static hpct_model *draw_model(uint64_t seed, int accumulation)
{
    uint64_t state = seed * 7919 + 1;
    int side = shard_draw(&state, 5, 8), older = 0;
    hpct_model *model = hpct_model_new("drawn", HPCT_SHAPE(side, side, shard_draw(&state, 1, 3)));
    if (shard_draw(&state, 0, 2) == 0) /* learns nothing: no gradient goes back to it */
        hpct_model_add_rescaling(model, 0.5, 0.1);
    for (int blocks = shard_draw(&state, 1, 5); blocks > 0; blocks--) {
        int head = hpct_model_head(model);
        draw_block(model, &state, older);
        older = head;
    }
    hpct_model_add_flatten(model);
    hpct_model_add_dense(
        model, &(hpct_dense){.units = shard_draw(&state, 8, 40), .activation = HPCT_TANH});
    return finish(model, shard_draw(&state, 0, 1) == 1, accumulation, seed);
}

/* ---- where to cut ---- */

/* Least period, or least bytes within a limit, of cutting the operations from `first` on into so
 * many stages, by trying all. single: the cut of one operation for each stage. */
static double every_cut(const hpct_split_cut *single, int first, int stages, double limit,
                        bool bytes)
{
    double best = INFINITY;
    int most = single->stages - stages + 1;
    double wire =
        (double) (single->values[first] > single->gradients[first] ? single->values[first]
                                                                   : single->gradients[first]) *
        4 / 1.25e8;
    double crossing = (double) (single->values[first] + single->gradients[first]), seconds = 0;
    for (int end = first + 1; end <= most; end++) {
        seconds += single->seconds[end - 1];
        double slowest = fmax(seconds, wire);
        if (stages == 1 && end < single->stages)
            continue;
        double rest = stages == 1 ? 0 : every_cut(single, end, stages - 1, limit, bytes);
        if (slowest <= limit)
            best = fmin(best, bytes ? crossing + rest : fmax(slowest, rest));
    }
    return best;
}

TEST(cuts_are_the_best)
{
    int tried = 0;
    for (int seed = 0; seed < unit_cases(60); seed++) {
        hpct_model *model = draw_model((uint64_t) seed, 1);
        hpct_split_cut single, cut;
        assert_int_equal(hpct_split_cut_find(&single, model, hpct_split_cut_most(model)), HPCT_OK);
        for (int stages = 1; stages <= 5 && stages <= single.stages; stages++) {
            size_t sent = 0;
            assert_int_equal(hpct_split_cut_find(&cut, model, stages), HPCT_OK);
            double least = every_cut(&single, 0, stages, INFINITY, false);
            assert_true(cut.slowest <= 1.0500001 * least && cut.slowest >= 0.9999999 * least);
            for (int stage = 0; stage < stages; stage++)
                sent += cut.values[stage] + cut.gradients[stage];
            /* within rounding of the limit either may count a cut in */
            assert_true((double) sent <= every_cut(&single, 0, stages, 1.0499999 * least, true));
            assert_true((double) sent >= every_cut(&single, 0, stages, 1.0500001 * least, true));
            tried++;
        }
        assert_int_equal(hpct_split_cut_find(&cut, model, hpct_split_cut_most(model) + 1),
                         HPCT_ERR_CONFIG);
        hpct_model_free(model);
    }
    print_message("%d cuts\n", tried);
}

/* Dense 8 feeds Dense 6, whose Concatenate with Dense 8 feeds the output: by hand. */
TEST(borders_carry_what_is_read_behind)
{
    hpct_model *model = hpct_model_new("skip", HPCT_SHAPE(4));
    hpct_split_cut cut;
    hpct_model_add_dense(model, &(hpct_dense){.units = 8, .activation = HPCT_TANH});
    int shortcut = hpct_model_head(model); /* operations: dense, tanh */
    hpct_model_add_dense(model, &(hpct_dense){.units = 6, .activation = HPCT_TANH});
    hpct_model_add_concatenate(model, (int[]){shortcut, hpct_model_head(model)}, 2);
    hpct_model_add_dense(model, &(hpct_dense){.units = 3});
    assert_int_equal(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                                        &(hpct_optimizer){0}),
                     HPCT_OK);
    static const size_t floats[] = {0, 8, 8, 8 + 6, 8 + 6, 14};
    assert_int_equal(hpct_split_cut_find(&cut, model, 6), HPCT_OK);
    for (int stage = 0; stage < 6; stage++) {
        assert_int_equal(cut.first[stage], stage);
        assert_int_equal(cut.values[stage], floats[stage]);
        assert_int_equal(cut.gradients[stage], floats[stage]);
    }
    hpct_model_free(model);
}

/* ---- stages beside the whole ---- */

/* One micro-batch between two stages. */
typedef struct message {
    bool here;
    float *floats;
} message;

typedef struct worker {
    hpct_split_stage *stage;
    int forwards, backwards, in_flight, peak;
    hpct_backend_batch_sums sums;
} worker;

typedef struct scene {
    const char *backend;
    uint64_t seed;
    hpct_split_cut cut;
    hpct_model *model;
    worker workers[HPCT_SPLIT_MAX_STAGES];
    message values[HPCT_SPLIT_MAX_STAGES][PIECES],
        gradients[HPCT_SPLIT_MAX_STAGES][PIECES]; /* into a stage */
    int sizes[PIECES], first[PIECES + 1];
} scene;

static void fill(hpct_model *model, uint64_t seed, int first, int count, float *input,
                 int32_t *labels)
{
    hpct_shape shape = hpct_model_input_shape(model);
    size_t sample = hpct_graph_shape_count(&shape);
    uint64_t state = seed + 99;
    for (int i = 0; i < first + count; i++) {
        for (size_t k = 0; k < sample; k++) {
            float value = (float) shard_draw(&state, -1000, 1000) / 1000;
            if (i >= first)
                input[(size_t) (i - first) * sample + k] = value;
        }
        int label = shard_draw(&state, 0, CLASSES - 1);
        if (i >= first)
            labels[i - first] = label;
    }
}

static void must(hpct_status status)
{
    if (status != HPCT_OK)
        fail_msg("%s", hpct_last_error());
}

static void open_worker(scene *s, int number)
{
    static const int sizes[] = {MOST_OF_A_PIECE, 1};
    worker *w = &s->workers[number];
    hpct_run_record record = {.slots = true}, own;
    hpct_run_build_options options = {.backend = s->backend,
                                      .batch_sizes = sizes,
                                      .num_batch_sizes = 2,
                                      .input_samples = s->first[PIECES]};
    w->in_flight = s->cut.stages - number < PIECES ? s->cut.stages - number : PIECES;
    must(hpct_split_stage_open(&w->stage, s->model, &s->cut, number));
    hpct_split_stage_parameters(s->model, &s->cut, number, &record.first, &record.count);
    own = record;
    own.first = 0;
    size_t floats = hpct_run_record_floats(s->model, &record), need;
    float *weights = malloc((floats + 1) * sizeof *weights);
    hpct_model *model = hpct_split_stage_model(w->stage);
    assert_int_equal(hpct_run_record_floats(model, &own), floats);
    must(hpct_run_record_put(s->model, &record, weights));
    must(hpct_split_stage_need(w->stage, &options, w->in_flight, &need));
    must(hpct_run_record_take(model, &own, weights));
    arena_bytes = 0;
    must(hpct_split_stage_build(w->stage, &options, w->in_flight));
    /* what is planned is taken, the tail of the sums aside */
    if (!(fabs((double) arena_bytes - (double) need) <= 64))
        fail_msg("seed %d, stage %d of %d: %zu bytes instead of %zu", (int) s->seed, number,
                 s->cut.stages, arena_bytes, need);
    free(weights);
    fill(model, s->seed, 0, s->first[PIECES], hpct_model_input(model), hpct_model_labels(model));
    hpct_model_set_position(model, s->seed, 3, 40);
    for (int i = 0; i < PIECES && number > 0; i++) {
        size_t values = s->cut.values[number] * MOST_OF_A_PIECE;
        s->values[number][i].floats = malloc((values + 1) * sizeof(float));
        s->gradients[number - 1][i].floats = malloc((values + 1) * sizeof(float));
    }
}

static hpct_split_piece piece_of(const scene *s, const worker *w, int i)
{
    return (hpct_split_piece){.place = i % w->in_flight,
                              .first = s->first[i],
                              .count = s->sizes[i],
                              .number = i,
                              .total = PIECES};
}

/* The next forward or backward of this stage, if its message is there. */
static bool go_on(scene *s, int number)
{
    worker *w = &s->workers[number];
    bool first = number == 0, last = number + 1 == s->cut.stages;
    int i = w->forwards, k = w->backwards, open = i - k;
    if (i < PIECES && open < w->in_flight && (first || s->values[number][i].here)) {
        hpct_split_piece piece = piece_of(s, w, i);
        must(hpct_split_stage_forward(w->stage, &piece, first ? NULL : s->values[number][i].floats,
                                      last ? NULL : s->values[number + 1][i].floats));
        w->forwards++;
        w->peak = open + 1 > w->peak ? open + 1 : w->peak;
        if (!last)
            s->values[number + 1][i].here = true;
        return true;
    }
    if (k < i && (last || s->gradients[number][k].here)) {
        hpct_split_piece piece = piece_of(s, w, k);
        bool back = !first && s->cut.gradients[number] > 0;
        must(hpct_split_stage_backward(w->stage, &piece, 1.0f / (float) s->first[PIECES],
                                       last ? NULL : s->gradients[number][k].floats,
                                       back ? s->gradients[number - 1][k].floats : NULL, &w->sums));
        w->backwards++;
        if (!first)
            s->gradients[number - 1][k].here = true;
        return true;
    }
    return false;
}

static void step_stages(scene *s)
{
    bool moved = true;
    long before = allocations;
    for (int number = 0; number < s->cut.stages; number++)
        hpct_split_stage_begin(s->workers[number].stage);
    while (moved) {
        moved = false;
        for (int number = s->cut.stages - 1; number >= 0; number--)
            moved = go_on(s, number) || moved;
    }
    for (int number = 0; number < s->cut.stages; number++) {
        bool due;
        worker *w = &s->workers[number];
        hpct_split_stage_end(w->stage);
        assert_int_equal(w->backwards, PIECES);
        must(hpct_model_accumulate(hpct_split_stage_model(w->stage), &due));
        assert_true(due);
        must(hpct_model_update(hpct_split_stage_model(w->stage)));
    }
    assert_int_equal(allocations, before);
}

/* Every piece as a batch of its own, their gradients weighted alike. */
static void step_whole(const scene *s, hpct_model *whole, hpct_backend_batch_sums *sums)
{
    static const int sizes[] = {MOST_OF_A_PIECE, 1};
    hpct_run_build_options options = {
        .backend = s->backend, .batch_sizes = sizes, .num_batch_sizes = 2};
    must(hpct_model_build(whole, &options));
    for (int i = 0; i < PIECES; i++) {
        bool due;
        hpct_backend_batch_sums one = {0};
        fill(whole, s->seed, s->first[i], s->sizes[i], hpct_model_input(whole),
             hpct_model_labels(whole));
        hpct_model_set_position(whole, s->seed, 3, 40 + s->first[i]);
        must(hpct_model_forward(whole, s->sizes[i], true));
        must(hpct_model_loss(whole, s->sizes[i], (float) PIECES / (float) s->first[PIECES], &one));
        must(hpct_model_backward(whole, s->sizes[i]));
        must(hpct_model_accumulate(whole, &due));
        if (due)
            must(hpct_model_update(whole));
        sums->loss += one.loss;
        sums->correct += one.correct;
    }
}

static void compare(scene *s, hpct_model *whole, const hpct_backend_batch_sums *expected)
{
    const hpct_backend_batch_sums *sums = &s->workers[s->cut.stages - 1].sums;
    if (!(fabs(sums->loss - expected->loss) <= 1e-5 * expected->loss) ||
        sums->correct != expected->correct)
        fail_msg("seed %d, %d stages, %s: loss %.9g instead of %.9g", (int) s->seed, s->cut.stages,
                 s->backend, sums->loss, expected->loss);
    for (int number = 0; number < s->cut.stages; number++) {
        hpct_model *model = hpct_split_stage_model(s->workers[number].stage);
        hpct_run_record record = {.slots = true}, own;
        hpct_split_stage_parameters(whole, &s->cut, number, &record.first, &record.count);
        own = record;
        own.first = 0;
        size_t floats = hpct_run_record_floats(whole, &record);
        float *a = malloc((floats + 1) * sizeof *a), *b = malloc((floats + 1) * sizeof *b);
        double difference = 0, norm = 0;
        must(hpct_run_record_put(model, &own, a));
        must(hpct_run_record_put(whole, &record, b));
        for (size_t i = 0; i < floats; i++) {
            difference += pow((double) a[i] - (double) b[i], 2);
            norm += pow((double) b[i], 2);
        }
        if (!(sqrt(difference) <= 1e-5 * sqrt(norm)))
            fail_msg("seed %d, stage %d of %d, %s: differs by %g of %g", (int) s->seed, number,
                     s->cut.stages, s->backend, sqrt(difference), sqrt(norm));
        assert_int_equal(s->workers[number].peak, s->workers[number].in_flight);
        free(a);
        free(b);
    }
}

typedef hpct_model *maker(uint64_t seed, int accumulation);

/* As many operations in each stage, wherever that cuts. */
static void cut_evenly(hpct_split_cut *cut, const hpct_model *model, int stages)
{
    hpct_split_cut single;
    must(hpct_split_cut_find(&single, model, hpct_split_cut_most(model)));
    *cut = (hpct_split_cut){.stages = stages};
    for (int stage = 0; stage <= stages; stage++) {
        int first = cut->first[stage] = single.stages * stage / stages;
        cut->values[stage] = stage < stages ? single.values[first] : 0;
        cut->gradients[stage] = stage < stages ? single.gradients[first] : 0;
    }
}

static void try_stages(const char *backend, maker *make, uint64_t seed, int stages)
{
    scene *s = calloc(1, sizeof *s);
    hpct_model *whole = make(seed, PIECES);
    hpct_backend_batch_sums expected = {0};
    s->backend = backend;
    s->seed = seed;
    s->model = make(seed, 1);
    for (int i = 0; i < PIECES; i++) { /* not all of one size */
        s->sizes[i] = i < 3 ? MOST_OF_A_PIECE : 1;
        s->first[i + 1] = s->first[i] + s->sizes[i];
    }
    if (stages > hpct_split_cut_most(s->model))
        stages = hpct_split_cut_most(s->model);
    if (make == shortcuts_model)
        cut_evenly(&s->cut, s->model, stages);
    else
        must(hpct_split_cut_find(&s->cut, s->model, stages));
    for (int number = 0; number < stages; number++)
        open_worker(s, number);
    step_stages(s);
    step_whole(s, whole, &expected);
    compare(s, whole, &expected);
    for (int number = 0; number < stages; number++) {
        hpct_split_stage_close(s->workers[number].stage);
        for (int i = 0; i < PIECES; i++) {
            free(s->values[number][i].floats);
            free(s->gradients[number][i].floats);
        }
    }
    hpct_model_free(s->model);
    hpct_model_free(whole);
    free(s);
}

static void try_graphs(const char *backend, int seeds)
{
    for (int seed = 0; seed < seeds; seed++)
        try_stages(backend, draw_model, (uint64_t) seed, seed % 4 == 3 ? 99 : 1 + seed % 8);
}

TEST(test_ref)
{
    try_graphs("ref", getenv("HPC_TRAIN_LONG") != NULL ? 400 : unit_cases(24));
}

TEST(test_cpu)
{
    try_graphs("cpu", getenv("HPC_TRAIN_LONG") != NULL ? 400 : unit_cases(24));
}

TEST(test_shortcuts)
{
    for (int stages = 2; stages < 10; stages++)
        try_stages("ref", shortcuts_model, (uint64_t) stages, stages);
}

TEST(test_separable)
{
    for (int stages = 2; stages < 8; stages++)
        try_stages(stages % 2 == 0 ? "ref" : "cpu", separable_model, (uint64_t) stages, stages);
}

TEST(what_needs_all_gradients_is_refused)
{
    hpct_model *model = draw_model(1, 1);
    hpct_split_cut cut;
    hpct_split_stage *stage = NULL;
    must(hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS,
                            &(hpct_optimizer){.global_clipnorm = 1}));
    must(hpct_split_cut_find(&cut, model, 2));
    assert_int_equal(hpct_split_stage_open(&stage, model, &cut, 0), HPCT_ERR_CONFIG);
    assert_null(stage);
    hpct_model_free(model);
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return unit_run(NULL, NULL);
}
