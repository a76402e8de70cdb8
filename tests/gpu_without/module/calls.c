/* What communicators ask of a GPU (base/device_calls.h), of memory behind the wall: without
 * NCCL, so that sums go through pinned memory and MPI, or with what stands in for it. */
#include "base/device_calls.h"

#include "tests/gpu_without/module/nccl.h"
#include "tests/gpu_without/module/noting.h"
#include "tests/gpu_without/module/wall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern HPCT_API const hpct_device_calls hpct_device_calls_cuda;

static const char *error(void)
{
    return "there is no NCCL behind the wall";
}

static hpct_device_result open_device(void)
{
    return wall_make() == HPCT_OK ? HPCT_DEVICE_OK : HPCT_DEVICE_FAILED;
}

static const char *device_name(void)
{
    static _Thread_local char name[32];
    snprintf(name, sizeof name, "0000:00:%02d.0", wall_number());
    return name;
}

static void *compute_stream(void)
{
    return NULL;
}

static hpct_device_result allocate(void **out, size_t bytes)
{
    *out = wall_allocate(bytes);
    return *out != NULL ? HPCT_DEVICE_OK : HPCT_DEVICE_MEMORY;
}

static hpct_device_result allocate_host(void **out, size_t bytes)
{
    *out = calloc(1, bytes + 1);
    return *out != NULL ? HPCT_DEVICE_OK : HPCT_DEVICE_MEMORY;
}

/* Streams and events: everything is done when it is called. */
static hpct_device_result create(void **out)
{
    *out = malloc(1);
    return *out != NULL ? HPCT_DEVICE_OK : HPCT_DEVICE_MEMORY;
}

static hpct_device_result record(void *event, void *stream)
{
    (void) event;
    (void) stream;
    return HPCT_DEVICE_OK;
}

static hpct_device_result query(void *event)
{
    (void) event;
    return HPCT_DEVICE_OK;
}

static hpct_device_result copy(void *dst, const void *src, size_t bytes, void *stream)
{
    (void) stream;
    if (module_is_noting())
        abort(); /* the host's memory changes from step to step */
    wall_open();
    memcpy(dst, src, bytes);
    wall_close(HPCT_OK);
    return HPCT_DEVICE_OK;
}

const hpct_device_calls hpct_device_calls_cuda = {
    .error = error,
    .open = open_device,
    .device_name = device_name,
    .compute_stream = compute_stream,
    .is_recording = module_is_noting,
    .is_device = wall_has,
    .allocate = allocate,
    .release = wall_release,
    .allocate_host = allocate_host,
    .release_host = free,
    .create_stream = create,
    .destroy_stream = free,
    .create_event = create,
    .destroy_event = free,
    .record = record,
    .query = query,
    .wait_event = record,
    .copy = copy,
    .encode = module_encode,
    .decode = module_decode,
    .has_nccl = module_has_nccl,
    .unique_id = module_unique_id,
    .init = module_init,
    .async_error = module_async_error,
    .group_start = module_group,
    .group_end = module_group,
    .all_reduce = module_all_reduce,
    .broadcast = module_broadcast,
    .all_gather = module_all_gather,
    .finalize = module_finalize,
    .destroy = module_destroy,
    .abort = module_destroy,
};
