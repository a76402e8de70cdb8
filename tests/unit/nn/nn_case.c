/* One operation with random numbers, carried out by any backend. */
#include "tests/unit/nn/nn_case.h"

#include "nn/backend/norm_line.h"

#include "base/fp16.h"
#include "nn/backend/bf16.h"
#include "nn/graph/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STREAM_SRC, STREAM_DIFF, STREAM_PARAM, STREAM_BEFORE = 100 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static int along(int in, int kernel, int stride, int dilation, bool same, int *pad)
{
    int reach = hpct_graph_window_reach(kernel, dilation);
    int out = same ? (in + stride - 1) / stride : (in - reach) / stride + 1;
    int missing = (out - 1) * stride + reach - in;
    *pad = same && missing > 0 ? missing / 2 : 0;
    return out;
}

hpct_graph_window nn_dilated_window(const int in[3], int out_c, const int kernel[2],
                                    const int strides[2], const int dilation[2], int groups,
                                    bool same)
{
    hpct_graph_window w = {.in_h = in[0],
                           .in_w = in[1],
                           .in_c = in[2],
                           .out_c = out_c,
                           .kernel_h = kernel[0],
                           .kernel_w = kernel[1],
                           .stride_h = strides[0],
                           .stride_w = strides[1],
                           .dilation_h = dilation[0],
                           .dilation_w = dilation[1],
                           .groups = groups};
    w.out_h = along(w.in_h, w.kernel_h, w.stride_h, w.dilation_h, same, &w.pad_top);
    w.out_w = along(w.in_w, w.kernel_w, w.stride_w, w.dilation_w, same, &w.pad_left);
    return w;
}

hpct_graph_window nn_window(const int in[3], int out_c, const int kernel[2], const int strides[2],
                            bool same)
{
    return nn_dilated_window(in, out_c, kernel, strides, (int[]){1, 1}, 1, same);
}

static void count(const nn_case *c, nn_result *r)
{
    size_t n = (size_t) c->n;
    r->num_inputs = hpct_op_num_inputs(&c->spec);
    for (int k = 0; k < r->num_inputs; k++)
        r->src_count[k] = n * hpct_op_src_floats(&c->spec, k);
    r->dst_count = n * hpct_op_dst_floats(&c->spec);
    for (int i = 0; i < hpct_op_num_params(&c->spec); i++)
        r->param_count[i] = hpct_op_param_floats(&c->spec, i);
}

static float *poisoned(size_t count)
{
    float *memory = hpct_backend_host_allocate(count * sizeof *memory);
    if (memory != NULL)
        memset(memory, 0xff, count * sizeof *memory); /* not a number, in 32 bits and in 16 */
    return memory;
}

/* Never zero, so that padding can be told from numbers. */
static float *random_floats(size_t count, uint64_t seed, uint32_t stream, int small_integers)
{
    float *memory = hpct_backend_host_allocate(count * sizeof *memory);
    for (size_t i = 0; memory != NULL && i < count; i++) {
        float u = 2 * hpct_graph_uniform(seed, stream, i) - 1;
        memory[i] =
            small_integers != 0 ? floorf(u * (float) small_integers) : u + (u < 0 ? -1e-3f : 1e-3f);
    }
    return memory;
}

#define BEHIND 512 /* floats after what an operation asks for, which it leaves alone */

static size_t floats_of(size_t bytes)
{
    return (bytes + sizeof(float) - 1) / sizeof(float);
}

static bool is_written(const hpct_backend *backend, const float *behind)
{
    float now[BEHIND], before[BEHIND];
    memset(before, 0xff, sizeof before);
    if (hpct_backend_memory_to_host(backend, now, behind, sizeof now) != HPCT_OK)
        abort();
    return memcmp(now, before, sizeof now) != 0;
}

/* An arena that holds more than `real` numbers, or one never written. */
static size_t count_bad_padding(const float *arena, size_t floats, size_t real)
{
    size_t numbers = 0, unwritten = 0;
    for (size_t i = 0; i < floats; i++) {
        numbers += arena[i] != 0;
        unwritten += isnan(arena[i]) != 0;
    }
    return unwritten + (numbers > real ? numbers - real : 0);
}

