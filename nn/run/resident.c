/* Data sets in device memory. */
#include "nn/run/resident.h"

#include "base/status.h"
#include "nn/run/run.h"
#include "nn/run/step.h"

#include <stdint.h>
#include <stdlib.h>

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static hpct_status fill(hpct_run_resident *r, const hpct_backend_pictures *from, size_t pixels,
                        size_t labels)
{
    char *at = r->memory;
    r->pictures = *from;
    r->pictures.pixels = (uint8_t *) at;
    r->pictures.labels = (int32_t *) (void *) (at + aligned(pixels));
    HPCT_TRY(hpct_backend_memory_from_host(r->backend, at, from->pixels, pixels));
    return hpct_backend_memory_from_host(r->backend, at + aligned(pixels), from->labels, labels);
}

typedef struct opening {
    hpct_run_resident *all;
    const hpct_backend_pictures *pictures;
} opening;

/* hpct_graph_replica_work; leaves memory NULL if there is not enough. */
static hpct_status open_one(void *argument, int k, hpct_model *replica)
{
    const opening *o = argument;
    const hpct_backend_pictures *pictures = o->pictures;
    hpct_run_resident *r = &o->all[k];
    size_t pixels = pictures->count * (size_t) pictures->height * (size_t) pictures->width *
                    (size_t) pictures->channels,
           labels = pictures->count * sizeof *pictures->labels, left, all;
    r->model = replica;
    r->backend = replica->run->backend;
    HPCT_TRY(r->backend->device->memory(&left, &all));
    if (aligned(pixels) + labels > left / 2)
        return HPCT_OK;
    r->memory = r->backend->allocate(aligned(pixels) + labels);
    return r->memory != NULL ? fill(r, pictures, pixels, labels) : HPCT_OK; /* NULL: no longer
                                                                               enough */
}

/* hpct_graph_replica_work */
static hpct_status close_one(void *argument, int k, hpct_model *replica)
{
    hpct_run_resident *r = (hpct_run_resident *) argument + k;
    if (r->memory == NULL)
        return HPCT_OK;
    hpct_model_wait(replica); /* a gather may still read it */
    hpct_model_set_input(replica, NULL, NULL);
    r->backend->release(r->memory);
    return HPCT_OK;
}

static hpct_status in_each(hpct_model *model, hpct_graph_replica_work work, void *argument)
{
    const hpct_graph_step_peers *peers = &model->peers;
    return peers->each != NULL ? peers->each(peers->owner, work, argument)
                               : work(argument, 0, model);
}

hpct_status hpct_run_resident_open(hpct_run_resident **out, hpct_model *model,
                                   const hpct_backend_pictures *pictures)
{
    static uint64_t opened;
    const hpct_backend_device *device = model->run != NULL ? model->run->backend->device : NULL;
    *out = NULL;
    if (device == NULL || device->gather == NULL)
        return HPCT_OK;
    int num = model->peers.each != NULL ? model->peers.replicas : 1;
    hpct_run_resident *all = calloc((size_t) num, sizeof *all);
    if (all == NULL)
        return hpct_fail_memory((size_t) num * sizeof *all);
    for (int k = 0; k < num; k++) {
        all[k].number = ++opened;
        all[k].next = k + 1 < num ? &all[k + 1] : NULL;
    }
    all->model = model;
    hpct_status status = in_each(model, open_one, &(opening){all, pictures});
    bool everywhere = status == HPCT_OK;
    for (int k = 0; k < num; k++)
        everywhere &= all[k].memory != NULL;
    if (everywhere)
        *out = all;
    else
        hpct_run_resident_close(all);
    return status;
}

void hpct_run_resident_close(hpct_run_resident *resident)
{
    if (resident != NULL)
        in_each(resident->model, close_one, resident);
    free(resident);
}

const hpct_run_resident *hpct_run_resident_of(const hpct_run_resident *resident,
                                              const hpct_model *replica)
{
    while (resident != NULL && resident->model != replica)
        resident = resident->next;
    return resident;
}

void hpct_model_set_resident_input(hpct_model *model, const hpct_run_resident *resident,
                                   const hpct_drawn *drawn)
{
    hpct_model_set_input(model, NULL, NULL);
    if (model->run == NULL)
        return;
    model->run->input.resident = resident;
    model->run->input.given_drawn = drawn;
}
