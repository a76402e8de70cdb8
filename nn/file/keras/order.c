/* Keras' order of layers. Source: map_graph in keras/src/ops/function.py. */
#include "nn/file/keras/order.h"

#include "base/status.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct place {
    int layer, depth, met;
} place;

/* The layer that produces a tensor; -1 for the model's input. */
static int layer_of(const hpct_model *model, int tensor)
{
    return model->tensors[tensor].layer;
}

/* Whether both are in one nested Sequential, which Keras' order has as one layer. */
static bool together(const hpct_model *model, int a, int b)
{
    const char *within = model->layers[a].within;
    return within[0] != '\0' && strcmp(within, model->layers[b].within) == 0;
}

/* Depth-first search; layers not visited yet have met == -1. Not recursive, as models may be
 * deep. */
static void walk(const hpct_model *model, place *places, int *stack)
{
    int height = 0, met = 0, reader = -1, last = layer_of(model, model->output);
    if (last >= 0)
        stack[height++] = last;
    while (height > 0) {
        int index = stack[--height];
        if (places[index].met >= 0)
            continue;
        if (reader >= 0 && together(model, reader, index))
            places[index].met = places[reader].met;
        else
            places[index].met = met++;
        reader = index; /* of the layer before in a nested Sequential, which is next */
        const hpct_layer *layer = &model->layers[index];
        for (int k = layer->num_inputs - 1; k >= 0; k--) {
            int before = layer_of(model, layer->inputs[k]);
            if (before >= 0 && places[before].met < 0)
                stack[height++] = before;
        }
    }
}

/* Layers are in topological order, so that one pass from the end suffices. */
static void find_depths(const hpct_model *model, place *places)
{
    for (int i = model->num_layers - 1; i >= 0; i--) {
        const hpct_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->num_inputs; k++) {
            int before = layer_of(model, layer->inputs[k]);
            int depth =
                before >= 0 && together(model, before, i) ? places[i].depth : places[i].depth + 1;
            if (before >= 0 && places[before].depth < depth)
                places[before].depth = depth;
        }
    }
}

static int compare(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->depth != y->depth)
        return y->depth - x->depth;
    return x->met != y->met ? x->met - y->met : x->layer - y->layer; /* nested: their own order */
}

hpct_status hpct_keras_order(const hpct_model *model, int *order)
{
    size_t count = (size_t) model->num_layers, edges = count + 1;
    for (size_t i = 0; i < count; i++)
        edges += (size_t) model->layers[i].num_inputs;
    place *places = calloc(count + 1, sizeof *places);
    int *stack = calloc(edges, sizeof *stack);
    hpct_status status = HPCT_OK;
    if (places != NULL && stack != NULL) {
        for (int i = 0; i < model->num_layers; i++)
            places[i] = (place){.layer = i, .met = -1};
        walk(model, places, stack);
        find_depths(model, places);
        qsort(places, count, sizeof *places, compare);
        for (size_t i = 0; i < count; i++)
            order[i] = places[i].layer;
    } else
        status = hpct_fail_memory(count * sizeof *places + edges * sizeof *stack);
    free(stack);
    free(places);
    return status;
}

void hpct_keras_stem(const char *class_name, char stem[HPCT_KERAS_STEM_SIZE])
{
    size_t used = 0;
    for (const char *c = class_name; *c != '\0' && used + 2 < HPCT_KERAS_STEM_SIZE; c++) {
        bool begins = c > class_name && isupper((unsigned char) *c) &&
                      (islower((unsigned char) c[-1]) || islower((unsigned char) c[1]));
        if (begins)
            stem[used++] = '_';
        stem[used++] = (char) tolower((unsigned char) *c);
    }
    stem[used] = '\0';
}
