/* How operations can be split: properties by kind; sizes and slices of the parts. */
#include "nn/graph/parallel.h"

#include "nn/graph/kinds.h"

#include <string.h>

static bool is_depthwise(const hpct_graph_window *w)
{
    return w->groups == w->in_c && w->groups > 1;
}

static int conv2d_parallel(const hpct_graph_window *w)
{
    return hpct_graph_window_is_small(w) ? HPCT_GRAPH_PARALLEL_BEGINS | HPCT_GRAPH_PARALLEL_CELLS
           : w->groups == 1              ? HPCT_GRAPH_PARALLEL_BEGINS
           : is_depthwise(w)             ? HPCT_GRAPH_PARALLEL_FOLLOWS
                                         : HPCT_GRAPH_PARALLEL_NONE;
}

int hpct_op_parallel(const hpct_op_spec *spec)
{
    return spec->kind == HPCT_OP_CONV2D ? conv2d_parallel(&spec->window)
                                        : hpct_op_facts_of(spec)->parallel;
}

/* Addresses of the last axes of input and output in the spec. */
static void channels_at(hpct_op_spec *spec, int **in, int **out)
{
    const int last = spec->permute.rank - 1;
    switch (hpct_op_facts_of(spec)->sizes) {
    case HPCT_GRAPH_SIZES_DENSE:
        *in = &spec->dense.in;
        *out = &spec->dense.out;
        return;
    case HPCT_GRAPH_SIZES_WINDOW:
        *in = &spec->window.in_c;
        *out = &spec->window.out_c;
        return;
    case HPCT_GRAPH_SIZES_TRANSPOSED:
        *in = &spec->window.out_c;
        *out = &spec->window.in_c;
        return;
    case HPCT_GRAPH_SIZES_PERMUTE:
        *in = &spec->permute.size[last];
        *out = &spec->permute.size[spec->permute.axes[last]];
        return;
    case HPCT_GRAPH_SIZES_PICTURE:
        *in = *out = &spec->picture.channels;
        return;
    case HPCT_GRAPH_SIZES_JOIN:
        *in = *out = &spec->join.size[0];
        return;
    case HPCT_GRAPH_SIZES_LINE:
        *in = *out = &spec->line.channels;
        return;
    case HPCT_GRAPH_SIZES_NORM:
        *in = *out = &spec->norm.channels;
        return;
    case HPCT_GRAPH_SIZES_GROUP:
        *in = *out = &spec->group.channels;
        return;
    case HPCT_GRAPH_SIZES_PARTS:
        break;
    }
    *in = *out = &spec->parts.split.channels;
}

int hpct_op_channels(const hpct_op_spec *spec)
{
    hpct_op_spec copy = *spec;
    int *in, *out;
    channels_at(&copy, &in, &out);
    return *out;
}

hpct_graph_channel_split hpct_op_cell_split(const hpct_op_spec *spec, int part, int parts)
{
    return (hpct_graph_channel_split){.channels = (int) hpct_op_dst_floats(spec),
                                      .unit = spec->window.out_c,
                                      .part = part,
                                      .parts = parts};
}

static bool is_cell_split(const hpct_op_spec *spec, const hpct_graph_channel_split *out)
{
    return spec->kind == HPCT_OP_CONV2D && out->channels > spec->window.out_c;
}

/* Can treat all elements of a sample as one row. */
static bool takes_flat(const hpct_op_spec *spec, const hpct_graph_channel_split *in)
{
    return hpct_op_facts_of(spec)->elementwise && spec->dense.rows > 1 &&
           (int64_t) spec->dense.rows * spec->dense.in == in->channels;
}

/* Image operations need an axis of channels; others also accept a last axis of cells and channels,
 * as made by Flatten. */
static bool needs_exact(const hpct_op_spec *spec)
{
    hpct_op_sizes sizes = hpct_op_facts_of(spec)->sizes;
    return sizes == HPCT_GRAPH_SIZES_WINDOW || sizes == HPCT_GRAPH_SIZES_PICTURE ||
           (sizes == HPCT_GRAPH_SIZES_JOIN && spec->join.broadcasts);
}

bool hpct_op_takes(const hpct_op_spec *spec, const hpct_graph_channel_split *in,
                   hpct_graph_channel_split *out)
{
    hpct_op_spec copy = *spec;
    int *from, *to, ways = hpct_op_parallel(spec);
    channels_at(&copy, &from, &to);
    *out = *in;
    if (takes_flat(spec, in))
        return true;
    if (needs_exact(spec) ? *from != in->channels : *from % in->channels != 0)
        return false;
    if (ways & HPCT_GRAPH_PARALLEL_FOLLOWS) {
        int multiplier = spec->kind == HPCT_OP_CONV2D ? *to / *from : 1;
        out->channels *= multiplier;
        out->unit *= multiplier;
        return true;
    }
    out->channels = 0;
    return ways & HPCT_GRAPH_PARALLEL_SUMS;
}

