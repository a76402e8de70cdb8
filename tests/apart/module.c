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

/* ---- recordings: calls as they were noted, and what replaces a part of them ---- */

typedef enum call_kind { FORWARD, BACKWARD, LOSS, UPDATE, ACCUMULATE, SCALE } call_kind;

typedef struct noted {
    call_kind kind;
    hpct_op *op;
    hpct_op_call call;
    hpct_loss_call loss;
    hpct_update_call update;
    size_t count;
    const float *src;
    float *dst, factor;
    bool first;
} noted;

typedef struct recording {
    noted *calls;
    int num, replays;
} recording;

static recording *noting; /* NULL: calls are made */
static hpct_op_call draws;
static hpct_update_call rates;

/* Whether the call is one of a recording now, not to be made. */
static bool is_noted(const noted *call)
{
    if (noting == NULL)
        return false;
    noting->calls = realloc(noting->calls, (size_t) (noting->num + 1) * sizeof *call);
    if (noting->calls == NULL)
        abort();
    noting->calls[noting->num++] = *call;
    return true;
}

static hpct_status start_recording(void)
{
    noting = calloc(1, sizeof *noting);
    return noting != NULL ? HPCT_OK : hpct_fail_memory(sizeof *noting);
}

static hpct_status end_recording(void **out)
{
    *out = noting;
    noting = NULL;
    return HPCT_OK;
}

static hpct_status set_draws(uint64_t seed, int64_t step, int64_t first_sample)
{
    draws.seed = seed;
    draws.step = step;
    draws.first_sample = first_sample;
    return HPCT_OK;
}

static hpct_status set_rates(const hpct_update_call *call)
{
    rates = *call;
    return HPCT_OK;
}

/* HPC_TRAIN_TEST_RECORDINGS: a file that gets a line for each that is dropped: calls and replays.
 */
static void drop_recording(void *memory)
{
    recording *r = memory;
    const char *path = getenv("HPC_TRAIN_TEST_RECORDINGS");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        fprintf(file, "%d calls, %d replays\n", r->num, r->replays);
        fclose(file);
    }
    free(r->calls);
    free(r);
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
    if (is_noted(&(noted){.kind = FORWARD, .op = op, .call = *call}))
        return HPCT_OK;
    reach();
    return leave(inner_of(op)->class->forward(inner_of(op), call));
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (is_noted(&(noted){.kind = BACKWARD, .op = op, .call = *call}))
        return HPCT_OK;
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
    if (is_noted(&(noted){.kind = LOSS, .loss = *call}))
        return HPCT_OK;
    reach();
    return leave(hpct_ref_loss(call));
}

static hpct_status update(const hpct_update_call *call)
{
    if (is_noted(&(noted){.kind = UPDATE, .update = *call}))
        return HPCT_OK;
    reach();
    return leave(hpct_ref_update(call));
}

static hpct_status accumulate(size_t count, const float *src, float *dst, bool first)
{
    if (is_noted(
            &(noted){.kind = ACCUMULATE, .count = count, .src = src, .dst = dst, .first = first}))
        return HPCT_OK;
    reach();
    return leave(hpct_ref_accumulate(count, src, dst, first));
}

static hpct_status scale(size_t count, float factor, float *dst)
{
    if (is_noted(&(noted){.kind = SCALE, .count = count, .dst = dst, .factor = factor}))
        return HPCT_OK;
    reach();
    for (size_t i = 0; i < count; i++)
        dst[i] *= factor;
    return leave(HPCT_OK);
}

/* Seeds, steps and rates as they are now. */
static hpct_status make_call(noted n)
{
    n.call.seed = draws.seed;
    n.call.step = draws.step;
    n.call.first_sample = draws.first_sample;
    n.update.learning_rate = rates.learning_rate;
    n.update.bias_1 = rates.bias_1;
    n.update.bias_2 = rates.bias_2;
    switch (n.kind) {
    case FORWARD:
        return forward(n.op, &n.call);
    case BACKWARD:
        return backward(n.op, &n.call);
    case LOSS:
        return loss(&n.loss);
    case UPDATE:
        return update(&n.update);
    case ACCUMULATE:
        return accumulate(n.count, n.src, n.dst, n.first);
    case SCALE:
        return scale(n.count, n.factor, n.dst);
    }
    return HPCT_ERR_INTERNAL;
}

static hpct_status replay(void *memory)
{
    recording *r = memory;
    hpct_status status = HPCT_OK;
    r->replays++;
    for (int i = 0; i < r->num && status == HPCT_OK; i++)
        status = make_call(r->calls[i]);
    return status;
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
    .record = start_recording,
    .end_record = end_recording,
    .replay = replay,
    .drop_recording = drop_recording,
    .set_draws = set_draws,
    .set_rates = set_rates,
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
