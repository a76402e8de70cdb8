/* Pictures in a device's memory. */
#include "nn/resident.h"

#include "base/status.h"
#include "nn/run.h"

#include <stdint.h>
#include <stdlib.h>

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static hpct_status fill(hpct_resident *r, const hpct_pictures *from, size_t pixels, size_t labels)
{
    char *at = r->memory;
    r->pictures = *from;
    r->pictures.pixels = (uint8_t *) at;
    r->pictures.labels = (int32_t *) (void *) (at + aligned(pixels));
    hpct_status status = hpct_memory_from_host(r->backend, at, from->pixels, pixels);
    return status == HPCT_OK
               ? hpct_memory_from_host(r->backend, at + aligned(pixels), from->labels, labels)
               : status;
}

hpct_status hpct_resident_open(hpct_resident **out, const hpct_model *model,
                               const hpct_pictures *pictures)
{
    const hpct_device *device = model->run != NULL ? model->run->backend->device : NULL;
    size_t pixels = pictures->count * (size_t) pictures->height * (size_t) pictures->width *
                    (size_t) pictures->channels,
           labels = pictures->count * sizeof *pictures->labels, left, all;
    *out = NULL;
    if (device == NULL || device->gather == NULL || model->input_divided)
        return HPCT_OK;
    hpct_status status = device->memory(&left, &all);
    if (status != HPCT_OK || aligned(pixels) + labels > left / 2)
        return status;
    hpct_resident *r = calloc(1, sizeof *r);
    if (r == NULL)
        return hpct_fail_memory(sizeof *r);
    static uint64_t opened;
    r->number = ++opened;
    r->backend = model->run->backend;
    r->memory = r->backend->allocate(aligned(pixels) + labels);
    if (r->memory != NULL) /* else others were faster */
        status = fill(r, pictures, pixels, labels);
    if (status == HPCT_OK && r->memory != NULL)
        *out = r;
    else
        hpct_resident_close(r);
    return status;
}

void hpct_resident_close(hpct_resident *resident)
{
    if (resident != NULL)
        resident->backend->release(resident->memory);
    free(resident);
}

void hpct_model_set_resident_input(hpct_model *model, const hpct_resident *resident,
                                   const hpct_drawn *drawn)
{
    hpct_model_set_input(model, NULL, NULL);
    if (model->run == NULL)
        return;
    model->run->resident = resident;
    model->run->given_drawn = drawn;
}
