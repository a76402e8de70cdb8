/* Collectives between processes of one machine, through shared memory. */
#include "tests/gpu_without/module/nccl.h"

#include "base/fp16.h"
#include "nn/backend/bf16.h"
#include "tests/gpu_without/module/noting.h"
#include "tests/gpu_without/module/wall.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHUNK ((size_t) 1 << 16) /* bytes of each rank at a time */
#define MOST_RANKS 8
#define PATIENCE 60 /* seconds */

/* What one rank asks for; all ask for the same. */
typedef struct request {
    char kind[16];
    size_t bytes;
    int type, root, recording;
} request;

typedef struct team { /* shared */
    atomic_int arrived, rounds;
    request requests[MOST_RANKS];
    unsigned char chunks[MOST_RANKS][CHUNK];
} team;

typedef struct member {
    team *team;
    int size, rank;
    int busy; /* looks that are answered so */
} member;

/* One collective, as it may be noted. */
typedef struct collective {
    member *member;
    char kind[16];
    const void *src;
    void *dst;
    size_t count;
    hpct_device_type type;
    int root;
} collective;

_Static_assert(sizeof(collective) <= MODULE_ARGUMENT, "it can be noted");

bool module_has_nccl(int *version)
{
    *version = getenv("HPC_TRAIN_TEST_NCCL") != NULL ? 22800 : 0;
    return *version != 0;
}

hpct_device_result module_unique_id(unsigned char id[HPCT_DEVICE_ID_BYTES])
{
    static atomic_int made;
    snprintf((char *) id, HPCT_DEVICE_ID_BYTES, "/hpct-module-%d-%d", (int) getpid(),
             atomic_fetch_add(&made, 1));
    return HPCT_DEVICE_OK;
}

/* ---- meeting ---- */

static void give_up(const member *m, const char *why)
{
    fprintf(stderr, "NCCL behind the wall, rank %d: %s\n", m->rank, why);
    abort();
}

static void meet(const member *m)
{
    team *t = m->team;
    int round = atomic_load(&t->rounds);
    time_t began = time(NULL);
    if (atomic_fetch_add(&t->arrived, 1) + 1 == m->size) {
        atomic_store(&t->arrived, 0);
        atomic_fetch_add(&t->rounds, 1);
        return;
    }
    for (int looks = 0; atomic_load(&t->rounds) == round; looks++) {
        if (looks < 100)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        if (time(NULL) - began > PATIENCE)
            give_up(m, "the others did not come");
    }
}

