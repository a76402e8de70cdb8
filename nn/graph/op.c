/* Properties and sizes of operations, from their specification alone; their construction. */
#include "nn/graph/op.h"

#include "base/status.h"
#include "nn/graph/kinds.h"

#include <stdlib.h>
#include <string.h>

bool hpct_graph_window_is_small(const hpct_graph_window *w)
{
    bool padded = w->pad_top > 0 || w->pad_left > 0 ||
                  (w->out_h - 1) * w->stride_h + w->kernel_h > w->in_h ||
                  (w->out_w - 1) * w->stride_w + w->kernel_w > w->in_w;
    return !padded && w->in_c <= 4 &&
           w->kernel_h * w->kernel_w * w->in_c <= HPCT_GRAPH_SMALL_WINDOW && w->dilation_h == 1 &&
           w->dilation_w == 1 && w->groups == 1 && w->out_c % HPCT_GRAPH_CHANNEL_BLOCK == 0;
}

static size_t parts_floats(const hpct_op_spec *spec, bool whole)
{
    const hpct_graph_channel_split *split = &spec->parts.split;
    int channels = whole ? split->channels : hpct_graph_channel_split_count(split, split->part);
    return (size_t) spec->parts.rows * (size_t) channels;
}

static size_t permute_floats(const hpct_op_spec *spec)
{
    size_t floats = 1;
    for (int i = 0; i < spec->permute.rank; i++)
        floats *= (size_t) spec->permute.size[i];
    return floats;
}

static size_t group_floats(const hpct_op_spec *spec)
{
    return (size_t) spec->group.rows * (size_t) spec->group.cells * (size_t) spec->group.channels;
}

static size_t line_floats(const hpct_op_spec *spec)
{
    return (size_t) spec->line.rows * (size_t) spec->line.channels;
}

int hpct_op_num_inputs(const hpct_op_spec *spec)
{
    return hpct_op_facts_of(spec)->sizes == HPCT_GRAPH_SIZES_JOIN ? spec->join.count : 1;
}

static size_t join_floats(const hpct_op_spec *spec, int input)
{
    bool one_row = spec->join.broadcasts && input == 1;
    return (one_row ? 1 : (size_t) spec->join.rows) * (size_t) spec->join.size[input];
}

size_t hpct_op_src_floats(const hpct_op_spec *spec, int input)
{
    const hpct_graph_window *w = &spec->window;
    const hpct_graph_picture *p = &spec->picture;
    switch (hpct_op_facts_of(spec)->sizes) {
    case HPCT_GRAPH_SIZES_WINDOW:
        return (size_t) w->in_h * (size_t) w->in_w * (size_t) w->in_c;
    case HPCT_GRAPH_SIZES_TRANSPOSED:
        return (size_t) w->out_h * (size_t) w->out_w * (size_t) w->out_c;
    case HPCT_GRAPH_SIZES_PICTURE:
        return (size_t) p->in_h * (size_t) p->in_w * (size_t) p->channels;
    case HPCT_GRAPH_SIZES_JOIN:
        return join_floats(spec, input);
    case HPCT_GRAPH_SIZES_LINE:
        return line_floats(spec);
    case HPCT_GRAPH_SIZES_NORM:
        return (size_t) spec->norm.rows * (size_t) spec->norm.channels;
    case HPCT_GRAPH_SIZES_GROUP:
        return group_floats(spec);
    case HPCT_GRAPH_SIZES_PERMUTE:
        return permute_floats(spec);
    case HPCT_GRAPH_SIZES_PARTS:
        return parts_floats(spec, spec->kind != HPCT_OP_GATHER_PARTS);
    case HPCT_GRAPH_SIZES_DENSE:
        break;
    }
    return (size_t) spec->dense.rows * (size_t) spec->dense.in;
}

size_t hpct_op_dst_floats(const hpct_op_spec *spec)
{
    const hpct_graph_window *w = &spec->window;
    const hpct_graph_picture *p = &spec->picture;
    size_t floats = 0;
    switch (hpct_op_facts_of(spec)->sizes) {
    case HPCT_GRAPH_SIZES_WINDOW:
        return (size_t) hpct_graph_window_cells(w) * (size_t) w->out_c;
    case HPCT_GRAPH_SIZES_TRANSPOSED:
        return (size_t) w->in_h * (size_t) w->in_w * (size_t) w->in_c;
    case HPCT_GRAPH_SIZES_PICTURE:
        return (size_t) p->out_h * (size_t) p->out_w * (size_t) p->channels;
    case HPCT_GRAPH_SIZES_PARTS:
        return parts_floats(spec, true);
    case HPCT_GRAPH_SIZES_DENSE:
        return (size_t) spec->dense.rows * (size_t) spec->dense.out;
    case HPCT_GRAPH_SIZES_JOIN:
    case HPCT_GRAPH_SIZES_LINE:
    case HPCT_GRAPH_SIZES_NORM:
    case HPCT_GRAPH_SIZES_GROUP:
    case HPCT_GRAPH_SIZES_PERMUTE:
        break;
    }
    for (int k = 0; spec->kind == HPCT_OP_CONCATENATE && k < spec->join.count; k++)
        floats += hpct_op_src_floats(spec, k);
    return floats > 0 ? floats : hpct_op_src_floats(spec, 0);
}

