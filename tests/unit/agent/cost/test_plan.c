/* plan: what users write, rows, the file of compute times; and steps that sleep. */
#include "agent/cost/compute.h"
#include "agent/cost/emulate.h"
#include "agent/cost/made_up.h"
#include "agent/rank/context.h"
#include "nn/plan/run.h"
#include "nn/run/step.h"
#include "tests/unit/unit.h"

#include <hpctrain/hpctrain.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

TEST(networks)
{
    static const struct {
        const char *text;
        double latency, rate;
    } right[] = {
        {"50us,1gbit", 50e-6, 125e6},   {"0us,100mbit", 0, 12.5e6},
        {"1.5ms,640kbit", 1.5e-3, 8e4}, {"800ns,12.5GB/s", 8e-7, 12.5e9},
        {"2s,3MB/s", 2, 3e6},
    };
    static const char *const wrong[] = {
        "",
        ",",
        "50us",
        "50us,",
        ",1gbit",
        "50,1gbit",
        "50us,1",
        "50us,0gbit",
        "-1us,1gbit",
        "50us,-1gbit",
        "50 us,1gbit",
        "50us, 1gbit",
        "50us,1gbit ",
        "50us,1gbits",
        "50us,1Gbit",
        "50us,1gbit,2",
        "5e1us,1gbit",
        ".5us,1gbit",
        "5.us,1gbit",
        "us,gbit",
        "50us,infgbit",
        "0x1us,1gbit",
        "1234567890123us,1gbit",
    };
    double latency, rate;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(hpct_plan_parse_network(right[i].text, &latency, &rate), HPCT_OK);
        assert_true(fabs(latency - right[i].latency) <= 1e-12 * right[i].latency);
        assert_true(fabs(rate - right[i].rate) <= 1e-12 * right[i].rate);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        latency = rate = 7;
        assert_int_equal(hpct_plan_parse_network(wrong[i], &latency, &rate), HPCT_ERR_USAGE);
        assert_true(latency == 7 && rate == 7);
    }
}

TEST(numbers_of_nodes)
{
    static const struct {
        const char *text;
        int count, nodes[12];
    } right[] = {
        {"1", 1, {1}},
        {"1,2,4", 3, {1, 2, 4}},
        {"1,2,4,...,1024", 11, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}},
        {"3,...,20", 4, {3, 6, 12, 20}},
        {"1-4,8", 5, {1, 2, 3, 4, 8}},
        {"2,...,8-10", 5, {2, 4, 8, 9, 10}},
        {"1000000", 1, {1000000}},
    };
    static const char *const wrong[] = {
        "",         ",",
        "0",        "1,",
        ",1",       "1,,2",
        "1,1",      "2,1",
        "1,x",      "1 ,2",
        "-1",       "1-",
        "1-1",      "3-2",
        "...,8",    "1,...",
        "1,...,",   "1,...,1",
        "1,....,8", "1000001",
        "1-20",     "99999999999999999",
    };
    int nodes[12], count;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(hpct_plan_parse_nodes(right[i].text, nodes, 12, &count), HPCT_OK);
        assert_int_equal(count, right[i].count);
        assert_memory_equal(nodes, right[i].nodes, (size_t) count * sizeof *nodes);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        count = 7;
        assert_int_equal(hpct_plan_parse_nodes(wrong[i], nodes, 12, &count), HPCT_ERR_USAGE);
        assert_int_equal(count, 7);
    }
}

static hpct_model *ready_model(const char *name)
{
    hpct_model *model;
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 1e-6};
    assert_int_equal(hpct_model_builtin(&model, name), HPCT_OK);
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &sgd), HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 0), HPCT_OK);
    return model;
}

TEST(parts_of_a_model)
{
    hpct_model *model = ready_model("mnist-convnet");
    size_t gradients = 0;
    static const char *const kinds[] = {"conv2d", "max_pool2d", "conv2d", "max_pool2d", "dense"};
    for (int i = 0; i < 5; i++) {
        hpct_run_part part = hpct_model_part(model, i);
        assert_string_equal(part.kind, kinds[i]);
        assert_int_equal(part.input, i - 1); /* views between them count for nothing */
        assert_int_equal(part.split, i % 2 == 0 ? HPCT_RUN_PART_MAKES : HPCT_RUN_PART_PASSES_ON);
        assert_true(part.dense == (i == 4));
        gradients += part.gradients;
        if (part.rows > 0)
            assert_int_equal(part.gradients, part.rows * part.cols + part.cols);
    }
    assert_int_equal(gradients, 62346);
    assert_int_equal(hpct_model_part(model, 4).rows, 1024);
    assert_int_equal(hpct_model_part(model, 4).cols, 10);
    assert_int_equal(hpct_model_part(model, 0).results, 24 * 24 * 32);
    hpct_model_free(model);
}

