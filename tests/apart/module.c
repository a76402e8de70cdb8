/* A module in the place of the GPU's, for machines without one: the reference backend, in memory
 * that the process can reach within the backend's calls alone. Whoever reads or writes what should
 * be a device's memory through a pointer ends with a signal. */
#include "nn/module.h"

#include "base/status.h"
#include "nn/ref/ref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROOM ((size_t) 8 << 30) /* of addresses: memory is what is touched */
#define PAGE ((size_t) 4096)

static char *room;
static size_t used; /* bytes given out since there was nothing */
static int live;    /* pieces given out */

static void reach(void)
{
    if (mprotect(room, used, PROT_READ | PROT_WRITE) != 0)
        abort();
}

static hpct_status leave(hpct_status status)
{
    if (mprotect(room, used, PROT_NONE) != 0)
        abort();
    return status;
}

/* ---- memory ---- */

static hpct_status open_room(void)
{
    if (room != NULL)
        return HPCT_OK;
    void *memory = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return hpct_fail_memory(ROOM);
    room = memory;
    return HPCT_OK;
}

static void *allocate(size_t bytes)
{
    size_t pages = (bytes / PAGE + 1) * PAGE;
    if (pages > ROOM - used)
        return NULL;
    void *memory = room + used;
    used += pages;
    live++;
    return memory;
}

static void release(void *memory)
{
    if (memory == NULL || --live > 0)
        return;
    if (madvise(room, used, MADV_DONTNEED) != 0)
        abort();
    used = 0;
}

static void *allocate_host(size_t bytes)
{
    return calloc(1, bytes + 1);
}

static hpct_status memory_left(size_t *left, size_t *all)
{
    *left = ROOM - used;
    *all = ROOM;
    return HPCT_OK;
}

static hpct_status to_host(void *host, const void *memory, size_t bytes)
{
    reach();
    memcpy(host, memory, bytes);
    return leave(HPCT_OK);
}

static hpct_status from_host(void *memory, const void *host, size_t bytes)
{
    reach();
    memcpy(memory, host, bytes);
    return leave(HPCT_OK);
}

static hpct_status zero(void *memory, size_t bytes)
{
    reach();
    memset(memory, 0, bytes);
    return leave(HPCT_OK);
}

static hpct_status wait(void)
{
    return HPCT_OK;
}

static bool describe(int number, char *text, size_t size)
{
    snprintf(text, size, "the reference, behind a wall");
    return number == 0;
}

static void versions(char *text, size_t size)
{
    snprintf(text, size, "none");
}

/* ---- operations ---- */

typedef struct walled {
    hpct_op op;
    hpct_op *inner;
} walled;

static hpct_op *inner_of(hpct_op *op)
{
    return ((walled *) op)->inner;
}

static hpct_status forward(hpct_op *op, const hpct_op_call *call)
{
    reach();
    return leave(inner_of(op)->class->forward(inner_of(op), call));
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    reach();
    return leave(inner_of(op)->class->backward(inner_of(op), call));
}

static hpct_status import_param(hpct_op *op, int which, const float *keras, float *arena)
{
    reach();
    return leave(inner_of(op)->class->import_param(inner_of(op), which, keras, arena));
}

static hpct_status export_param(hpct_op *op, int which, const float *arena, float *keras)
{
    reach();
    return leave(inner_of(op)->class->export_param(inner_of(op), which, arena, keras));
}

static void destroy(hpct_op *op)
{
    inner_of(op)->class->destroy(inner_of(op));
    free(op);
}

static hpct_status make_op(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build)
{
    static const hpct_op_class class = {.forward = forward,
                                        .backward = backward,
                                        .import_param = import_param,
                                        .export_param = export_param,
                                        .destroy = destroy};
    walled *w = calloc(1, sizeof *w);
    if (w == NULL)
        return hpct_fail_memory(sizeof *w);
    hpct_status status = hpct_ref_make_op(&w->inner, spec, build);
    if (status != HPCT_OK) {
        free(w);
        return status;
    }
    w->op = *w->inner;
    w->op.class = &class;
    *out = &w->op;
    return HPCT_OK;
}

static hpct_status loss(const hpct_loss_call *call)
{
    reach();
    return leave(hpct_ref_loss(call));
}

static hpct_status update(const hpct_update_call *call)
{
    reach();
    return leave(hpct_ref_update(call));
}

static hpct_status accumulate(size_t count, const float *src, float *dst, bool first)
{
    reach();
    return leave(hpct_ref_accumulate(count, src, dst, first));
}

static hpct_status scale(size_t count, float factor, float *dst)
{
    reach();
    for (size_t i = 0; i < count; i++)
        dst[i] *= factor;
    return leave(HPCT_OK);
}

static hpct_status check_precision(hpct_precision precision)
{
    (void) precision;
    return HPCT_OK;
}

static const hpct_device device = {
    .open = open_room,
    .describe = describe,
    .versions = versions,
    .memory = memory_left,
    .allocate_host = allocate_host,
    .release_host = free,
    .to_host = to_host,
    .from_host = from_host,
    .send = from_host,
    .zero = zero,
    .wait = wait,
};

const hpct_backend hpct_backend_cuda = {
    .name = "cuda",
    .device = &device,
    .allocate = allocate,
    .release = release,
    .check_precision = check_precision,
    .make_op = make_op,
    .loss = loss,
    .update = update,
    .accumulate = accumulate,
    .scale = scale,
};
