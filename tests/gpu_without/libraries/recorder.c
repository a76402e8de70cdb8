/* The recorder: handles are entries of one list; calls are lines of text. */
#include "tests/gpu_without/libraries/recorder.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT 65536
#define HANDLES 4096

recorder_answers recorder;

typedef struct handle {
    char kind; /* S, e, n, m (device memory), h (pinned memory) */
    int number;
    int busy; /* looks that are answered so */
    char *memory;
    size_t bytes;
    bool live;
} handle;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char text[TEXT], taken[TEXT];
static handle *handles[HANDLES];
static int num_handles, numbers[128], aborts, group_depth;
static bool group_has_calls;
static handle compute = {.kind = 'C'};

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    va_list arguments;
    pthread_mutex_lock(&mutex);
    size_t used = strlen(text);
    va_start(arguments, format);
    vsnprintf(text + used, TEXT - used, format, arguments);
    va_end(arguments);
    used = strlen(text);
    assert(used + 2 < TEXT);
    text[used] = '\n';
    text[used + 1] = '\0';
    pthread_mutex_unlock(&mutex);
}

static handle *make(char kind)
{
    handle *h = calloc(1, sizeof *h);
    assert(h != NULL && num_handles < HANDLES);
    h->kind = kind;
    h->number = ++numbers[(int) kind];
    h->live = true;
    handles[num_handles++] = h;
    return h;
}

static const char *name_of(const void *at)
{
    static _Thread_local char names[4][16];
    static _Thread_local int turn;
    const handle *h = at;
    turn = (turn + 1) % 4;
    if (h == &compute)
        return "C";
    assert(h->live);
    snprintf(names[turn], sizeof names[turn], "%c%d", h->kind, h->number);
    return names[turn];
}

/* Bytes from the beginning of what was allocated, or "data" for what the test has. */
static const char *place(const void *at)
{
    static _Thread_local char names[4][32];
    static _Thread_local int turn;
    turn = (turn + 1) % 4;
    for (int i = 0; i < num_handles; i++) {
        const handle *h = handles[i];
        if (h->live && h->memory != NULL && (const char *) at >= h->memory &&
            (const char *) at < h->memory + h->bytes) {
            size_t offset = (size_t) ((const char *) at - h->memory);
            snprintf(names[turn], sizeof names[turn], offset > 0 ? "%c%d+%zu" : "%c%d", h->kind,
                     h->number, offset);
            return names[turn];
        }
    }
    return "?";
}

void recorder_reset(int size)
{
    for (int i = 0; i < num_handles; i++) {
        free(handles[i]->memory);
        free(handles[i]);
    }
    num_handles = aborts = group_depth = 0;
    memset(numbers, 0, sizeof numbers);
    text[0] = '\0';
    recorder = (recorder_answers){.size = size, .memory = SIZE_MAX};
}

const char *recorder_take(void)
{
    memcpy(taken, text, sizeof taken);
    text[0] = '\0';
    return taken;
}

int recorder_aborts(void)
{
    pthread_mutex_lock(&mutex);
    int num = aborts;
    pthread_mutex_unlock(&mutex);
    return num;
}

size_t recorder_live(void)
{
    size_t live = 0;
    for (int i = 0; i < num_handles; i++)
        live += handles[i]->live;
    return live;
}

/* ---- CUDA ---- */

static const char *error(void)
{
    return "the library's words";
}

static hpct_device_result open_device(void)
{
    return HPCT_DEVICE_OK;
}

static const char *device_name(void)
{
    return "0000:01:00.0";
}

static bool is_recording(void)
{
    return recorder.records;
}

static void *compute_stream(void)
{
    return &compute;
}

static bool is_device(const void *at)
{
    return place(at)[0] == 'm';
}

static hpct_device_result take(void **out, size_t bytes, char kind)
{
    if (kind == 'm' && bytes > recorder.memory)
        return HPCT_DEVICE_MEMORY;
    handle *h = make(kind);
    h->bytes = bytes;
    h->memory = malloc(bytes);
    memset(h->memory, 0xff, bytes); /* NaNs: what nobody writes shows */
    *out = h->memory;
    return HPCT_DEVICE_OK;
}

