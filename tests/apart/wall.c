/* Memory behind a wall, and copies over it. */
#include "tests/apart/wall.h"

#include "base/status.h"
#include "tests/apart/noting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROOM ((size_t) 8 << 30) /* of addresses: memory is what is touched */
#define PAGE ((size_t) 4096)
#define MOST 4096 /* copies under way */

static char *room;
static size_t used; /* bytes given out since there was nothing */
static int live;    /* pieces given out */
static size_t sent, waits;

/* ---- memory ---- */

static void tell(void)
{
    const char *path = getenv("HPC_TRAIN_TEST_ACCOUNT");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL)
        return;
    fprintf(file, "%zu bytes sent, %zu waits\n", sent, waits);
    fclose(file);
}

hpct_status wall_make(void)
{
    if (room != NULL)
        return HPCT_OK;
    void *memory = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return hpct_fail_memory(ROOM);
    room = memory;
    atexit(tell);
    return HPCT_OK;
}

/* HPC_TRAIN_TEST_TAKEN: MiB that are free no more when they are asked for. */
void *wall_allocate(size_t bytes)
{
    size_t pages = (bytes / PAGE + 1) * PAGE;
    const char *taken = getenv("HPC_TRAIN_TEST_TAKEN");
    size_t others = taken != NULL ? (size_t) strtoul(taken, NULL, 10) << 20 : 0;
    if (pages > ROOM - used - others)
        return NULL;
    void *memory = room + used;
    used += pages;
    live++;
    return memory;
}

void wall_release(void *memory)
{
    if (memory == NULL || --live > 0)
        return;
    if (madvise(room, used, MADV_DONTNEED) != 0)
        abort();
    used = 0;
}

size_t wall_left(size_t *all)
{
    *all = ROOM;
    return ROOM - used;
}

bool wall_has(const void *memory)
{
    const char *at = memory;
    return room != NULL && at >= room && at < room + ROOM;
}

void wall_open(void)
{
    if (mprotect(room, used, PROT_READ | PROT_WRITE) != 0)
        abort();
}

hpct_status wall_close(hpct_status status)
{
    if (mprotect(room, used, PROT_NONE) != 0)
        abort();
    return status;
}

/* ---- copies ---- */

typedef struct copy {
    void *host;
    size_t bytes;
    unsigned char *content; /* as it was sent, or what comes */
    bool fetch;
} copy;

static copy copies[MOST];
static size_t begun, done;        /* those in between are under way */
static size_t marked[HPCT_MARKS]; /* so many had begun */

static void begin(void *host, const void *content, size_t bytes, bool fetch)
{
    copy *c = &copies[begun++ % MOST];
    if (apart_is_noting()) {
        fprintf(stderr, "a recording copies what the host has only now\n");
        abort();
    }
    if (begun - done > MOST)
        abort();
    *c = (copy){host, bytes, malloc(bytes + 1), fetch};
    if (c->content == NULL)
        abort();
    memcpy(c->content, content, bytes);
}

static void end_until(size_t last)
{
    for (; done < last; done++) {
        copy *c = &copies[done % MOST];
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
    sent += bytes;
    wall_open();
    memcpy(memory, host, bytes);
    return wall_close(HPCT_OK);
}

/* ---- beside ---- */

#define BESIDE 8

static struct {
    void *memory;
    unsigned char *content;
    size_t bytes;
} beside[BESIDE];
static int num_beside;
static bool untaken; /* it is there, and may still be read */

hpct_status wall_send_beside(void *memory, const void *host, size_t bytes)
{
    unsigned char *content = malloc(bytes + 1);
    if (content == NULL || num_beside == BESIDE || untaken) {
        fprintf(stderr, "sent over what was not taken\n");
        abort();
    }
    memcpy(content, host, bytes);
    begin((void *) (uintptr_t) host, host, bytes, false);
    sent += bytes;
    beside[num_beside].memory = memory;
    beside[num_beside].content = content;
    beside[num_beside++].bytes = bytes;
    return HPCT_OK;
}

hpct_status wall_take(void)
{
    wall_open();
    for (int i = 0; i < num_beside; i++) {
        memcpy(beside[i].memory, beside[i].content, beside[i].bytes);
        free(beside[i].content);
    }
    num_beside = 0;
    untaken = true;
    return wall_close(HPCT_OK);
}

hpct_status wall_taken(void)
{
    untaken = false;
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
    end_until(begun);
    waits++;
    return HPCT_OK;
}

void wall_free_host(void *memory)
{
    end_until(begun);
    free(memory);
}

hpct_status wall_mark(hpct_mark mark)
{
    marked[mark] = begun;
    return HPCT_OK;
}

hpct_status wall_await(hpct_mark mark)
{
    end_until(marked[mark]);
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