/* Channels of a picture; input -1: of the result. */
static int channels_of(const hpct_op_spec *spec, int input)
{
    switch (spec->kind) {
    case HPCT_OP_CONV2D:
    case HPCT_OP_MAX_POOL2D:
    case HPCT_OP_AVERAGE_POOL2D:
    case HPCT_OP_PAD2D:
        return input < 0 ? spec->window.out_c : spec->window.in_c;
    case HPCT_OP_BATCH_NORM:
        return spec->norm.channels;
    case HPCT_OP_ADD:
    case HPCT_OP_CONCATENATE:
    case HPCT_OP_MULTIPLY:
        if (input < 0)
            return (int) (hpct_op_dst_floats(spec) / (size_t) spec->join.rows);
        return spec->join.size[input];
    default:
        return 1;
    }
}

bool nn_case_can_be_blocks(const nn_case *c)
{
    bool can = channels_of(&c->spec, -1) % HPCT_GRAPH_CHANNEL_BLOCK == 0;
    for (int k = 0; k < hpct_op_num_inputs(&c->spec); k++)
        can = can && channels_of(&c->spec, k) % HPCT_GRAPH_CHANNEL_BLOCK == 0;
    return can;
}

/* Between channels last and blocks of channels; back with `to_blocks` false. */
static void turn(float *data, size_t count, int n, int channels, bool to_blocks)
{
    size_t c = (size_t) channels, cells = count / (size_t) n / c;
    float *copy = hpct_backend_host_allocate(count * sizeof *copy);
    memcpy(copy, data, count * sizeof *data);
    for (size_t i = 0; i < count; i++) {
        size_t sample = i / (cells * c), cell = i / c % cells, channel = i % c;
        size_t block =
            (sample * c / HPCT_GRAPH_CHANNEL_BLOCK + channel / HPCT_GRAPH_CHANNEL_BLOCK) * cells +
            cell;
        size_t there = block * HPCT_GRAPH_CHANNEL_BLOCK + channel % HPCT_GRAPH_CHANNEL_BLOCK;
        data[to_blocks ? there : i] = copy[to_blocks ? i : there];
    }
    hpct_backend_host_release(copy);
}

/* One picture of a case, if it lies so. */
static void turn_picture(const nn_case *c, float *data, size_t count, int input, bool to_blocks)
{
    bool blocks = input < 0 ? c->spec.dst_blocks : c->spec.src_blocks;
    if (blocks && data != NULL)
        turn(data, count, c->n, channels_of(&c->spec, input), to_blocks);
}

/* ---- numbers of 16 bits ---- */

static uint16_t low_of(hpct_precision values, float x)
{
    return values == HPCT_BF16 ? hpct_backend_bf16_of(x) : hpct_fp16_of(x);
}

static float of_low(hpct_precision values, uint16_t x)
{
    return values == HPCT_BF16 ? hpct_backend_bf16_value(x) : hpct_fp16_value(x);
}

static void round_all(hpct_precision values, float *data, size_t count)
{
    for (size_t i = 0; data != NULL && values != HPCT_FP32 && i < count; i++)
        data[i] = of_low(values, low_of(values, data[i]));
}

/* In place: the first half of the array has them then. */
static void pack(hpct_precision values, float *data, size_t count)
{
    for (size_t i = 0; data != NULL && values != HPCT_FP32 && i < count; i++) {
        uint16_t low = low_of(values, data[i]);
        memcpy((char *) data + i * sizeof low, &low, sizeof low);
    }
}

static void unpack(hpct_precision values, float *data, size_t count)
{
    for (size_t i = count; data != NULL && values != HPCT_FP32 && i > 0; i--) {
        uint16_t low;
        memcpy(&low, (char *) data + (i - 1) * sizeof low, sizeof low);
        data[i - 1] = of_low(values, low);
    }
}

/* ---- memory of the backend, which is the host's own or a device's ---- */

/* `host`, or a copy of it on the device. */
static float *near_copy(const hpct_backend *backend, float *host, size_t count)
{
    if (backend->device == NULL || host == NULL)
        return host;
    float *memory = backend->allocate(count * sizeof *memory);
    if (memory != NULL &&
        hpct_backend_memory_from_host(backend, memory, host, count * sizeof *host) != 0)
        abort();
    return memory;
}