/* A file that is written is read again as it was; damaged ones, and another model's, are refused.
 */
TEST(compute_times)
{
    char path[] = "/tmp/hpct-plan-XXXXXX", damaged[] = "/tmp/hpct-plan-XXXXXX";
    hpct_cost_compute wrote, read;
    hpct_model *model = ready_model("mnist-convnet"), *other = ready_model("mnist-cnn");
    close(mkstemp(path));
    close(mkstemp(damaged));
    assert_int_equal(hpct_cost_compute_measure(&wrote, model, 4, &hpct_cost_compute_careful),
                     HPCT_OK);
    assert_int_equal(wrote.samples[0], 4);
    assert_int_equal(wrote.samples[1], 2);
    assert_int_equal(hpct_cost_compute_write(&wrote, path), HPCT_OK);
    assert_int_equal(hpct_cost_compute_read(&read, model, path), HPCT_OK);
    for (int i = 0; i < 2; i++) {
        for (int way = 0; way < HPCT_COST_COMPUTE_WAYS; way++) {
            for (int k = 0; k < wrote.num_parts; k++) {
                const hpct_run_part_seconds *a = &wrote.seconds[i][way].parts[k];
                const hpct_run_part_seconds *b = &read.seconds[i][way].parts[k];
                assert_true(a->forward > 0 && a->backward > 0);
                assert_true(fabs(a->forward - b->forward) <= 1e-8 * a->forward);
                assert_true(fabs(a->backward - b->backward) <= 1e-8 * a->backward);
            }
        }
    }
    hpct_cost_compute_free(&read);
    assert_int_equal(hpct_cost_compute_read(&read, other, path), HPCT_ERR_USAGE);
    assert_non_null(strstr(hpct_last_error(), "times of mnist-convnet"));
    char text[16384];
    FILE *file = fopen(path, "r");
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    static const char *const marks[] = {"\"version\": 1", "\"samples\": 4", "\"stored\"",
                                        "\"threads\"",    "\"parts\": [",   "\"bytes_per_second\""};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        char *mark = strstr(text, marks[i]);
        assert_non_null(mark);
        char *end = mark + strlen(marks[i]) - 1, kept = *end;
        *end = '7';
        file = fopen(damaged, "w");
        fwrite(text, 1, size, file);
        fclose(file);
        *end = kept;
        assert_int_equal(hpct_cost_compute_read(&read, model, damaged),
                         strcmp(marks[i], "\"samples\": 4") == 0 ? HPCT_OK : HPCT_ERR_DATA);
        if (strcmp(marks[i], "\"samples\": 4") == 0)
            hpct_cost_compute_free(&read);
        else
            assert_non_null(strstr(hpct_last_error(), damaged));
    }
    unlink(path);
    unlink(damaged);
    hpct_cost_compute_free(&wrote);
    hpct_model_free(model);
    hpct_model_free(other);
}

TEST(lines_through_measurements)
{
    hpct_run_part_seconds a[] = {{7, 10}, {4, 3}}, b[] = {{4, 10}, {1, 3.5}}, got[2];
    hpct_cost_part_work work[4];
    hpct_cost_model cost;
    hpct_cost_compute compute = {.samples = {8, 4},
                                 .num_parts = 2,
                                 .seconds = {{{a, 2, 1}, {a, 2, 1}}, {{b, 1, 1}, {b, 1, 1}}}};
    hpct_cost_compute_cost(&compute, work, &cost);
    assert_true(work[0].forward.fixed == 1 && work[0].forward.each == 0.75);
    assert_true(work[0].backward.fixed == 10 && work[0].backward.each == 0);
    assert_true(work[1].forward.fixed == 0 && work[1].forward.each == 0.5); /* through the origin */
    assert_true(work[1].backward.fixed == 3 && work[1].backward.each == 0); /* fewer take longer */
    assert_true(cost.update == 1 && cost.loss.fixed == 0 && cost.loss.each == 0.25);
    hpct_run_step_seconds at = {.parts = got};
    hpct_cost_compute_at(&compute, HPCT_COST_STORED, 4, &at);
    assert_true(got[0].forward == 4 && got[1].forward == 1 && got[1].backward == 3.5);
    hpct_cost_compute_at(&compute, HPCT_COST_STORED, 16, &at);
    assert_true(got[0].forward == 13 && got[0].backward == 10 && at.loss == 4);
    compute.samples[1] = 0;
    hpct_cost_compute_cost(&compute, work, &cost);
    assert_true(work[0].forward.fixed == 0 && work[0].forward.each == 7.0 / 8);
}

