/* hpct_model_summary: the table that Keras' model.summary() prints; hpct_model_print_costs. */
#include "nn/graph/cost.h"
#include "nn/graph/graph.h"
#include "nn/run/penalty.h"
#include "nn/run/step.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH 65
static const int columns[] = {29, 55, 65};

static void rule(FILE *stream, char mark)
{
    for (int i = 0; i < WIDTH; i++)
        fputc(mark, stream);
    fputc('\n', stream);
}

/* A table line; each cell follows a space and is cut at its column's end. */
static void row(FILE *stream, const char *first, const char *second, const char *third)
{
    const char *cells[] = {first, second, third};
    char line[WIDTH + 1];
    int start = 0;
    memset(line, ' ', WIDTH);
    line[WIDTH] = '\0';
    for (int i = 0; i < 3; i++) {
        int room = columns[i] - start - 1;
        int length = (int) strlen(cells[i]);
        memcpy(line + start + (i == 0), cells[i], (size_t) (length < room ? length : room));
        start = columns[i];
    }
    fprintf(stream, "%s\n", line);
}

/* 2770634 as "2,770,634". */
static void with_commas(size_t number, char text[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%zu", number), out = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = '\0';
}

static void shape_text(const hpct_shape *shape, char text[HPCT_GRAPH_SHAPE_TEXT])
{
    size_t used = (size_t) snprintf(text, HPCT_GRAPH_SHAPE_TEXT, "(None");
    for (int i = 0; i < shape->rank; i++)
        used +=
            (size_t) snprintf(text + used, HPCT_GRAPH_SHAPE_TEXT - used, ", %d", shape->size[i]);
    snprintf(text + used, HPCT_GRAPH_SHAPE_TEXT - used, ")");
}

/* A line for each parameter with a regularizer that counts. */
static hpct_status print_penalties(const hpct_model *model, FILE *stream)
{
    char *list = hpct_model_list_penalties(model), *rest = list, *one;
    if (list == NULL)
        return hpct_fail_memory(0);
    while (list[0] != '\0' && (one = strsep(&rest, ",")) != NULL)
        fprintf(stream, "Regularizer: %s\n", one);
    free(list);
    return HPCT_OK;
}

hpct_status hpct_model_summary(const hpct_model *model, FILE *stream)
{
    char count[32], shape[HPCT_GRAPH_SHAPE_TEXT], title[2 * HPCT_GRAPH_NAME_SIZE];
    if (model->status != HPCT_OK)
        return hpct_fail(model->status, "%s",
                         model->message != NULL ? model->message : "out of memory");
    fprintf(stream, "Model: \"%s\"\n", model->name);
    rule(stream, '_');
    row(stream, "Layer (type)", "Output Shape", "Param #");
    rule(stream, '=');
    for (int i = 0; i < model->num_layers; i++) {
        const hpct_layer *layer = &model->layers[i];
        snprintf(title, sizeof title, "%s (%s)", layer->name, layer->type);
        shape_text(&layer->output, shape);
        snprintf(count, sizeof count, "%zu", layer->parameters);
        row(stream, title, shape, count);
        row(stream, "", "", "");
    }
    rule(stream, '=');
    size_t all = hpct_model_count_parameters(model), trainable = hpct_model_count_trainable(model);
    with_commas(all, count);
    fprintf(stream, "Total params: %s\n", count);
    with_commas(trainable, count);
    fprintf(stream, "Trainable params: %s\n", count);
    with_commas(all - trainable, count);
    fprintf(stream, "Non-trainable params: %s\n", count);
    HPCT_TRY(print_penalties(model, stream));
    rule(stream, '_');
    return ferror(stream) ? hpct_fail(HPCT_ERR_IO, "writing the summary failed") : HPCT_OK;
}

static void cost_row(FILE *stream, const char *name, double flops, double floats)
{
    fprintf(stream, " %-36.36s %12.2f %13.1f\n", name, flops / 1e6, floats * sizeof(float) / 1024);
}

static void memory_row(FILE *stream, const char *name, size_t bytes)
{
    fprintf(stream, " %-36s %10.1f MiB\n", name, (double) bytes / 1048576);
}

static void print_memory(const hpct_run_memory_plan *plan, int batch_size, FILE *stream)
{
    fprintf(stream, "Memory of training, batches of %d:\n", batch_size);
    memory_row(stream, "parameters and state", plan->parameters);
    if (plan->copies > 0)
        memory_row(stream, "parameters once more, in bf16", plan->copies);
    memory_row(stream, "gradients", plan->gradients);
    memory_row(stream, "optimizer", plan->optimizer);
    memory_row(stream, "activations and their gradients", plan->activations);
    memory_row(stream, "scratch of one operation", plan->scratch);
    memory_row(stream, "in all, besides the input", hpct_run_memory_plan_total(plan));
}

hpct_status hpct_model_print_costs(const hpct_model *model, int batch_size, FILE *stream)
{
    hpct_run_memory_plan plan;
    hpct_run_build_options options = {.batch_sizes = &batch_size, .num_batch_sizes = 1};
    HPCT_TRY(hpct_model_plan(model, &options, &plan));
    double flops = 0, floats = 0;
    fprintf(stream, " %-36s %12s %13s\n", "Forward, one sample", "MFLOP", "result KiB");
    rule(stream, '=');
    for (int l = 0; l < model->num_layers; l++) {
        double layer_flops = 0, layer_floats = 0;
        for (int i = 0; i < model->num_nodes; i++) {
            if (model->nodes[i].layer != l)
                continue;
            layer_flops += hpct_op_flops(&model->nodes[i].spec);
            layer_floats += (double) hpct_op_dst_floats(&model->nodes[i].spec);
        }
        cost_row(stream, model->layers[l].name, layer_flops, layer_floats);
        flops += layer_flops;
        floats += layer_floats;
    }
    rule(stream, '=');
    cost_row(stream, "all", flops, floats);
    print_memory(&plan, batch_size, stream);
    rule(stream, '_');
    return ferror(stream) ? hpct_fail(HPCT_ERR_IO, "writing the costs failed") : HPCT_OK;
}
