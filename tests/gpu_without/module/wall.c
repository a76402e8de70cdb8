/* Memory behind a wall, and copies over it. */
#include "tests/gpu_without/module/wall.h"

#include "base/status.h"
#include "tests/gpu_without/module/noting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROOM ((size_t) 8 << 30) /* of addresses: memory is what is touched */
#define PAGE ((size_t) 4096)
#define MOST 4096 /* copies under way */
#define BESIDE 8

typedef struct copy {
    void *host;
    size_t bytes;
    unsigned char *content; /* as it was sent, or what comes */
    bool fetch;
} copy;

/* One device. */
typedef struct wall {
    char *room;
    size_t used; /* bytes given out since there was nothing */
    int live;    /* pieces given out */
    int opened;  /* so often, and not closed yet */
    size_t sent, waits;
    copy copies[MOST];
    size_t begun, done;        /* those in between are under way */
    size_t marked[HPCT_MARKS]; /* so many had begun */
    struct {
        void *memory;
        unsigned char *content;
        size_t bytes;
    } beside[BESIDE];
    int num_beside;
    bool untaken; /* it is there, and may still be read */
} wall;

static wall walls[WALL_DEVICES];
static _Thread_local wall *w = &walls[0];

/* ---- memory ---- */

static void tell(void)
{
    const char *path = getenv("HPC_TRAIN_TEST_ACCOUNT");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    size_t sent = 0, waits = 0;
    if (file == NULL)
        return;
    for (int i = 0; i < WALL_DEVICES; i++) {
        sent += walls[i].sent;
        waits += walls[i].waits;
    }
    fprintf(file, "%zu bytes sent, %zu waits\n", sent, waits);
    fclose(file);
}

hpct_status wall_make(void)
{
    if (w->room != NULL)
        return HPCT_OK;
    void *memory = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return hpct_fail_memory(ROOM);
    w->room = memory;
    if (w == &walls[0])
        atexit(tell);
    return HPCT_OK;
}

void wall_enter(int device)
{
    w = &walls[device];
}

int wall_number(void)
{
    return (int) (w - walls);
}

static bool is_in(const wall *one, const void *memory)
{
    const char *at = memory;
    return one->room != NULL && at >= one->room && at < one->room + ROOM;
}

/* MiB that others have: HPC_TRAIN_TEST_USED from the start, HPC_TRAIN_TEST_TAKEN when memory is
 * asked for. */
static size_t taken(const char *variable)
{
    const char *mib = getenv(variable);
    return mib != NULL ? (size_t) strtoul(mib, NULL, 10) << 20 : 0;
}

void *wall_allocate(size_t bytes)
{
    size_t pages = (bytes / PAGE + 1) * PAGE;
    size_t used = w->used + taken("HPC_TRAIN_TEST_USED") + taken("HPC_TRAIN_TEST_TAKEN");
    if (used > ROOM || pages > ROOM - used)
        return NULL;
    void *memory = w->room + w->used;
    w->used += pages;
    w->live++;
    return memory;
}

void wall_release(void *memory)
{
    wall *of = walls;
    while (memory != NULL && !is_in(of, memory))
        of++;
    if (memory == NULL || --of->live > 0)
        return;
    if (madvise(of->room, of->used, MADV_DONTNEED) != 0)
        abort();
    of->used = 0;
}

/* HPC_TRAIN_TEST_FULL: the device with this number says that it has nothing left. */
size_t wall_left(size_t *all)
{
    const char *full = getenv("HPC_TRAIN_TEST_FULL");
    size_t used = w->used + taken("HPC_TRAIN_TEST_USED");
    *all = ROOM;
    return used > ROOM || (full != NULL && atoi(full) == wall_number()) ? 0 : ROOM - used;
}

bool wall_has(const void *memory)
{
    bool has = false;
    for (int i = 0; i < WALL_DEVICES; i++)
        has |= is_in(&walls[i], memory);
    return has;
}

void wall_open(void)
{
    w->opened++;
    if (mprotect(w->room, w->used, PROT_READ | PROT_WRITE) != 0)
        abort();
}

hpct_status wall_close(hpct_status status)
{
    if (--w->opened == 0 && mprotect(w->room, w->used, PROT_NONE) != 0)
        abort();
    return status;
}

/* ---- copies ---- */

static void begin(void *host, const void *content, size_t bytes, bool fetch)
{
    copy *c = &w->copies[w->begun++ % MOST];
    if (module_is_noting()) {
        fprintf(stderr, "a recording copies what the host has only now\n");
        abort();
    }
    if (w->begun - w->done > MOST)
        abort();
    *c = (copy){host, bytes, malloc(bytes + 1), fetch};
    if (c->content == NULL)
        abort();
    memcpy(c->content, content, bytes);
}

static void end_until(size_t last)
{
    for (; w->done < last; w->done++) {
        copy *c = &w->copies[w->done % MOST];
        if (c->fetch) {
            memcpy(c->host, c->content, c->bytes);
        } else if (memcmp(c->host, c->content, c->bytes) != 0) {
            fprintf(stderr, "what was sent was written before it was waited for\n");
            abort();
        }
        free(c->content);
    }
}

hpct_status wall_send(void *memory, const void *host, size_t bytes)
{
    begin((void *) (uintptr_t) host, host, bytes, false);
    w->sent += bytes;
    wall_open();
    memcpy(memory, host, bytes);
    return wall_close(HPCT_OK);
}

/* ---- beside ---- */

hpct_status wall_send_beside(void *memory, const void *host, size_t bytes)
{
    unsigned char *content = malloc(bytes + 1);
    if (content == NULL || w->num_beside == BESIDE || w->untaken) {
        fprintf(stderr, "sent over what was not taken\n");
        abort();
    }
    memcpy(content, host, bytes);
    begin((void *) (uintptr_t) host, host, bytes, false);
    w->sent += bytes;
    w->beside[w->num_beside].memory = memory;
    w->beside[w->num_beside].content = content;
    w->beside[w->num_beside++].bytes = bytes;
    return HPCT_OK;
}

hpct_status wall_take(void)
{
    wall_open();
    for (int i = 0; i < w->num_beside; i++) {
        memcpy(w->beside[i].memory, w->beside[i].content, w->beside[i].bytes);
        free(w->beside[i].content);
    }
    w->num_beside = 0;
    w->untaken = true;
    return wall_close(HPCT_OK);
}

hpct_status wall_taken(void)
{
    w->untaken = false;
    return HPCT_OK;
}

hpct_status wall_fetch(void *host, const void *memory, size_t bytes)
{
    wall_open();
    begin(host, memory, bytes, true);
    return wall_close(HPCT_OK);
}

hpct_status wall_wait(void)
{
    end_until(w->begun);
    w->waits++;
    return HPCT_OK;
}

void wall_free_host(void *memory)
{
    end_until(w->begun);
    free(memory);
}

hpct_status wall_mark(hpct_mark mark)
{
    w->marked[mark] = w->begun;
    return HPCT_OK;
}

hpct_status wall_await(hpct_mark mark)
{
    end_until(w->marked[mark]);
    return HPCT_OK;
}

hpct_status wall_to_host(void *host, const void *memory, size_t bytes)
{
    wall_open();
    memcpy(host, memory, bytes);
    wall_close(HPCT_OK);
    return wall_wait();
}

hpct_status wall_from_host(void *memory, const void *host, size_t bytes)
{
    wall_open();
    memcpy(memory, host, bytes);
    wall_close(HPCT_OK);
    return wall_wait();
}
