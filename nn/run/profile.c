/* Times of a step's operations, summed to rows by layer. */
#include "nn/run/profile.h"

#include "base/status.h"
#include "nn/graph/cost.h"
#include "nn/run/run.h"

#include <stdlib.h>
#include <time.h>

struct hpct_run_profile {
    hpct_model *model;
    hpct_run_times times;
    hpct_run_profile_row *rows; /* [layers + 2] */
};

double hpct_run_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

hpct_status hpct_run_profile_start(hpct_run_profile **out, hpct_model *model, int steps)
{
    if (model->run == NULL || !model->run->training)
        return hpct_fail(HPCT_ERR_USAGE, "model %s is not built for training", model->name);
    hpct_run_profile *profile = calloc(1, sizeof *profile);
    if (profile == NULL)
        return hpct_fail_memory(sizeof *profile);
    profile->model = model;
    profile->times.slots = HPCT_RUN_TIMES_OF(model->num_nodes);
    profile->times.steps = steps;
    profile->times.step = -1;
    size_t count = (size_t) steps * (size_t) profile->times.slots;
    profile->times.seconds = calloc(count, sizeof *profile->times.seconds);
    profile->rows = calloc((size_t) model->num_layers + 2, sizeof *profile->rows);
    if (profile->times.seconds == NULL || profile->rows == NULL) {
        hpct_run_profile_stop(profile);
        return hpct_fail_memory(count * sizeof *profile->times.seconds);
    }
    model->run->times = &profile->times;
    *out = profile;
    return HPCT_OK;
}

void hpct_run_profile_stop(hpct_run_profile *profile)
{
    if (profile == NULL)
        return;
    if (profile->model->run->times == &profile->times)
        profile->model->run->times = NULL;
    free(profile->times.seconds);
    free(profile->rows);
    free(profile);
}

static double mean(const hpct_run_profile *profile, int slot, const int *num, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum +=
            profile->times.seconds[(size_t) num[i] * (size_t) profile->times.slots + (size_t) slot];
    return count > 0 ? sum / count : 0;
}

static size_t floats_of(const hpct_model *model, int tensor)
{
    return hpct_graph_shape_count(&model->tensors[hpct_run_root(model, model->run, tensor)].shape);
}

/* The batch size of the last step. */
static int find_batch(const hpct_model *model)
{
    int i = 0;
    while (i < model->run->batches.num - 1 && model->run->batches.sizes[i] != model->run->stage_n)
        i++;
    return i;
}

/* Adds a node to its layer's row. */
static void add_node(const hpct_run_profile *profile, int i, const int *num, int count,
                     hpct_run_profile_row *row)
{
    const hpct_model *model = profile->model;
    const hpct_graph_node *node = &model->nodes[i];
    const hpct_run_node *built = &model->run->nodes[i];
    int n = hpct_graph_node_samples(model, node, model->run->stage_n);
    size_t in = 0, out = floats_of(model, node->output);
    for (int k = 0; k < node->num_inputs && !built->fused_away; k++)
        in += floats_of(model, node->inputs[k]);
    if (built->fused_away)
        out = 0;
    /* work of fused nodes is counted at the node that executes it */
    bool left = built->fused_forward || built->op->build.fused_downstream;
    size_t other = built->op->build.adds ? out : 0;
    hpct_graph_cost cost = hpct_graph_cost_forward(
        built->op, n, built->fused_forward ? 0 : in + other, left ? 0 : out);
    if (built->op->class->describe != NULL && !built->fused_away)
        built->op->class->describe(built->op, find_batch(model), row->kernels, sizeof row->kernels);
    row->name = model->layers[node->layer].name;
    row->type = model->layers[node->layer].type;
    row->forward_seconds += mean(profile, HPCT_RUN_TIME_FORWARD(i), num, count);
    row->forward_flops += cost.flops;
    row->bytes += cost.bytes;
    if (!built->backward)
        return;
    cost = hpct_graph_cost_backward(built->op, n, in, out);
    row->backward_seconds += mean(profile, HPCT_RUN_TIME_BACKWARD(i), num, count);
    row->backward_flops += cost.flops;
    row->bytes += cost.bytes;
}

/* Parameters and slots read and written, gradients read; further passes for norms are not
 * counted. */
static double update_bytes(const hpct_run *run)
{
    double floats = 0;
    for (int i = 0; i < run->arenas.num_updates; i++)
        floats += (double) run->arenas.updates[i].count;
    int arenas = 3;
    for (int k = 0; k < HPCT_GRAPH_MAX_SLOTS; k++)
        arenas += run->arenas.slot[k] != NULL ? 2 : 0;
    return sizeof(float) * floats * arenas;
}

const hpct_run_profile_row *hpct_run_profile_rows(hpct_run_profile *profile, const int *num,
                                                  int count, int *num_rows)
{
    const hpct_model *model = profile->model;
    int rows = 0;
    for (int layer = 0; layer < model->num_layers; layer++) {
        hpct_run_profile_row *row = &profile->rows[rows];
        *row = (hpct_run_profile_row){0};
        for (int i = 0; i < model->num_nodes; i++) {
            if (model->nodes[i].layer == layer)
                add_node(profile, i, num, count, row);
        }
        rows += row->name != NULL;
    }
    profile->rows[rows++] = (hpct_run_profile_row){
        .name = "loss",
        .type = "",
        .forward_seconds = mean(profile, HPCT_RUN_TIME_LOSS(model->num_nodes), num, count),
    };
    profile->rows[rows++] = (hpct_run_profile_row){
        .name = "update",
        .type = "",
        .backward_seconds = mean(profile, HPCT_RUN_TIME_UPDATE(model->num_nodes), num, count),
        .bytes = update_bytes(model->run),
    };
    *num_rows = rows;
    return profile->rows;
}

hpct_status hpct_model_measure_rates(const hpct_model *model, hpct_backend_rates *rates)
{
    if (model->run == NULL || model->run->backend->measure == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "model %s: its backend has no rates to compare with",
                         model->name);
    return model->run->backend->measure(model->precision, rates);
}