hpct_device_result module_init(void **comm, int size, const unsigned char *id, int rank)
{
    member *m = calloc(1, sizeof *m);
    int file = shm_open((const char *) id, O_CREAT | O_RDWR, 0600);
    if (m == NULL || file < 0 || size > MOST_RANKS || ftruncate(file, sizeof(team)) != 0)
        abort();
    *m = (member){.size = size, .rank = rank};
    m->team = mmap(NULL, sizeof(team), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (m->team == MAP_FAILED)
        abort();
    meet(m);
    if (rank == 0)
        shm_unlink((const char *) id);
    m->busy = 2;
    *comm = m;
    return HPCT_DEVICE_BUSY;
}

hpct_device_result module_async_error(void *comm)
{
    member *m = comm;
    return m->busy-- > 0 ? HPCT_DEVICE_BUSY : HPCT_DEVICE_OK;
}

/* ---- collectives ---- */

static size_t size_of(hpct_device_type type)
{
    return type == HPCT_DEVICE_FP32 ? 4 : type == HPCT_DEVICE_BYTES ? 1 : 2;
}

typedef struct cast {
    const void *src;
    void *dst;
    size_t count;
    hpct_device_type from, to;
} cast;

static float number_at(const unsigned char *data, size_t i, hpct_device_type type)
{
    float number;
    if (type != HPCT_DEVICE_FP32) {
        uint16_t half;
        memcpy(&half, data + i * sizeof half, sizeof half);
        return type == HPCT_DEVICE_BF16 ? hpct_bf16_value(half) : hpct_fp16_value(half);
    }
    memcpy(&number, data + i * sizeof number, sizeof number);
    return number;
}

static void put_number(unsigned char *data, size_t i, hpct_device_type type, float number)
{
    uint16_t half = type == HPCT_DEVICE_BF16 ? hpct_bf16_of(number) : hpct_fp16_of(number);
    if (type == HPCT_DEVICE_FP32)
        memcpy(data + i * sizeof number, &number, sizeof number);
    else
        memcpy(data + i * sizeof half, &half, sizeof half);
}

static hpct_status make_cast(const void *argument)
{
    const cast *c = argument;
    wall_open();
    for (size_t i = 0; i < c->count; i++)
        put_number(c->dst, i, c->to, number_at(c->src, i, c->from));
    return wall_close(HPCT_OK);
}

static hpct_device_result ask_cast(cast c)
{
    if (!module_note(make_cast, &c, sizeof c))
        make_cast(&c);
    return HPCT_DEVICE_OK;
}

hpct_device_result module_encode(hpct_device_type type, size_t count, const float *src, void *dst,
                                 void *stream)
{
    (void) stream;
    return ask_cast((cast){src, dst, count, HPCT_DEVICE_FP32, type});
}

hpct_device_result module_decode(hpct_device_type type, size_t count, const void *src, float *dst,
                                 void *stream)
{
    (void) stream;
    return ask_cast((cast){src, dst, count, type, HPCT_DEVICE_FP32});
}

static void add_up(const member *m, unsigned char *to, size_t bytes, hpct_device_type type)
{
    for (size_t i = 0; i < bytes / size_of(type); i++) {
        float sum = 0;
        for (int rank = 0; rank < m->size; rank++)
            sum += number_at(m->team->chunks[rank], i, type);
        put_number(to, i, type, sum);
    }
}

static void check_alike(const member *m)
{
    const request *mine = &m->team->requests[m->rank];
    for (int rank = 0; rank < m->size; rank++) {
        const request *other = &m->team->requests[rank];
        char text[200];
        if (memcmp(mine, other, sizeof *mine) == 0)
            continue;
        snprintf(text, sizeof text,
                 "%s of %zu bytes in recording %d here, on rank %d %s of %zu bytes in recording %d",
                 mine->kind, mine->bytes, mine->recording, rank, other->kind, other->bytes,
                 other->recording);
        give_up(m, text);
    }
}

static hpct_status make(const void *argument)
{
    const collective *c = argument;
    const member *m = c->member;
    size_t bytes = c->count * size_of(c->type);
    request *mine = &m->team->requests[m->rank];
    memset(mine, 0, sizeof *mine);
    memcpy(mine->kind, c->kind, sizeof mine->kind);
    mine->bytes = bytes;
    mine->type = (int) c->type;
    mine->root = c->root;
    mine->recording = module_replaying();
    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < CHUNK ? bytes - at : CHUNK;
        unsigned char *to = (unsigned char *) c->dst + at;
        wall_open();
        memcpy(m->team->chunks[m->rank], (const unsigned char *) c->src + at, part);
        meet(m);
        check_alike(m);
        if (strcmp(c->kind, "all-reduce") == 0)
            add_up(m, to, part, c->type);
        else if (strcmp(c->kind, "broadcast") == 0)
            memcpy(to, m->team->chunks[c->root], part);
        for (int rank = 0; rank < m->size && strcmp(c->kind, "all-gather") == 0; rank++)
            memcpy(to + (size_t) rank * bytes, m->team->chunks[rank], part);
        wall_close(HPCT_OK);
        meet(m);
    }
    return HPCT_OK;
}

static hpct_device_result ask(collective c)
{
    c.member->busy = 2;
    if (!module_note(make, &c, sizeof c))
        make(&c);
    return HPCT_DEVICE_BUSY;
}

hpct_device_result module_group(void)
{
    return HPCT_DEVICE_OK;
}

hpct_device_result module_all_reduce(void *data, size_t count, hpct_device_type type, void *comm,
                                     void *stream)
{
    (void) stream;
    return ask((collective){comm, "all-reduce", data, data, count, type, 0});
}

hpct_device_result module_broadcast(void *data, size_t count, hpct_device_type type, int root,
                                    void *comm, void *stream)
{
    (void) stream;
    return ask((collective){comm, "broadcast", data, data, count, type, root});
}

hpct_device_result module_all_gather(const void *src, void *dst, size_t count,
                                     hpct_device_type type, void *comm, void *stream)
{
    (void) stream;
    return ask((collective){comm, "all-gather", src, dst, count, type, 0});
}

hpct_device_result module_finalize(void *comm)
{
    meet(comm);
    return HPCT_DEVICE_OK;
}

void module_destroy(void *comm)
{
    member *m = comm;
    munmap(m->team, sizeof *m->team);
    free(m);
}