static hpct_device_result allocate(void **out, size_t bytes)
{
    return take(out, bytes, 'm');
}

static hpct_device_result allocate_host(void **out, size_t bytes)
{
    return take(out, bytes, 'h');
}

static void release(void *at)
{
    for (int i = 0; i < num_handles; i++) {
        if (handles[i]->live && handles[i]->memory == at) {
            handles[i]->live = false;
            free(at);
            handles[i]->memory = NULL;
            return;
        }
    }
    assert(!"memory that was not allocated");
}

static hpct_device_result create_stream(void **out)
{
    *out = make('S');
    return HPCT_DEVICE_OK;
}

static hpct_device_result create_event(void **out)
{
    *out = make('e');
    return HPCT_DEVICE_OK;
}

static void destroy(void *at)
{
    handle *h = at;
    assert(h->live);
    h->live = false;
}

static hpct_device_result record(void *event, void *stream)
{
    note("record %s %s", name_of(event), name_of(stream));
    ((handle *) event)->busy = recorder.events_busy;
    return HPCT_DEVICE_OK;
}

static hpct_device_result query(void *event)
{
    handle *h = event;
    if (h->busy > 0) {
        h->busy--;
        return HPCT_DEVICE_BUSY;
    }
    return HPCT_DEVICE_OK;
}

static hpct_device_result wait_event(void *stream, void *event)
{
    note("wait %s %s", name_of(stream), name_of(event));
    return HPCT_DEVICE_OK;
}

static hpct_device_result copy(void *dst, const void *src, size_t bytes, void *stream)
{
    note("copy %s %s %zu %s", place(dst), place(src), bytes, name_of(stream));
    memcpy(dst, src, bytes);
    return HPCT_DEVICE_OK;
}

static const char *type_name(hpct_device_type type)
{
    static const char *const names[] = {"bytes", "fp32", "bf16", "fp16"};
    return names[type];
}

/* Both by cutting: enough for small whole numbers. */
static hpct_device_result encode(hpct_device_type type, size_t count, const float *src, void *dst,
                                 void *stream)
{
    note("encode %s %zu %s %s %s", type_name(type), count, place(src), place(dst), name_of(stream));
    for (size_t i = 0; i < count; i++)
        memcpy((char *) dst + 2 * i, (const char *) (src + i) + 2, 2);
    return HPCT_DEVICE_OK;
}

static hpct_device_result decode(hpct_device_type type, size_t count, const void *src, float *dst,
                                 void *stream)
{
    note("decode %s %zu %s %s %s", type_name(type), count, place(src), place(dst), name_of(stream));
    for (size_t i = 0; i < count; i++) {
        memset(dst + i, 0, 2);
        memcpy((char *) (dst + i) + 2, (const char *) src + 2 * i, 2);
    }
    return HPCT_DEVICE_OK;
}

/* ---- NCCL ---- */

/* A call on a communicator that is in progress is a mistake that NCCL punishes. */
static hpct_device_result called(void *comm)
{
    handle *h = comm;
    assert(h->live && h->kind == 'n');
    assert(h->busy == 0 || group_depth > 0);
    group_has_calls = true;
    if (recorder.lost && !recorder.busy)
        return HPCT_DEVICE_LOST;
    h->busy = recorder.busy;
    return group_depth == 0 && recorder.busy > 0 ? HPCT_DEVICE_BUSY : HPCT_DEVICE_OK;
}

static bool has_nccl(int *version)
{
    *version = recorder.without_nccl ? 0 : 22800;
    return !recorder.without_nccl;
}

static hpct_device_result unique_id(unsigned char id[HPCT_DEVICE_ID_BYTES])
{
    memset(id, 7, HPCT_DEVICE_ID_BYTES);
    return HPCT_DEVICE_OK;
}

static hpct_device_result init(void **comm, int size, const unsigned char *id, int rank)
{
    *comm = make('n');
    note("init %s size %d rank %d id %d", name_of(*comm), size, rank, id[0]);
    return called(*comm);
}

static hpct_device_result split(void *comm, int color, int key, void **out)
{
    if (color >= 0)
        *out = make('n');
    note("split %s color %d key %d", name_of(comm), color, key);
    return called(comm);
}