/* The same, made of what the caller has no more need of. */
static float *near_self(const hpct_backend *backend, float *host, size_t count)
{
    float *memory = near_copy(backend, host, count);
    if (memory != host)
        hpct_backend_host_release(host);
    return memory;
}

/* From one to the other, where they are two. */
static void fetch(const hpct_backend *backend, float *host, const float *memory, size_t count)
{
    if (host != memory && host != NULL &&
        hpct_backend_memory_to_host(backend, host, memory, count * sizeof *host) != HPCT_OK)
        abort();
}

static void push(const hpct_backend *backend, float *memory, const float *host, size_t count)
{
    if (host != memory && host != NULL &&
        hpct_backend_memory_from_host(backend, memory, host, count * sizeof *host) != HPCT_OK)
        abort();
}

static void drop(const hpct_backend *backend, float *memory, const float *host)
{
    if (memory != host)
        backend->release(memory);
}

typedef struct arenas {
    float *param[HPCT_OP_MAX_PARAMS], *grad[HPCT_OP_MAX_PARAMS];
} arenas;

static hpct_status import_params(const hpct_backend *backend, hpct_op *op, const nn_result *r,
                                 uint64_t seed, arenas *a)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < op->num_params && status == HPCT_OK; i++) {
        float *keras = random_floats(r->param_count[i], seed, STREAM_PARAM + (uint32_t) i, 0);
        for (size_t k = 0; hpct_op_param_is_state(&op->spec, i) && k < r->param_count[i]; k++)
            keras[k] = fabsf(keras[k]); /* variances */
        size_t floats = op->param_floats[i];
        a->param[i] = near_self(backend, poisoned(floats), floats);
        if (!hpct_op_param_is_state(&op->spec, i))
            a->grad[i] = near_self(backend, poisoned(floats), floats);
        status = hpct_op_import(op, i, keras, a->param[i]);
        hpct_backend_host_release(keras);
    }
    return status;
}

static size_t bad_padding_of(const hpct_backend *backend, const float *arena, size_t floats,
                             size_t real)
{
    float *host = poisoned(floats);
    hpct_status status = hpct_backend_memory_to_host(backend, host, arena, floats * sizeof *host);
    size_t bad = status == HPCT_OK ? count_bad_padding(host, floats, real) : floats;
    hpct_backend_host_release(host);
    return bad;
}

static hpct_status export_params(const hpct_backend *backend, hpct_op *op, nn_result *r,
                                 const arenas *a)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < op->num_params && status == HPCT_OK; i++) {
        r->grad[i] = poisoned(r->param_count[i]);
        r->param[i] = poisoned(r->param_count[i]);
        status = hpct_op_export(op, i, a->param[i], r->param[i]);
        r->bad_padding +=
            bad_padding_of(backend, a->param[i], op->param_floats[i], r->param_count[i]);
        bool fused = i == HPCT_OP_KERNEL && op->kernel_fused;
        if (status != HPCT_OK || fused || a->grad[i] == NULL)
            continue;
        status = hpct_op_export(op, i, a->grad[i], r->grad[i]);
        r->bad_padding +=
            bad_padding_of(backend, a->grad[i], op->param_floats[i], r->param_count[i]);
    }
    return status;
}

static void keep_least(double *seconds, double taken)
{
    if (*seconds == 0 || taken < *seconds)
        *seconds = taken;
}

