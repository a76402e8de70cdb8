/* Resizing, UpSampling2D, RandomCrop and RandomFlip: image layers. */
#include "nn/graph/layer/window.h"

/* Begins the layer and fills the common sizes; false if the model has failed. */
static bool begin(hpct_model *model, const char *type, const char *stem,
                  hpct_graph_picture *picture)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, type, stem, &input) || !hpct_layer_window_takes(model, &input))
        return false;
    picture->in_h = input.size[0];
    picture->in_w = input.size[1];
    picture->channels = input.size[2];
    return true;
}

static void finish(hpct_model *model, hpct_op_kind kind, const hpct_graph_picture *picture)
{
    hpct_op_spec spec = {.kind = kind, .picture = *picture};
    hpct_shape output = HPCT_SHAPE(picture->out_h, picture->out_w, picture->channels);
    hpct_layer_add_node(model, &spec, &output);
}

static void add_sized(hpct_model *model, hpct_op_kind kind, const char *type, const char *stem,
                      int height, int width)
{
    hpct_graph_picture picture = {.out_h = height, .out_w = width};
    if (!begin(model, type, stem, &picture))
        return;
    hpct_layer_config_of(model)->size[0] = height;
    hpct_layer_config_of(model)->size[1] = width;
    if (height < 1 || width < 1)
        hpct_layer_fail(model, "the size %dx%d must be at least 1x1", height, width);
    else
        finish(model, kind, &picture);
}

void hpct_model_add_resizing(hpct_model *model, int height, int width)
{
    add_sized(model, HPCT_OP_RESIZING, "Resizing", "resizing", height, width);
}

/* A resizing by whole factors: bilinear cells are centred likewise in Keras. */
void hpct_model_add_up_sampling2d(hpct_model *model, const hpct_up_sampling2d *sampling)
{
    hpct_graph_picture picture = {.nearest = !sampling->bilinear};
    if (!begin(model, "UpSampling2D", "up_sampling2d", &picture))
        return;
    hpct_layer_config_of(model)->up_sampling2d = *sampling;
    bool fits = sampling->size[0] >= 1 && sampling->size[1] >= 1 &&
                !__builtin_mul_overflow(picture.in_h, sampling->size[0], &picture.out_h) &&
                !__builtin_mul_overflow(picture.in_w, sampling->size[1], &picture.out_w);
    if (fits)
        finish(model, HPCT_OP_RESIZING, &picture);
    else
        hpct_layer_fail(model, "the size %dx%d must be at least 1x1, and not huge",
                        sampling->size[0], sampling->size[1]);
}

void hpct_model_add_random_crop(hpct_model *model, int height, int width)
{
    add_sized(model, HPCT_OP_RANDOM_CROP, "RandomCrop", "random_crop", height, width);
}

void hpct_model_add_random_flip(hpct_model *model, hpct_flip mode)
{
    hpct_graph_picture picture = {.horizontal = mode != HPCT_FLIP_VERTICAL,
                                  .vertical = mode != HPCT_FLIP_HORIZONTAL};
    if (!begin(model, "RandomFlip", "random_flip", &picture))
        return;
    hpct_layer_config_of(model)->random_flip = mode;
    picture.out_h = picture.in_h;
    picture.out_w = picture.in_w;
    if (mode != HPCT_FLIP_BOTH && mode != HPCT_FLIP_HORIZONTAL && mode != HPCT_FLIP_VERTICAL)
        hpct_layer_fail(model, "there is no flip %d", (int) mode);
    else
        finish(model, HPCT_OP_RANDOM_FLIP, &picture);
}