static void narrow(int *channels, const hpct_graph_channel_split *split)
{
    *channels = *channels / split->channels * hpct_graph_channel_split_count(split, split->part);
}

hpct_op_spec hpct_op_part(const hpct_op_spec *spec, const hpct_graph_channel_split *in,
                          const hpct_graph_channel_split *out)
{
    hpct_op_spec part = *spec;
    int *from, *to;
    channels_at(&part, &from, &to);
    if (is_cell_split(spec, out)) {
        part.window.first_cell = hpct_graph_channel_split_first(out, out->part) / out->unit;
        part.window.cells = hpct_graph_channel_split_count(out, out->part) / out->unit;
        return part;
    }
    if (in->channels > 0 && takes_flat(spec, in)) {
        part.dense.rows = 1;
        part.dense.in = part.dense.out = hpct_graph_channel_split_count(in, in->part);
        return part;
    }
    if (spec->kind == HPCT_OP_BATCH_NORM)
        part.norm.synchronized = false; /* every part has all samples */
    if (in->channels > 0) {
        bool joins = spec->kind == HPCT_OP_ADD || spec->kind == HPCT_OP_MULTIPLY;
        for (int k = 1; joins && k < spec->join.count; k++)
            narrow(&part.join.size[k], in);
        narrow(from, in);
        if (spec->kind == HPCT_OP_CONV2D)
            part.window.groups = *from;
    }
    if (out->channels > 0 && to != from)
        narrow(to, out);
    if (in->channels > 0 && out->channels == 0) {
        part.relu = false;
        part.no_bias = true;
    }
    return part;
}

hpct_graph_param_slice hpct_op_slice(const hpct_op_spec *spec, int which,
                                     const hpct_graph_channel_split *in,
                                     const hpct_graph_channel_split *out)
{
    size_t floats = hpct_op_param_floats(spec, which);
    static const hpct_graph_channel_split none = {0};
    const hpct_graph_channel_split *split = out;
    size_t inner = 1;
    if (spec->kind == HPCT_OP_DENSE && in->channels > 0) { /* a part has rows of the kernel */
        split = which == HPCT_OP_KERNEL ? in : &none;
        inner = (size_t) spec->dense.out;
    }
    if (is_cell_split(spec, out))
        split = &none;
    hpct_graph_param_slice slice = {.outer = floats, .inner = 1};
    if (split->channels > 0)
        slice = (hpct_graph_param_slice){
            .outer = floats / inner / (size_t) split->channels, .inner = inner, .split = *split};
    return slice;
}

/* A slice is `outer` runs, at distance *every in the whole, the first at *first. Returns the length
 * of a run. In floats. */
static size_t run_of(const hpct_graph_param_slice *slice, int part, size_t *every, size_t *first)
{
    *every = (size_t) slice->split.channels * slice->inner;
    *first = (size_t) hpct_graph_channel_split_first(&slice->split, part) * slice->inner;
    return (size_t) hpct_graph_channel_split_count(&slice->split, part) * slice->inner;
}

size_t hpct_graph_param_slice_floats(const hpct_graph_param_slice *slice, int part)
{
    size_t every, first;
    return slice->split.channels == 0 ? slice->outer
                                      : slice->outer * run_of(slice, part, &every, &first);
}

void hpct_graph_param_slice_cut(const hpct_graph_param_slice *slice, int part, const float *whole,
                                float *own)
{
    size_t every, first, run = 1;
    if (slice->split.channels == 0) {
        memcpy(own, whole, slice->outer * sizeof *own);
        return;
    }
    run = run_of(slice, part, &every, &first);
    for (size_t i = 0; i < slice->outer; i++)
        memcpy(own + i * run, whole + i * every + first, run * sizeof *own);
}

void hpct_graph_param_slice_paste(const hpct_graph_param_slice *slice, int part, const float *own,
                                  float *whole)
{
    size_t every, first, run = 1;
    if (slice->split.channels == 0) {
        memcpy(whole, own, slice->outer * sizeof *own);
        return;
    }
    run = run_of(slice, part, &every, &first);
    for (size_t i = 0; i < slice->outer; i++)
        memcpy(whole + i * every + first, own + i * run, run * sizeof *own);
}
