/* A module in the place of the GPU's, for machines without one: the reference backend, in memory
 * that the process can reach within the backend's calls alone. Whoever reads or writes what should
 * be a device's memory through a pointer ends with a signal. */
#include "nn/backend/module.h"

#include "base/status.h"
#include "nn/backend/ref/ref.h"
#include "tests/gpu_without/module/noting.h"
#include "tests/gpu_without/module/wall.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static hpct_status memory_left(size_t *left, size_t *all)
{
    *left = wall_left(all);
    return HPCT_OK;
}

static void *allocate_host(size_t bytes)
{
    return calloc(1, bytes + 1);
}

/* HPC_TRAIN_TEST_DEVICES: how many there are, else one. */
static int count_devices(void)
{
    const char *count = getenv("HPC_TRAIN_TEST_DEVICES");
    return count != NULL ? atoi(count) : 1;
}

static bool describe(int number, char *text, size_t size)
{
    snprintf(text, size, "the reference, behind a wall");
    return number < count_devices();
}

static bool links(int number, char *text, size_t size)
{
    snprintf(text, size, "%d through the wall", 1 - number);
    return true;
}

static void versions(char *text, size_t size)
{
    snprintf(text, size, "none");
}

/* ---- recordings: calls as they were noted, and what replaces a part of them ---- */

typedef enum call_kind {
    FORWARD,
    BACKWARD,
    LOSS,
    UPDATE,
    PENALIZE,
    ACCUMULATE,
    SCALE,
    GATHER,
    OTHER
} call_kind;

typedef struct noted {
    call_kind kind;
    hpct_op *op;
    hpct_op_call call;
    hpct_loss_call loss;
    hpct_update_call update;
    hpct_penalty_call penalty;
    hpct_gather_call gather;
    size_t count;
    const float *src;
    float *dst, factor;
    bool first;
    hpct_status (*make)(const void *argument); /* OTHER */
    _Alignas(16) unsigned char argument[MODULE_ARGUMENT];
} noted;

typedef struct recording {
    noted *calls;
    int num, replays, number;
} recording;

static _Thread_local recording *noting; /* NULL: calls are made */
static _Thread_local int num_recordings, replaying;
static _Thread_local hpct_op_call draws;
static _Thread_local hpct_update_call rates;

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

bool module_note(hpct_status (*make)(const void *argument), const void *argument, size_t bytes)
{
    noted n = {.kind = OTHER, .make = make};
    memcpy(n.argument, argument, bytes);
    return is_noted(&n);
}

bool module_is_noting(void)
{
    return noting != NULL;
}

int module_replaying(void)
{
    return replaying;
}

static hpct_status start_recording(void)
{
    noting = calloc(1, sizeof *noting);
    return noting != NULL ? HPCT_OK : hpct_fail_memory(sizeof *noting);
}

/* HPC_TRAIN_TEST_NO_RECORDING: what was noted cannot be replayed. */
static hpct_status end_recording(void **out)
{
    recording *r = noting;
    noting = NULL;
    *out = NULL;
    if (getenv("HPC_TRAIN_TEST_NO_RECORDING") != NULL) {
        free(r->calls);
        free(r);
        return hpct_fail(HPCT_ERR_INTERNAL, "nothing is recorded here");
    }
    r->number = ++num_recordings;
    *out = r;
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
    wall_open();
    return wall_close(inner_of(op)->class->forward(inner_of(op), call));
}

static hpct_status backward(hpct_op *op, const hpct_op_call *call)
{
    if (is_noted(&(noted){.kind = BACKWARD, .op = op, .call = *call}))
        return HPCT_OK;
    wall_open();
    return wall_close(inner_of(op)->class->backward(inner_of(op), call));
}

static hpct_status import_param(hpct_op *op, int which, const float *keras, float *arena)
{
    wall_open();
    return wall_close(inner_of(op)->class->import_param(inner_of(op), which, keras, arena));
}