static hpct_status run(const nn_case *c, const hpct_backend *backend, hpct_op *op, uint64_t seed,
                       const float *given_dst, int repeat, nn_result *r, const arenas *a)
{
    hpct_status status = HPCT_OK;
    float *src[HPCT_GRAPH_NODE_MAX_INPUTS] = {NULL}, *before[HPCT_GRAPH_NODE_MAX_INPUTS] = {NULL},
          *near_diff[HPCT_GRAPH_NODE_MAX_INPUTS] = {NULL};
    bool add[HPCT_GRAPH_NODE_MAX_INPUTS] = {false};
    hpct_precision low = op->build.values; /* as the numbers lie there */
    for (int k = 0; k < r->num_inputs; k++) {
        uint32_t own = 16 * (uint32_t) k;
        src[k] = random_floats(r->src_count[k], seed, STREAM_SRC + own, c->small_integers);
        add[k] = c->add && op->adds_diff_src;
        r->added |= add[k];
        before[k] = c->add ? random_floats(r->src_count[k], seed, STREAM_BEFORE + own, 0) : NULL;
        r->diff_src[k] = c->needs_diff_src ? poisoned(r->src_count[k]) : NULL;
        round_all(c->values, src[k], r->src_count[k]);
        round_all(c->values, before[k], r->src_count[k]);
        pack(low, src[k], r->src_count[k]);
        turn_picture(c, src[k], r->src_count[k], k, true);
        turn_picture(c, before[k], r->src_count[k], k, true);
        src[k] = near_self(backend, src[k], r->src_count[k]);
        near_diff[k] = near_copy(backend, r->diff_src[k], r->src_count[k]);
    }
    if (c->adds) {
        src[1] = random_floats(r->dst_count, seed, STREAM_SRC + 16, c->small_integers);
        round_all(c->values, src[1], r->dst_count);
        pack(low, src[1], r->dst_count);
        src[1] = near_self(backend, src[1], r->dst_count);
    }
    float *diff = random_floats(r->dst_count, seed, STREAM_DIFF, 0);
    round_all(c->values, diff, r->dst_count);
    pack(low, diff, r->dst_count);
    turn_picture(c, diff, r->dst_count, -1, true);
    float *dst = poisoned(r->dst_count), *diff_dst = poisoned(r->dst_count);
    float *near_dst = near_copy(backend, dst, r->dst_count),
          *near_diff_dst = near_copy(backend, diff_dst, r->dst_count);
    size_t bytes[3] = {op->workspace_bytes, op->scratch_bytes, op->copies_bytes};
    float *rest[3];
    for (int i = 0; i < 3; i++)
        rest[i] = near_self(backend, poisoned(floats_of(bytes[i]) + BEHIND),
                            floats_of(bytes[i]) + BEHIND);
    r->dst = poisoned(r->dst_count);
    hpct_op_call call = {.batch = c->other_n > 0 ? 1 : 0,
                         .n = c->n,
                         .src = (const float *const *) src,
                         .norms = (const void *const[HPCT_GRAPH_NODE_MAX_INPUTS]){NULL},
                         .dst = near_dst,
                         .diff_dst = near_diff_dst,
                         .diff_src = near_diff,
                         .add = add,
                         .param = a->param,
                         .grad = a->grad,
                         .copies = rest[2],
                         .workspace = rest[0],
                         .scratch = rest[1],
                         .learning_rate = 0.5f,
                         .training = !c->inference,
                         .seed = seed,
                         .step = 2,
                         .first_sample = 6};
    for (int i = 0; i < repeat && status == HPCT_OK; i++) {
        for (int k = 0; k < op->num_params && status == HPCT_OK; k++) {
            hpct_backend_param_copy copy = {.from = call.param[k],
                                            .to = (char *) call.copies + op->copy_offset[k],
                                            .count = op->param_floats[k]};
            if (op->param_copied[k])
                status = backend->copy_params(op->build.values, &copy, 1);
        }
        hpct_backend_memory_wait(backend);
        if (status == HPCT_OK && op->class->refresh != NULL)
            status = op->class->refresh(op, &call);
        double started = now();
        if (status == HPCT_OK)
            status = op->class->forward(op, &call);
        hpct_backend_memory_wait(backend);
        keep_least(&r->forward_seconds, now() - started);
        fetch(backend, dst, near_dst, r->dst_count);
        memcpy(r->dst, dst, r->dst_count * sizeof *dst);
        if (given_dst != NULL) {
            memcpy(dst, given_dst, r->dst_count * sizeof *dst);
            pack(low, dst, r->dst_count);
            turn_picture(c, dst, r->dst_count, -1, true);
        }
        memcpy(diff_dst, diff, r->dst_count * sizeof *diff);
        push(backend, near_dst, dst, r->dst_count);
        push(backend, near_diff_dst, diff_dst, r->dst_count);
        for (int k = 0; k < r->num_inputs && c->add; k++) {
            if (!add[k])
                continue;
            memcpy(r->diff_src[k], before[k], r->src_count[k] * sizeof *diff);
            pack(low, r->diff_src[k], r->src_count[k]);
            push(backend, near_diff[k], r->diff_src[k], r->src_count[k]);
        }
        started = now();
        if (status == HPCT_OK && !c->forward_only)
            status = op->class->backward(op, &call);
        hpct_backend_memory_wait(backend);
        keep_least(&r->backward_seconds, now() - started);
    }
    fetch(backend, diff_dst, near_diff_dst, r->dst_count);
    r->broke_promise =
        op->backward_keeps_diff_dst && memcmp(diff_dst, diff, r->dst_count * sizeof *diff) != 0;
    for (int k = 0; k < r->num_inputs; k++) {
        fetch(backend, r->diff_src[k], near_diff[k], r->src_count[k]);
        drop(backend, near_diff[k], r->diff_src[k]);
        unpack(low, r->diff_src[k], r->src_count[k]);
        for (size_t i = 0; c->add && !add[k] && i < r->src_count[k]; i++)
            r->diff_src[k][i] += before[k][i];
        turn_picture(c, r->diff_src[k], r->src_count[k], k, false);
        backend->release(src[k]);
        hpct_backend_host_release(before[k]);
    }
    if (c->adds)
        backend->release(src[1]);
    unpack(low, r->dst, r->dst_count);
    turn_picture(c, r->dst, r->dst_count, -1, false);
    drop(backend, near_dst, dst);
    drop(backend, near_diff_dst, diff_dst);
    hpct_backend_host_release(diff);
    hpct_backend_host_release(dst);
    hpct_backend_host_release(diff_dst);
    for (int i = 0; i < 3; i++) {
        r->wrote_behind |= is_written(backend, rest[i] + floats_of(bytes[i]));
        backend->release(rest[i]);
    }
    return status;
}