static hpct_device_result async_error(void *comm)
{
    handle *h = comm;
    pthread_mutex_lock(&mutex);
    hpct_device_result result = recorder.lost                   ? HPCT_DEVICE_LOST
                                : recorder.never || h->busy > 0 ? HPCT_DEVICE_BUSY
                                                                : HPCT_DEVICE_OK;
    h->busy -= h->busy > 0;
    pthread_mutex_unlock(&mutex);
    return result;
}

static hpct_device_result group_start(void)
{
    group_depth++;
    group_has_calls = false;
    note("group");
    return HPCT_DEVICE_OK;
}

static hpct_device_result group_end(void)
{
    group_depth--;
    note("end");
    return group_has_calls && recorder.busy > 0 ? HPCT_DEVICE_BUSY : HPCT_DEVICE_OK;
}

/* As if all had the same: in fp32 every number times the ranks. */
static hpct_device_result all_reduce(void *data, size_t count, hpct_device_type type, void *comm,
                                     void *stream)
{
    note("allreduce %s %zu %s %s %s", type_name(type), count, place(data), name_of(comm),
         name_of(stream));
    for (size_t i = 0; i < count && type == HPCT_DEVICE_FP32; i++)
        ((float *) data)[i] *= (float) recorder.size;
    return called(comm);
}

static hpct_device_result reduce(void *data, size_t count, hpct_device_type type, int root,
                                 void *comm, void *stream)
{
    note("reduce %s %zu %s to %d %s %s", type_name(type), count, place(data), root, name_of(comm),
         name_of(stream));
    return called(comm);
}

static hpct_device_result broadcast(void *data, size_t count, hpct_device_type type, int root,
                                    void *comm, void *stream)
{
    note("broadcast %s %zu %s from %d %s %s", type_name(type), count, place(data), root,
         name_of(comm), name_of(stream));
    return called(comm);
}

static hpct_device_result all_gather(const void *src, void *dst, size_t count,
                                     hpct_device_type type, void *comm, void *stream)
{
    note("allgather %s %zu %s %s %s %s", type_name(type), count, place(src), place(dst),
         name_of(comm), name_of(stream));
    for (int rank = 0; rank < recorder.size; rank++)
        memcpy((char *) dst + (size_t) rank * count, src, count);
    return called(comm);
}

static hpct_device_result send(const void *src, size_t count, hpct_device_type type, int peer,
                               void *comm, void *stream)
{
    note("send %s %zu %s to %d %s %s", type_name(type), count, place(src), peer, name_of(comm),
         name_of(stream));
    return called(comm);
}

static hpct_device_result receive(void *dst, size_t count, hpct_device_type type, int peer,
                                  void *comm, void *stream)
{
    note("receive %s %zu %s from %d %s %s", type_name(type), count, place(dst), peer, name_of(comm),
         name_of(stream));
    return called(comm);
}

static hpct_device_result finalize(void *comm)
{
    note("finalize %s", name_of(comm));
    return called(comm);
}

static void destroy_comm(void *comm)
{
    note("destroy %s", name_of(comm));
    destroy(comm);
}

static void abort_comm(void *comm)
{
    note("abort %s", name_of(comm));
    if (recorder.abort_hangs)
        sleep(5);
    pthread_mutex_lock(&mutex);
    ((handle *) comm)->live = false;
    aborts++;
    pthread_mutex_unlock(&mutex);
}

const hpct_device_calls recorder_calls = {
    .error = error,
    .open = open_device,
    .device_name = device_name,
    .compute_stream = compute_stream,
    .is_recording = is_recording,
    .is_device = is_device,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = release,
    .create_stream = create_stream,
    .destroy_stream = destroy,
    .create_event = create_event,
    .destroy_event = destroy,
    .record = record,
    .query = query,
    .wait_event = wait_event,
    .copy = copy,
    .encode = encode,
    .decode = decode,
    .has_nccl = has_nccl,
    .unique_id = unique_id,
    .init = init,
    .split = split,
    .async_error = async_error,
    .group_start = group_start,
    .group_end = group_end,
    .all_reduce = all_reduce,
    .reduce = reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .send = send,
    .receive = receive,
    .finalize = finalize,
    .destroy = destroy_comm,
    .abort = abort_comm,
};
