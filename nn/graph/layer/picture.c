/* Resizing and UpSampling2D; what they share with the random layers. */
#include "nn/graph/layer/window.h"

bool hpct_layer_begin_picture(hpct_model *model, const char *type, const char *stem,
                              hpct_graph_picture *picture)
{
    hpct_shape input;
    if (!hpct_layer_begin(model, type, stem, &input) || !hpct_layer_window_takes(model, &input))
        return false;
    *picture = (hpct_graph_picture){.in_h = input.size[0],
                                    .in_w = input.size[1],
                                    .out_h = input.size[0],
                                    .out_w = input.size[1],
                                    .channels = input.size[2]};
    return true;
}

void hpct_layer_add_picture(hpct_model *model, hpct_op_kind kind, const hpct_graph_picture *picture)
{
    hpct_op_spec spec = {.kind = kind, .picture = *picture};
    hpct_shape output = HPCT_SHAPE(picture->out_h, picture->out_w, picture->channels);
    hpct_layer_add_node(model, &spec, &output);
}

void hpct_layer_add_picture_of(hpct_model *model, hpct_op_kind kind, int height, int width,
                               hpct_graph_picture *picture)
{
    hpct_layer_config_of(model)->size[0] = height;
    hpct_layer_config_of(model)->size[1] = width;
    picture->out_h = height;
    picture->out_w = width;
    if (height < 1 || width < 1)
        hpct_layer_fail(model, "the size %dx%d must be at least 1x1", height, width);
    else
        hpct_layer_add_picture(model, kind, picture);
}

void hpct_model_add_resizing(hpct_model *model, int height, int width)
{
    hpct_graph_picture picture;
    if (hpct_layer_begin_picture(model, "Resizing", "resizing", &picture))
        hpct_layer_add_picture_of(model, HPCT_OP_RESIZING, height, width, &picture);
}

/* A resizing by whole factors: bilinear cells are centred likewise in Keras. */
void hpct_model_add_up_sampling2d(hpct_model *model, const hpct_up_sampling2d *sampling)
{
    hpct_graph_picture picture;
    if (!hpct_layer_begin_picture(model, "UpSampling2D", "up_sampling2d", &picture))
        return;
    picture.nearest = !sampling->bilinear;
    hpct_layer_config_of(model)->up_sampling2d = *sampling;
    bool fits = sampling->size[0] >= 1 && sampling->size[1] >= 1 &&
                !__builtin_mul_overflow(picture.in_h, sampling->size[0], &picture.out_h) &&
                !__builtin_mul_overflow(picture.in_w, sampling->size[1], &picture.out_w);
    if (fits)
        hpct_layer_add_picture(model, HPCT_OP_RESIZING, &picture);
    else
        hpct_layer_fail(model, "the size %dx%d must be at least 1x1, and not huge",
                        sampling->size[0], sampling->size[1]);
}