static hpct_op_build build_of(const nn_case *c, const hpct_backend *backend, int batches[2])
{
    batches[0] = c->other_n > 0 ? c->other_n : c->n;
    batches[1] = c->n;
    return (hpct_op_build){.precision = c->precision,
                           .values = backend->low_values ? c->values : HPCT_FP32,
                           .batch_sizes = batches,
                           .num_batch_sizes = c->other_n > 0 ? 2 : 1,
                           .training = true,
                           .needs_diff_src = c->needs_diff_src,
                           .shares_src = c->shares_src,
                           .fuse_update = c->fuse_update,
                           .plain_layout = c->plain_layout,
                           .adds = c->adds,
                           .adds_relu = c->adds_relu,
                           .leaves_bias = c->leaves_bias,
                           .stream = 3};
}

nn_result *nn_case_run(const nn_case *c, const hpct_backend *backend, uint64_t seed,
                       const float *given_dst, int repeat)
{
    nn_result *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    int batches[2];
    hpct_op_build build = build_of(c, backend, batches);
    hpct_op *op = NULL;
    arenas a = {0};
    count(c, r);
    hpct_status status = backend->make_op(&op, &c->spec, &build);
    if (status == HPCT_OK) {
        r->num_params = op->num_params;
        r->precision = op->precision;
        status = import_params(backend, op, r, seed, &a);
    }
    if (status == HPCT_OK)
        status = run(c, backend, op, seed, given_dst, repeat, r, &a);
    for (int i = 0; i < HPCT_OP_MAX_PARAMS && c->forward_only; i++) {
        backend->release(a.grad[i]);
        a.grad[i] = NULL;
    }
    if (status == HPCT_OK)
        status = export_params(backend, op, r, &a);
    for (int i = 0; i < HPCT_OP_MAX_PARAMS; i++) {
        backend->release(a.param[i]);
        backend->release(a.grad[i]);
    }
    if (op != NULL)
        op->class->destroy(op);
    if (status == HPCT_OK)
        return r;
    nn_result_free(r);
    return NULL;
}

void nn_result_free(nn_result *r)
{
    if (r == NULL)
        return;
    hpct_backend_host_release(r->dst);
    for (int k = 0; k < r->num_inputs; k++)
        hpct_backend_host_release(r->diff_src[k]);
    for (int i = 0; i < HPCT_OP_MAX_PARAMS; i++) {
        hpct_backend_host_release(r->grad[i]);
        hpct_backend_host_release(r->param[i]);
    }
    free(r);
}

double nn_difference(const float *a, const float *b, size_t count)
{
    double largest = 0, difference = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i]))
            return INFINITY;
        largest = fmax(largest, fabs((double) b[i]));
        difference = fmax(difference, fabs((double) a[i] - (double) b[i]));
    }
    return largest > 0 ? difference / largest : difference;
}
