/* ZeroPadding2D and Cropping2D, which is padding with negative numbers. Compiling fuses padding to
 * the convolution or pooling after it, if possible (nn/graph/fuse.c). */
#include "nn/graph/layer/window.h"

/* before: rows above, columns to the left; may be negative. */
static void add_frame(hpct_model *model, const hpct_shape *input, const int before[2],
                      const hpct_shape *output)
{
    hpct_op_spec spec = {
        .kind = HPCT_OP_PAD2D,
        .window = {.in_h = input->size[0],
                   .in_w = input->size[1],
                   .in_c = input->size[2],
                   .out_h = output->size[0],
                   .out_w = output->size[1],
                   .out_c = output->size[2],
                   .kernel_h = 1,
                   .kernel_w = 1,
                   .stride_h = 1,
                   .stride_w = 1,
                   .dilation_h = 1,
                   .dilation_w = 1,
                   .pad_top = before[0],
                   .pad_left = before[1],
                   .groups = 1},
    };
    hpct_layer_add_node(model, &spec, output);
}

void hpct_model_add_zero_padding2d(hpct_model *model, const hpct_zero_padding2d *padding)
{
    const int(*pad)[2] = padding->padding;
    hpct_shape input;
    if (!hpct_layer_begin(model, "ZeroPadding2D", "zero_padding2d", &input) ||
        !hpct_layer_window_takes(model, &input))
        return;
    hpct_layer_config_of(model)->zero_padding2d = *padding;
    int64_t sides[2];
    for (int i = 0; i < 2; i++) {
        sides[i] = (int64_t) input.size[i] + pad[i][0] + pad[i][1];
        if (pad[i][0] < 0 || pad[i][1] < 0 || sides[i] > INT32_MAX) {
            hpct_layer_fail(model, "padding %d,%d must not be negative, nor huge", pad[i][0],
                            pad[i][1]);
            return;
        }
    }
    hpct_shape output = HPCT_SHAPE((int) sides[0], (int) sides[1], input.size[2]);
    add_frame(model, &input, (int[]){pad[0][0], pad[1][0]}, &output);
}

void hpct_model_add_cropping2d(hpct_model *model, const hpct_cropping2d *cropping)
{
    const int(*cut)[2] = cropping->cropping;
    hpct_shape input;
    if (!hpct_layer_begin(model, "Cropping2D", "cropping2d", &input) ||
        !hpct_layer_window_takes(model, &input))
        return;
    hpct_layer_config_of(model)->cropping2d = *cropping;
    hpct_shape output = input;
    for (int i = 0; i < 2; i++) {
        int64_t left = (int64_t) input.size[i] - cut[i][0] - cut[i][1];
        if (cut[i][0] < 0 || cut[i][1] < 0 || left < 1) {
            hpct_layer_fail(model, "cropping %d,%d must not be negative, and leave something of %d",
                            cut[i][0], cut[i][1], input.size[i]);
            return;
        }
        output.size[i] = (int) left;
    }
    add_frame(model, &input, (int[]){-cut[0][0], -cut[1][0]}, &output);
}
