/* Parts of torchvision's networks. Strided convolutions are padded on all sides alike (torch's
 * padding=1), where Keras' "same" pads the bottom and the right first. */
#include "nn/graph/model/torchvision/parts.h"

/* transforms.ToTensor and Normalize: (x / 255 - mean) / deviation. */
void hpct_vision_normalize(hpct_model *model)
{
    static const double means[] = {0.485, 0.456, 0.406}, deviations[] = {0.229, 0.224, 0.225};
    hpct_per_channel each = {.channels = 3};
    for (int c = 0; c < each.channels; c++) {
        each.first[c] = 1 / (255 * deviations[c]);
        each.second[c] = -means[c] / deviations[c];
    }
    hpct_model_add_rescaling_by(model, &each);
}

void hpct_vision_pad(hpct_model *model, int width)
{
    hpct_model_add_zero_padding2d(model, &(hpct_zero_padding2d){{{width, width}, {width, width}}});
}

void hpct_vision_conv(hpct_model *model, const char *name, int filters, int kernel, int stride)
{
    bool padded = stride > 1 && kernel > 1;
    if (padded)
        hpct_vision_pad(model, kernel / 2);
    hpct_model_name_layer(model, name);
    hpct_builtin_part_conv(model, filters, kernel, stride, padded ? HPCT_VALID : HPCT_SAME);
}

void hpct_vision_norm(hpct_model *model, const char *name, double epsilon)
{
    hpct_model_name_layer(model, name);
    hpct_model_add_batch_normalization(
        model, &(hpct_batch_normalization){.momentum = HPCT_VISION_MOMENTUM, .epsilon = epsilon});
}

void hpct_vision_pool(hpct_model *model)
{
    hpct_vision_pad(model, 1);
    hpct_model_add_max_pool2d(model, &(hpct_max_pool2d){.pool = {3, 3}, .strides = {2, 2}});
}

void hpct_vision_classifier(hpct_model *model, const char *name, int classes, double dropout)
{
    if (dropout > 0)
        hpct_model_add_dropout(model, dropout);
    hpct_model_name_layer(model, name);
    hpct_model_add_dense(model, &(hpct_dense){.units = classes, .activation = HPCT_SOFTMAX});
}
