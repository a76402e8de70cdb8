/* Names, properties and sizes of operations, from their specification alone. */
#include "nn/graph/op.h"

#define ELEMENT(kind, name, reads, ...)                                                            \
    [HPCT_OP_##kind] = {#name, .activation = true, .from_src = HPCT_ELEMENT_READS_SRC_##reads}

/* Facts of each kind. */
static const struct {
    const char *name;
    bool activation; /* of single elements; */
    bool from_src;   /* its gradient needs the source, not the result */
} kinds[HPCT_OP_KINDS] = {
    [HPCT_OP_CONV2D] = {"conv2d"},
    [HPCT_OP_MAX_POOL2D] = {"max_pool2d"},
    [HPCT_OP_AVERAGE_POOL2D] = {"average_pool2d"},
    [HPCT_OP_DENSE] = {"dense"},
    HPCT_ELEMENT_ROWS(ELEMENT),
    [HPCT_OP_SOFTMAX] = {"softmax"},
    [HPCT_OP_PRELU] = {"prelu"},
    [HPCT_OP_MULTIPLY] = {"multiply"},
    [HPCT_OP_NORMALIZATION] = {"normalization"},
    [HPCT_OP_ADD] = {"add"},
    [HPCT_OP_CONCATENATE] = {"concatenate"},
    [HPCT_OP_BATCH_NORM] = {"batch_norm"},
    [HPCT_OP_PAD2D] = {"pad2d"},
    [HPCT_OP_DROPOUT] = {"dropout"},
    [HPCT_OP_RESCALING] = {"rescaling"},
    [HPCT_OP_RESIZING] = {"resizing"},
    [HPCT_OP_RANDOM_CROP] = {"random_crop"},
    [HPCT_OP_RANDOM_FLIP] = {"random_flip"},
    [HPCT_OP_RANDOM_AFFINE] = {"random_affine"},
    [HPCT_OP_RANDOM_TONE] = {"random_tone"},
    [HPCT_OP_GROUP_NORM] = {"group_norm"},
    [HPCT_OP_PERMUTE] = {"permute"},
    [HPCT_OP_GAUSSIAN_NOISE] = {"gaussian_noise"},
    [HPCT_OP_CONV2D_TRANSPOSE] = {"conv2d_transpose"},
    [HPCT_OP_SUM_PARTS] = {"sum_parts"},
    [HPCT_OP_GATHER_PARTS] = {"gather_parts"},
    [HPCT_OP_GATHER_SAMPLES] = {"gather_samples"},
};

const char *hpct_op_kind_name(hpct_op_kind kind)
{
    return kinds[kind].name;
}

bool hpct_op_is_activation(hpct_op_kind kind)
{
    return kinds[kind].activation;
}

bool hpct_op_gradient_from_src(hpct_op_kind kind)
{
    return kinds[kind].from_src;
}

static bool has_window(const hpct_op_spec *spec)
{
    return spec->kind == HPCT_OP_CONV2D || spec->kind == HPCT_OP_MAX_POOL2D ||
           spec->kind == HPCT_OP_AVERAGE_POOL2D || spec->kind == HPCT_OP_PAD2D;
}

bool hpct_window_is_small(const hpct_window *w)
{
    bool padded = w->pad_top > 0 || w->pad_left > 0 ||
                  (w->out_h - 1) * w->stride_h + w->kernel_h > w->in_h ||
                  (w->out_w - 1) * w->stride_w + w->kernel_w > w->in_w;
    return !padded && w->in_c <= 4 && w->kernel_h * w->kernel_w * w->in_c <= HPCT_SMALL_WINDOW &&
           w->dilation_h == 1 && w->dilation_w == 1 && w->groups == 1 &&
           w->out_c % HPCT_CHANNEL_BLOCK == 0;
}

static bool joins(const hpct_op_spec *spec)
{
    return spec->kind == HPCT_OP_ADD || spec->kind == HPCT_OP_CONCATENATE ||
           spec->kind == HPCT_OP_MULTIPLY;
}

static bool is_line(const hpct_op_spec *spec)
{
    return spec->kind == HPCT_OP_NORMALIZATION || spec->kind == HPCT_OP_PRELU;
}

static size_t line_floats(const hpct_op_spec *spec)
{
    return (size_t) spec->line.rows * (size_t) spec->line.channels;
}

static bool shows(const hpct_op_spec *spec)
{
    return spec->kind == HPCT_OP_RESIZING || spec->kind == HPCT_OP_RANDOM_CROP ||
           spec->kind == HPCT_OP_RANDOM_FLIP || spec->kind == HPCT_OP_RANDOM_AFFINE ||
           spec->kind == HPCT_OP_RANDOM_TONE;
}

static size_t parts_floats(const hpct_op_spec *spec, bool whole)
{
    const hpct_channel_split *split = &spec->parts.split;
    int channels = whole ? split->channels : hpct_channel_split_count(split, split->part);
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

int hpct_op_num_inputs(const hpct_op_spec *spec)
{
    return joins(spec) ? spec->join.count : 1;
}

size_t hpct_op_src_floats(const hpct_op_spec *spec, int input)
{
    const hpct_window *w = &spec->window;
    const hpct_picture *p = &spec->picture;
    if (has_window(spec))
        return (size_t) w->in_h * (size_t) w->in_w * (size_t) w->in_c;
    if (spec->kind == HPCT_OP_CONV2D_TRANSPOSE)
        return (size_t) w->out_h * (size_t) w->out_w * (size_t) w->out_c;
    if (joins(spec) && spec->kind == HPCT_OP_MULTIPLY && spec->join.broadcasts && input == 1)
        return (size_t) spec->join.size[input];
    if (joins(spec))
        return (size_t) spec->join.rows * (size_t) spec->join.size[input];
    if (is_line(spec))
        return line_floats(spec);
    if (spec->kind == HPCT_OP_BATCH_NORM)
        return (size_t) spec->norm.rows * (size_t) spec->norm.channels;
    if (spec->kind == HPCT_OP_GROUP_NORM)
        return group_floats(spec);
    if (spec->kind == HPCT_OP_PERMUTE)
        return permute_floats(spec);
    if (shows(spec))
        return (size_t) p->in_h * (size_t) p->in_w * (size_t) p->channels;
    if (hpct_op_is_collective(spec))
        return parts_floats(spec, spec->kind != HPCT_OP_GATHER_PARTS);
    return (size_t) spec->dense.rows * (size_t) spec->dense.in;
}

size_t hpct_op_dst_floats(const hpct_op_spec *spec)
{
    const hpct_window *w = &spec->window;
    const hpct_picture *p = &spec->picture;
    if (has_window(spec))
        return (size_t) hpct_window_cells(w) * (size_t) w->out_c;
    if (spec->kind == HPCT_OP_CONV2D_TRANSPOSE)
        return (size_t) w->in_h * (size_t) w->in_w * (size_t) w->in_c;
    if (shows(spec))
        return (size_t) p->out_h * (size_t) p->out_w * (size_t) p->channels;
    if (spec->kind == HPCT_OP_CONCATENATE) {
        size_t floats = 0;
        for (int k = 0; k < spec->join.count; k++)
            floats += hpct_op_src_floats(spec, k);
        return floats;
    }
    if (spec->kind == HPCT_OP_ADD || spec->kind == HPCT_OP_MULTIPLY ||
        spec->kind == HPCT_OP_BATCH_NORM || spec->kind == HPCT_OP_GROUP_NORM ||
        spec->kind == HPCT_OP_PERMUTE || is_line(spec))
        return hpct_op_src_floats(spec, 0);
    if (hpct_op_is_collective(spec))
        return parts_floats(spec, true);
    return (size_t) spec->dense.rows * (size_t) spec->dense.out;
}

int hpct_op_norm_param(const hpct_op_spec *spec, hpct_norm_param which)
{
    bool grouped = spec->kind == HPCT_OP_GROUP_NORM;
    int gammas = (grouped ? spec->group.no_scale : spec->norm.no_scale) ? 0 : 1;
    int betas = (grouped ? spec->group.no_center : spec->norm.no_center) ? 0 : 1;
    switch (which) {
    case HPCT_NORM_GAMMA:
        return gammas - 1;
    case HPCT_NORM_BETA:
        return betas == 0 ? -1 : gammas;
    case HPCT_NORM_MEAN:
    case HPCT_NORM_VARIANCE:
        break;
    }
    return gammas + betas + (which == HPCT_NORM_VARIANCE);
}

int hpct_op_num_params(const hpct_op_spec *spec)
{
    if (spec->kind == HPCT_OP_BATCH_NORM)
        return hpct_op_norm_param(spec, HPCT_NORM_VARIANCE) + 1;
    if (spec->kind == HPCT_OP_GROUP_NORM)
        return !spec->group.no_scale + !spec->group.no_center;
    if (spec->kind == HPCT_OP_SUM_PARTS)
        return spec->no_bias ? 0 : 1;
    if (spec->kind == HPCT_OP_PRELU)
        return 1;
    if (spec->kind == HPCT_OP_NORMALIZATION)
        return spec->line.given ? 0 : HPCT_LINE_COUNT + 1;
    bool linear = spec->kind == HPCT_OP_CONV2D || spec->kind == HPCT_OP_DENSE ||
                  spec->kind == HPCT_OP_CONV2D_TRANSPOSE;
    return !linear ? 0 : spec->no_bias ? 1 : 2;
}

size_t hpct_op_param_floats(const hpct_op_spec *spec, int which)
{
    const hpct_window *w = &spec->window;
    bool kernel = which == HPCT_OP_KERNEL;
    if (spec->kind == HPCT_OP_BATCH_NORM)
        return (size_t) spec->norm.channels;
    if (spec->kind == HPCT_OP_GROUP_NORM)
        return (size_t) spec->group.channels;
    if (spec->kind == HPCT_OP_SUM_PARTS)
        return (size_t) spec->parts.split.channels;
    if (spec->kind == HPCT_OP_PRELU && !spec->line.shared)
        return line_floats(spec);
    if (is_line(spec))
        return which == HPCT_LINE_COUNT ? 1 : (size_t) spec->line.channels;
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
           (spec->kind == HPCT_OP_BATCH_NORM && which >= hpct_op_norm_param(spec, HPCT_NORM_MEAN));
}