static hpct_status export_param(hpct_op *op, int which, const float *arena, float *keras)
{
    wall_open();
    return wall_close(inner_of(op)->class->export_param(inner_of(op), which, arena, keras));
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

static bool fuses(hpct_fusion fusion, const hpct_op_spec *spec, const hpct_op_build *build,
                  const hpct_op_spec *other)
{
    (void) spec, (void) build, (void) other;
    return fusion != HPCT_FUSION_POOL;
}

/* HPC_TRAIN_TEST_FAILS: the device with this number takes no more than ten losses. */
static bool is_broken(void)
{
    static _Thread_local int losses;
    const char *device = getenv("HPC_TRAIN_TEST_FAILS");
    return device != NULL && atoi(device) == wall_number() && ++losses > 10;
}

static hpct_status loss(const hpct_loss_call *call)
{
    if (noting == NULL && is_broken())
        return hpct_fail(HPCT_ERR_INTERNAL, "the device behind the wall is broken");
    if (is_noted(&(noted){.kind = LOSS, .loss = *call}))
        return HPCT_OK;
    wall_open();
    return wall_close(hpct_ref_loss(call));
}

static hpct_status update(const hpct_update_call *call)
{
    if (is_noted(&(noted){.kind = UPDATE, .update = *call}))
        return HPCT_OK;
    wall_open();
    return wall_close(hpct_ref_update(call));
}

static hpct_status penalize(const hpct_penalty_call *call)
{
    if (is_noted(&(noted){.kind = PENALIZE, .penalty = *call}))
        return HPCT_OK;
    wall_open();
    return wall_close(hpct_ref_penalize(call));
}

static hpct_status accumulate(size_t count, const float *src, float *dst, bool first)
{
    if (is_noted(
            &(noted){.kind = ACCUMULATE, .count = count, .src = src, .dst = dst, .first = first}))
        return HPCT_OK;
    wall_open();
    return wall_close(hpct_ref_accumulate(count, src, dst, first));
}

static hpct_status scale(size_t count, float factor, float *dst)
{
    if (is_noted(&(noted){.kind = SCALE, .count = count, .dst = dst, .factor = factor}))
        return HPCT_OK;
    wall_open();
    for (size_t i = 0; i < count; i++)
        dst[i] *= factor;
    return wall_close(HPCT_OK);
}

/* ---- memory, as a recording may have it ---- */

typedef struct span {
    void *to;
    const void *from; /* NULL: zeros */
    size_t bytes;
} span;

static hpct_status make_span(const void *argument)
{
    const span *s = argument;
    wall_open();
    if (s->from != NULL)
        memcpy(s->to, s->from, s->bytes);
    else
        memset(s->to, 0, s->bytes);
    return wall_close(HPCT_OK);
}

static hpct_status ask_span(span s)
{
    return module_note(make_span, &s, sizeof s) ? HPCT_OK : make_span(&s);
}

static hpct_status zero(void *memory, size_t bytes)
{
    return ask_span((span){.to = memory, .bytes = bytes});
}

static hpct_status copy(void *to, const void *from, size_t bytes)
{
    return ask_span((span){to, from, bytes});
}

/* ---- pictures and sums ---- */

typedef struct sums_call {
    const hpct_batch_sums *sums;
    float *to;
} sums_call;

static hpct_status make_sums(const void *argument)
{
    const sums_call *c = argument;
    wall_open();
    c->to[0] = (float) c->sums->loss;
    c->to[1] = (float) c->sums->correct;
    c->to[2] = (float) c->sums->in_top_k;
    return wall_close(HPCT_OK);
}

static hpct_status put_sums(const hpct_batch_sums *sums, float *to)
{
    sums_call c = {sums, to};
    return module_note(make_sums, &c, sizeof c) ? HPCT_OK : make_sums(&c);
}

/* Byte (y, x) of a picture; cells outside are its edge's. */
static double byte_at(const hpct_pictures *p, const uint8_t *picture, int y, int x, int channel)
{
    y = y < 0 ? 0 : y < p->height ? y : p->height - 1;
    x = x < 0 ? 0 : x < p->width ? x : p->width - 1;
    return picture[(y * p->width + x) * p->channels + channel];
}

/* Bilinear, with half-pixel centres. */
static double look(const hpct_pictures *p, const uint8_t *picture, int y, int x, int channel)
{
    double v = (y + 0.5) * p->height / p->to_height - 0.5,
           h = (x + 0.5) * p->width / p->to_width - 0.5;
    int top = (int) floor(v), left = (int) floor(h);
    double down = v - top, right = h - left;
    double above = byte_at(p, picture, top, left, channel) * (1 - right) +
                   byte_at(p, picture, top, left + 1, channel) * right;
    double below = byte_at(p, picture, top + 1, left, channel) * (1 - right) +
                   byte_at(p, picture, top + 1, left + 1, channel) * right;
    return (above * (1 - down) + below * down) * (double) p->factor + (double) p->offset;
}

static hpct_status gather(const hpct_gather_call *call)
{
    const hpct_pictures *p = call->pictures;
    float *to = call->dst;
    if (is_noted(&(noted){.kind = GATHER, .gather = *call}))
        return HPCT_OK;
    wall_open();
    for (int s = 0; s < call->n; s++) {
        const hpct_drawn *d = &call->drawn[s];
        const uint8_t *picture =
            p->pixels + (size_t) d->index * (size_t) (p->height * p->width * p->channels);
        call->labels[s] = p->labels[d->index];
        for (int i = 0; i < p->to_height * p->to_width * p->channels; i++) {
            int cell = i / p->channels, y = cell / p->to_width + d->move_y,
                x = cell % p->to_width + d->move_x;
            bool inside = y >= 0 && y < p->to_height && x >= 0 && x < p->to_width;
            int column = d->flip != 0 ? p->to_width - 1 - x : x;
            *to++ = inside ? (float) look(p, picture, y, column, i % p->channels) : p->offset;
        }
    }
    return wall_close(HPCT_OK);
}

/* ---- replays ---- */

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
    case PENALIZE:
        return penalize(&n.penalty);
    case ACCUMULATE:
        return accumulate(n.count, n.src, n.dst, n.first);
    case SCALE:
        return scale(n.count, n.factor, n.dst);
    case GATHER:
        return gather(&n.gather);
    case OTHER:
        return n.make(n.argument);
    }
    return HPCT_ERR_INTERNAL;
}