static double clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* Operations are slept, and nothing of the model changes. */
TEST(emulated_steps)
{
    enum { STEPS = 5 };
    int batch = 2;
    hpct_model *model = ready_model("mnist-convnet");
    hpct_run_build_options build = {.backend = "cpu", .batch_sizes = &batch, .num_batch_sizes = 1};
    assert_int_equal(hpct_model_build(model, &build), HPCT_OK);
    assert_int_equal(hpct_cost_made_up_batch(model, batch, 0), HPCT_OK);
    hpct_run_part_seconds each[] = {{1e-3, 2e-3}, {1e-3, 1e-3}, {2e-3, 4e-3},
                                    {1e-3, 1e-3}, {1e-3, 2e-3}, {0, 0}}; /* the softmax */
    assert_int_equal(hpct_model_count_parts(model), sizeof each / sizeof *each);
    hpct_run_step_seconds seconds = {.parts = each, .loss = 1e-3, .update = 3e-3}; /* 20 ms */
    assert_int_equal(hpct_model_emulate(model, &seconds), HPCT_OK);
    size_t count;
    float *parameters = hpct_model_parameters(model, &count);
    float *before = malloc(count * sizeof *before);
    memcpy(before, parameters, count * sizeof *before);
    double began = clock_now();
    for (int i = 0; i < STEPS; i++) {
        hpct_backend_batch_sums sums = {1, 1, 1};
        bool due;
        assert_int_equal(hpct_model_forward(model, batch, true), HPCT_OK);
        assert_int_equal(hpct_model_loss(model, batch, 0.5f, &sums), HPCT_OK);
        assert_true(sums.loss == 0 && sums.correct == 0);
        assert_int_equal(hpct_model_backward(model, batch), HPCT_OK);
        assert_int_equal(hpct_model_accumulate(model, &due), HPCT_OK);
        assert_int_equal(hpct_model_update(model), HPCT_OK);
    }
    /* never shorter, but for what the last sleep before was too long */
    assert_true(clock_now() - began >= STEPS * 20e-3);
    assert_memory_equal(before, hpct_model_parameters(model, &count), count * sizeof *before);
    assert_int_equal(hpct_model_emulate(model, NULL), HPCT_OK);
    hpct_backend_batch_sums sums;
    assert_int_equal(hpct_model_forward(model, batch, true), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, batch, 0.5f, &sums), HPCT_OK);
    assert_true(sums.loss > 0); /* it computes again */
    free(before);
    hpct_model_free(model);
}

/* The sums of synchronized BatchNormalization are sent nevertheless. */
static size_t sent;
static hpct_status count_sum(void *argument, float *data, size_t count)
{
    (void) argument;
    for (size_t i = 0; i < count; i++)
        assert_true(isfinite(data[i]));
    sent += count;
    return HPCT_OK;
}

