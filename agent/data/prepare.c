/* One sample on its way from the data set to a batch. */
#include "agent/data/prepare.h"

#include "agent/data/augment.h"
#include "agent/data/encoded.h"
#include "agent/data/mix.h"
#include "agent/data/sampler.h"
#include "base/status.h"

#include <stdlib.h>

struct hpct_data_preparer {
    const hpct_dataset *dataset;
    hpct_data_room room;
    hpct_data_resizer *resizer;
    hpct_data_preparation plain; /* without augmentation */
    hpct_data_affine_sampler *sampler;
    float *before, *other; /* of augmentation: a picture each */
};

static hpct_status make_rooms(hpct_data_preparer *p)
{
    size_t bytes = (p->dataset->elements + 1) * sizeof *p->before;
    HPCT_TRY(hpct_data_affine_sampler_new(&p->sampler));
    p->before = malloc(bytes);
    if (hpct_data_augment_mixes(&p->dataset->options))
        p->other = malloc(bytes);
    bool whole =
        p->before != NULL && (p->other != NULL || !hpct_data_augment_mixes(&p->dataset->options));
    return whole ? HPCT_OK : hpct_fail_memory(bytes);
}

hpct_status hpct_data_preparer_new(hpct_data_preparer **out, const hpct_dataset *dataset)
{
    hpct_data_preparer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return hpct_fail_memory(sizeof *p);
    p->dataset = dataset;
    p->plain.height = dataset->shape.size[0];
    p->plain.width = dataset->shape.rank > 1 ? dataset->shape.size[1] : 1;
    hpct_dataset_scale(dataset, &p->plain.factor, &p->plain.offset);
    hpct_status status = hpct_data_resizer_new(&p->resizer);
    if (status == HPCT_OK)
        status = hpct_data_decoder_new(&p->room.decoder);
    if (status == HPCT_OK && hpct_data_augment_is_deep(&dataset->options))
        status = make_rooms(p);
    if (status == HPCT_OK)
        *out = p;
    else
        hpct_data_preparer_free(p);
    return status;
}

void hpct_data_preparer_free(hpct_data_preparer *preparer)
{
    if (preparer == NULL)
        return;
    hpct_data_room_free(&preparer->room);
    hpct_data_resizer_free(preparer->resizer);
    hpct_data_affine_sampler_free(preparer->sampler);
    free(preparer->before);
    free(preparer->other);
    free(preparer);
}

void hpct_data_prepare_draw(const hpct_dataset_options *options, uint64_t sample_bits,
                            hpct_data_preparation *how)
{
    int span = 2 * options->crop + 1;
    how->flip = options->flip && (sample_bits & 1) != 0;
    how->move_y = (int) ((sample_bits >> 1 & 0x7fffff) * (uint64_t) span >> 23) - options->crop;
    how->move_x = (int) ((sample_bits >> 32 & 0x7fffff) * (uint64_t) span >> 23) - options->crop;
}

static hpct_data_canvas canvas_of(const hpct_data_preparer *p, float *values)
{
    size_t pixels = (size_t) p->plain.height * (size_t) p->plain.width;
    return (hpct_data_canvas){values, p->plain.height, p->plain.width,
                              (int) (p->dataset->elements / pixels)};
}

/* This sample as bytes from 0 to 255, augmented but not mixed. */
static hpct_status augment(hpct_data_preparer *p, uint32_t index, uint64_t bits, float *dst)
{
    const hpct_dataset_options *options = &p->dataset->options;
    hpct_data_preparation how = p->plain;
    hpct_data_augmentation drawn;
    hpct_data_picture picture;
    hpct_data_canvas canvas = canvas_of(p, dst);
    how.factor = 1;
    how.offset = 0;
    hpct_data_prepare_draw(options, bits, &how);
    hpct_data_augment_draw(options, bits, canvas.height, canvas.width, &drawn);
    HPCT_TRY(hpct_dataset_fetch(p->dataset, index, &p->room, &picture));
    HPCT_TRY(hpct_data_resize(p->resizer, &picture, &how, dst));
    return hpct_data_augment_apply(p->sampler, &drawn, &canvas, p->before);
}

/* The other sample is as it would be alone in this pass. */
static hpct_status mix(hpct_data_preparer *p, const hpct_data_to_prepare *what, uint64_t bits,
                       hpct_data_prepared *out)
{
    hpct_data_canvas canvas = canvas_of(p, out->pixels);
    hpct_data_mixing mixing = hpct_data_mixing_draw(&p->dataset->options, bits, p->dataset->size,
                                                    canvas.height, canvas.width);
    uint64_t bits_of_other = hpct_data_sample_bits(what->seed, what->pass, mixing.other);
    HPCT_TRY(augment(p, mixing.other, bits_of_other, p->other));
    hpct_data_mixing_apply(&mixing, &canvas, p->other);
    out->other = p->dataset->labels[mixing.other];
    out->share = mixing.share;
    return HPCT_OK;
}

static void scale(const hpct_data_preparation *how, size_t count, float *values)
{
    const float factor = how->factor, offset = how->offset;
#pragma omp simd
    for (size_t i = 0; i < count; i++)
        values[i] = values[i] * factor + offset;
}

static hpct_status prepare_deep(hpct_data_preparer *p, const hpct_data_to_prepare *what,
                                uint64_t bits, hpct_data_prepared *out)
{
    HPCT_TRY(augment(p, what->index, bits, out->pixels));
    if (hpct_data_augment_mixes(&p->dataset->options))
        HPCT_TRY(mix(p, what, bits, out));
    scale(&p->plain, p->dataset->elements, out->pixels);
    return HPCT_OK;
}

hpct_status hpct_data_prepare(hpct_data_preparer *p, const hpct_data_to_prepare *what,
                              hpct_data_prepared *out)
{
    const hpct_dataset_options *options = &p->dataset->options;
    uint64_t bits = hpct_data_sample_bits(what->seed, what->pass, what->index);
    hpct_data_preparation how = p->plain;
    hpct_data_picture picture;
    out->label = out->other = p->dataset->labels[what->index];
    out->share = 1;
    if (what->training && hpct_data_augment_is_deep(options))
        return prepare_deep(p, what, bits, out);
    if (what->training)
        hpct_data_prepare_draw(options, bits, &how);
    HPCT_TRY(hpct_dataset_fetch(p->dataset, what->index, &p->room, &picture));
    return hpct_data_resize(p->resizer, &picture, &how, out->pixels);
}
