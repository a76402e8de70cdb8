/* Keras' order of layers. Source: map_graph in keras/src/ops/function.py. */
#include "nn/file/keras/order.h"

#include "base/status.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* One layer or nested model of a level: layer i is item i, nested model k is num_layers + k - 1. */
typedef struct place {
    int item, depth, met;
} place;

/* A level: the model's own layers and nested models, or those of a nested one. */
typedef struct level {
    const hpct_model *model;
    int nest;
    place *places; /* by item; those of other levels stay unmet */
    int *stack;
} level;

static int num_items(const hpct_model *model)
{
    return model->num_layers + model->num_nests;
}

static int item_of_nest(const hpct_model *model, int nest)
{
    return model->num_layers + nest - 1;
}

int hpct_keras_nest_at(const hpct_model *model, int outer, int layer)
{
    int nest = model->layers[layer].nest, within = 0;
    for (; nest != outer && nest != 0; nest = hpct_graph_nest_outer(model, nest))
        within = nest;
    return nest == outer ? within : -1;
}

/* The item that produces a tensor; -1 for the level's input. */
static int item_of(const level *l, int tensor)
{
    int layer = l->model->tensors[tensor].layer;
    int nest = layer >= 0 ? hpct_keras_nest_at(l->model, l->nest, layer) : -1;
    return nest < 0 ? -1 : nest > 0 ? item_of_nest(l->model, nest) : layer;
}

/* The tensors that an item reads. */
static const int *inputs_of(const level *l, int item, int *count)
{
    const hpct_model *model = l->model;
    bool is_nest = item >= model->num_layers;
    *count = is_nest ? 1 : model->layers[item].num_inputs;
    return is_nest ? &model->nests[item - model->num_layers].input : model->layers[item].inputs;
}

/* Depth-first search; items not visited yet have met == -1. Not recursive, as models may be
 * deep. */
static void walk(level *l)
{
    const hpct_model *model = l->model;
    int height = 0, met = 0, count = 0,
        last = item_of(l, l->nest > 0 ? model->nests[l->nest - 1].output : model->output);
    if (last >= 0)
        l->stack[height++] = last;
    while (height > 0) {
        int item = l->stack[--height];
        if (l->places[item].met >= 0)
            continue;
        l->places[item].met = met++;
        const int *inputs = inputs_of(l, item, &count);
        for (int k = count - 1; k >= 0; k--) {
            int before = item_of(l, inputs[k]);
            if (before >= 0 && l->places[before].met < 0)
                l->stack[height++] = before;
        }
    }
}

static void deepen(level *l, int item)
{
    int count = 0;
    const int *inputs = inputs_of(l, item, &count);
    for (int k = 0; k < count; k++) {
        int before = item_of(l, inputs[k]);
        if (before >= 0 && l->places[before].depth <= l->places[item].depth)
            l->places[before].depth = l->places[item].depth + 1;
    }
}

/* Layers are in topological order, so that one pass from the end suffices: a nested model's turn is
 * that of its first layer. */
static void find_depths(level *l)
{
    const hpct_model *model = l->model;
    for (int i = model->num_layers - 1; i >= 0; i--) {
        int nest = hpct_keras_nest_at(model, l->nest, i);
        bool first = i == 0 || hpct_keras_nest_at(model, l->nest, i - 1) != nest;
        if (nest == 0)
            deepen(l, i);
        else if (nest > 0 && first)
            deepen(l, item_of_nest(model, nest));
    }
}

static int compare(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->depth != y->depth)
        return y->depth - x->depth;
    return x->met != y->met ? x->met - y->met : x->item - y->item;
}

static hpct_status make_level(level *l, const hpct_model *model, int nest)
{
    size_t items = (size_t) num_items(model), edges = items + 1;
    for (int i = 0; i < model->num_layers; i++)
        edges += (size_t) model->layers[i].num_inputs;
    *l = (level){.model = model, .nest = nest};
    l->places = calloc(items + 1, sizeof *l->places);
    l->stack = calloc(edges, sizeof *l->stack);
    for (size_t i = 0; i < items && l->places != NULL; i++)
        l->places[i] = (place){.item = (int) i, .met = -1};
    return l->places != NULL && l->stack != NULL
               ? HPCT_OK
               : hpct_fail_memory(items * sizeof *l->places + edges * sizeof *l->stack);
}

/* Also an item that no other reads. */
static bool is_of(const level *l, int item)
{
    const hpct_model *model = l->model;
    return item < model->num_layers ? model->layers[item].nest == l->nest
                                    : model->nests[item - model->num_layers].outer == l->nest;
}

/* Appends the level's layers to order[*count...]; those of a nested model in its place. Levels are
 * few: the reader limits them. */
static hpct_status order_level(const hpct_model *model, int nest, int *order, int *count)
{
    level l;
    hpct_status status = make_level(&l, model, nest);
    if (status == HPCT_OK) {
        walk(&l);
        find_depths(&l);
        qsort(l.places, (size_t) num_items(model), sizeof *l.places, compare);
    }
    for (int i = 0; i < num_items(model) && status == HPCT_OK; i++) {
        int item = l.places[i].item;
        if (is_of(&l, item) && item < model->num_layers)
            order[(*count)++] = item;
        else if (is_of(&l, item))
            status = order_level(model, item - model->num_layers + 1, order, count);
    }
    free(l.stack);
    free(l.places);
    return status;
}

hpct_status hpct_keras_order(const hpct_model *model, int *order)
{
    int count = 0;
    return order_level(model, 0, order, &count);
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