TEST(messages_are_sent)
{
    int batch = 2;
    hpct_optimizer sgd = {.kind = HPCT_SGD, .learning_rate = 0.1};
    hpct_run_build_options build = {.backend = "cpu", .batch_sizes = &batch, .num_batch_sizes = 1};
    hpct_model *model = hpct_model_new("normed", HPCT_SHAPE(8, 8, 3));
    assert_non_null(model);
    hpct_conv2d conv = {.filters = 8, .kernel = {3, 3}};
    hpct_batch_normalization norm = {.synchronized = true};
    hpct_dense dense = {.units = 4};
    hpct_model_add_conv2d(model, &conv);
    hpct_model_add_batch_normalization(model, &norm);
    hpct_model_add_flatten(model);
    hpct_model_add_dense(model, &dense);
    hpct_optimizer thrice = sgd;
    thrice.gradient_accumulation_steps = 3;
    assert_int_equal(
        hpct_model_compile(model, HPCT_SPARSE_CATEGORICAL_CROSSENTROPY_FROM_LOGITS, &thrice),
        HPCT_OK);
    assert_int_equal(hpct_model_initialize(model, 0), HPCT_OK);
    assert_int_equal(hpct_model_build(model, &build), HPCT_OK);
    assert_int_equal(hpct_cost_made_up_batch(model, batch, 0), HPCT_OK);
    hpct_model_set_peers(model, &(hpct_graph_step_peers){.sum = count_sum});
    hpct_run_part_seconds each[8] = {{0, 0}};
    hpct_run_step_seconds seconds = {.parts = each};
    assert_true(hpct_model_count_parts(model) <= 8);
    assert_int_equal(hpct_model_time_parts(model, batch, 1, &seconds), HPCT_OK);
    assert_int_equal(sent, 0); /* measured as if alone */
    assert_int_equal(hpct_model_emulate(model, &seconds), HPCT_OK);
    hpct_backend_batch_sums sums;
    assert_int_equal(hpct_model_forward(model, batch, true), HPCT_OK);
    assert_int_equal(hpct_model_loss(model, batch, 0.5f, &sums), HPCT_OK);
    assert_int_equal(hpct_model_backward(model, batch), HPCT_OK);
    assert_int_equal(sent, hpct_model_synced_floats(model));
    for (int i = 0; i < 3; i++) { /* where the accumulation was before times were taken */
        bool due;
        assert_int_equal(hpct_model_accumulate(model, &due), HPCT_OK);
        assert_int_equal(due, i == 2);
        if (due)
            assert_int_equal(hpct_model_update(model), HPCT_OK);
    }
    hpct_model_free(model);
}

TEST(rows)
{
    static const int nodes[] = {1, 2, 4, 512};
    hpct_context *context;
    hpct_plan *plan;
    hpct_model *model = ready_model("mnist-cnn");
    assert_int_equal(hpct_context_open_alone(&context), HPCT_OK);
    hpct_plan_options options = {.batch_size = 4,
                                 .nodes = nodes,
                                 .num_nodes = 4,
                                 .latency_seconds = 1e-4,
                                 .bytes_per_second = 1e6};
    assert_int_equal(hpct_plan_make(&plan, context, model, &options), HPCT_OK);
    int count, best = 0;
    const hpct_plan_row *all = hpct_plan_rows(plan, &count);
    for (int i = 0; i < count; i++) {
        const hpct_plan_row *row = &all[i];
        assert_int_equal(row->global_batch, 4 * row->nodes);
        assert_true(fabs(row->images_per_second * row->step_seconds - row->global_batch) < 1e-6);
        assert_true(fabs(row->efficiency * row->nodes - row->speed_up) < 1e-9 * row->speed_up);
        if (row->best) {
            assert_int_equal(row->nodes, nodes[best++]);
            assert_true(row->exact);
            if (row->nodes == 1)
                assert_true(row->speed_up == 1);
            if (row->nodes == 2) /* 11 MB through 1 MB/s, or some kB */
                assert_true(strncmp(row->strategy, "hybrid", 6) == 0);
        } else {
            assert_true(row->nodes == all[i - 1].nodes);
        }
    }
    assert_int_equal(best, 4);
    hpct_plan_free(plan);
    static const int none[] = {0}, many[] = {8};
    options.nodes = none;
    options.num_nodes = 1;
    assert_int_equal(hpct_plan_make(&plan, context, model, &options), HPCT_ERR_USAGE);
    options.nodes = many;
    options.batch_size = 0;
    options.global_batch_size = 7;
    assert_int_equal(hpct_plan_make(&plan, context, model, &options), HPCT_ERR_USAGE);
    options.global_batch_size = 8;
    options.bytes_per_second = options.latency_seconds = 0;
    assert_int_equal(hpct_plan_make(&plan, context, model, &options), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "--network LATENCY,BANDWIDTH"));
    hpct_context_close(context);
    hpct_model_free(model);
}