int hpct_op_norm_param(const hpct_op_spec *spec, hpct_graph_norm_param which)
{
    bool grouped = spec->kind == HPCT_OP_GROUP_NORM;
    int gammas = (grouped ? spec->group.no_scale : spec->norm.no_scale) ? 0 : 1;
    int betas = (grouped ? spec->group.no_center : spec->norm.no_center) ? 0 : 1;
    switch (which) {
    case HPCT_GRAPH_NORM_GAMMA:
        return gammas - 1;
    case HPCT_GRAPH_NORM_BETA:
        return betas == 0 ? -1 : gammas;
    case HPCT_GRAPH_NORM_MEAN:
    case HPCT_GRAPH_NORM_VARIANCE:
        break;
    }
    return gammas + betas + (which == HPCT_GRAPH_NORM_VARIANCE);
}

int hpct_op_num_params(const hpct_op_spec *spec)
{
    if (spec->kind == HPCT_OP_BATCH_NORM)
        return hpct_op_norm_param(spec, HPCT_GRAPH_NORM_VARIANCE) + 1;
    if (spec->kind == HPCT_OP_GROUP_NORM)
        return !spec->group.no_scale + !spec->group.no_center;
    if (spec->kind == HPCT_OP_SUM_PARTS)
        return spec->no_bias ? 0 : 1;
    if (spec->kind == HPCT_OP_PRELU)
        return 1;
    if (spec->kind == HPCT_OP_NORMALIZATION)
        return spec->line.given ? 0 : HPCT_GRAPH_LINE_COUNT + 1;
    return !hpct_op_facts_of(spec)->kernel ? 0 : spec->no_bias ? 1 : 2;
}

size_t hpct_op_param_floats(const hpct_op_spec *spec, int which)
{
    const hpct_graph_window *w = &spec->window;
    bool kernel = which == HPCT_OP_KERNEL;
    if (spec->kind == HPCT_OP_BATCH_NORM)
        return (size_t) spec->norm.channels;
    if (spec->kind == HPCT_OP_GROUP_NORM)
        return (size_t) spec->group.channels;
    if (spec->kind == HPCT_OP_SUM_PARTS)
        return (size_t) spec->parts.split.channels;
    if (spec->kind == HPCT_OP_PRELU && !spec->line.shared)
        return line_floats(spec);
    if (spec->kind == HPCT_OP_NORMALIZATION || spec->kind == HPCT_OP_PRELU)
        return which == HPCT_GRAPH_LINE_COUNT ? 1 : (size_t) spec->line.channels;
    if (spec->kind == HPCT_OP_CONV2D_TRANSPOSE)
        return (size_t) w->in_c *
               (kernel ? (size_t) w->kernel_h * (size_t) w->kernel_w * (size_t) w->out_c : 1);
    if (spec->kind == HPCT_OP_CONV2D)
        return (size_t) w->out_c * (kernel ? (size_t) w->kernel_h * (size_t) w->kernel_w *
                                                 (size_t) (w->in_c / w->groups)
                                           : 1);
    return (size_t) spec->dense.out * (kernel ? (size_t) spec->dense.in : 1);
}

bool hpct_op_param_is_state(const hpct_op_spec *spec, int which)
{
    return spec->kind == HPCT_OP_NORMALIZATION ||
           (spec->kind == HPCT_OP_BATCH_NORM &&
            which >= hpct_op_norm_param(spec, HPCT_GRAPH_NORM_MEAN));
}

hpct_status hpct_op_new(hpct_op **out, size_t bytes, const hpct_op_class *class,
                        const hpct_op_spec *spec, const hpct_op_build *build)
{
    const hpct_op_facts *facts = hpct_op_facts_of(spec);
    hpct_op *op = *out = calloc(1, bytes);
    if (op == NULL)
        return hpct_fail_memory(bytes);
    op->class = class;
    op->spec = *spec;
    op->build = *build;
    op->num_params = hpct_op_num_params(spec);
    for (int i = 0; i < op->num_params; i++)
        op->param_floats[i] = hpct_op_param_floats(spec, i);
    op->omits_grads = facts->omits_grads;
    op->backward_reads_src = facts->reads_src && !(build->frozen && facts->omits_grads);
    op->backward_reads_dst = facts->reads_dst || spec->relu;
    op->backward_keeps_diff_dst = !spec->relu;
    op->adds_diff_src = facts->adds_diff_src;
    op->passes_diff_dst = facts->passes_diff_dst;
    return HPCT_OK;
}

hpct_status hpct_op_import(hpct_op *op, int which, const float *keras, float *arena)
{
    if (op->layout_of != NULL)
        return hpct_op_import(op->layout_of, which, keras, arena);
    if (op->class->import_param != NULL)
        return op->class->import_param(op, which, keras, arena);
    memcpy(arena, keras, op->param_floats[which] * sizeof *arena);
    return HPCT_OK;
}

hpct_status hpct_op_export(hpct_op *op, int which, const float *arena, float *keras)
{
    if (op->layout_of != NULL)
        return hpct_op_export(op->layout_of, which, arena, keras);
    if (op->class->export_param != NULL)
        return op->class->export_param(op, which, arena, keras);
    memcpy(keras, arena, op->param_floats[which] * sizeof *keras);
    return HPCT_OK;
}

void hpct_op_free(hpct_op *op)
{
    free(op);
}