static hpct_status replay(void *memory)
{
    recording *r = memory;
    hpct_status status = HPCT_OK;
    r->replays++;
    replaying = r->number;
    for (int i = 0; i < r->num && status == HPCT_OK; i++)
        status = make_call(r->calls[i]);
    replaying = 0;
    return status;
}

static hpct_status check_precision(hpct_precision precision)
{
    (void) precision;
    return HPCT_OK;
}

static hpct_status open_device(void);

static hpct_status enter_device(int replica)
{
    if (replica >= count_devices() || replica >= WALL_DEVICES)
        return hpct_fail(HPCT_ERR_CONFIG, "there is no device %d behind the wall", replica);
    wall_enter(replica);
    return wall_make();
}

static hpct_device device = {
    .open = open_device,
    .enter = enter_device,
    .describe = describe,
    .links = links,
    .versions = versions,
    .memory = memory_left,
    .allocate_host = allocate_host,
    .release_host = wall_free_host,
    .to_host = wall_to_host,
    .from_host = wall_from_host,
    .send = wall_send,
    .send_beside = wall_send_beside,
    .take = wall_take,
    .taken = wall_taken,
    .fetch = wall_fetch,
    .copy = copy,
    .zero = zero,
    .wait = wall_wait,
    .mark = wall_mark,
    .await = wall_await,
    .put_sums = put_sums,
    .gather = gather,
    .record = start_recording,
    .end_record = end_recording,
    .replay = replay,
    .drop_recording = drop_recording,
    .set_draws = set_draws,
    .set_rates = set_rates,
};

/* HPC_TRAIN_TEST_NO_GATHER: the host makes the pictures. */
static hpct_status open_device(void)
{
    device.gather = getenv("HPC_TRAIN_TEST_NO_GATHER") == NULL ? gather : NULL;
    return wall_make();
}

const hpct_backend hpct_backend_cuda = {
    .name = "cuda",
    .device = &device,
    .allocate = wall_allocate,
    .release = wall_release,
    .check_precision = check_precision,
    .make_op = make_op,
    .loss = loss,
    .update = update,
    .penalize = penalize,
    .accumulate = accumulate,
    .scale = scale,
    .fuses = fuses,
};
