/* Passes an archive's items to the writer by threads: the caller decodes, the others ("hands")
 * create files. Each hand has a ring of batches of records. All records of one name go to the same
 * hand in order, so that the last of several files with one name wins. */
#include <config.h>

#include "spank/stage/tree/taker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/pace.h"

#define MOST_HANDS 4
#define DEPTH 3 /* batches of a hand: being filled, waiting, being processed */
#define BATCH (3 * HPCT_TAKER_SMALL)
#define FILTER 65536                   /* bits */
#define HOLE_BYTES (UINT64_C(1) << 40) /* size of a hole that is hashed between two heartbeats */

typedef enum kind { WHOLE, BEGIN, DATA, HOLE, END } kind;

/* Followed by the path with its '\0', then by the data; the next record is 8-byte aligned. */
typedef struct record {
    kind what;
    mode_t mode;
    uint64_t size; /* size of the file or of the hole */
    struct timespec times[2];
    size_t path_size, data_size;
} record;

typedef struct batch {
    size_t used;
    _Alignas(8) char records[BATCH];
} batch;

typedef struct hand {
    hpct_hands *all;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    batch *ring[DEPTH];
    size_t given, done; /* numbers of batches; protected by the mutex */
    bool over;
    hpct_sink *sink; /* used by the hand's thread only */
} hand;

struct hpct_hands {
    hpct_writer *writer;
    hpct_report *report;
    int count;
    hand hand[MOST_HANDS];
    hand *larger;                  /* the hand that writes the current large file */
    uint64_t waiting[FILTER / 64]; /* bitmap by hash: names submitted since the last wait_for_all */
    _Atomic bool failed;
    pthread_mutex_t mutex; /* protects the first failure: */
    hpct_status status;
    char message[1024];
};

/* ---- the hands ---- */

static void note_failure(hpct_hands *h, hpct_status status)
{
    pthread_mutex_lock(&h->mutex);
    if (h->status == HPCT_OK) {
        h->status = status;
        snprintf(h->message, sizeof h->message, "%s", hpct_last_error());
    }
    pthread_mutex_unlock(&h->mutex);
    h->failed = true;
}

static hpct_status make(hand *one, const record *r)
{
    hpct_hands *h = one->all;
    const char *path = (const char *) (r + 1), *data = path + r->path_size;
    hpct_sink *sink = one->sink;
    hpct_status status = HPCT_OK;
    const hpct_item item = {.kind = HPCT_ITEM_FILE,
                            .path = path,
                            .size = r->size,
                            .mode = r->mode,
                            .times = {r->times[0], r->times[1]}};
    switch (r->what) {
    case WHOLE:
        status = hpct_writer_whole(h->writer, &item, data, NULL);
        break;
    case BEGIN:
        return hpct_writer_begin(h->writer, &item, &one->sink);
    case DATA:
        status = hpct_sink_data(sink, data, r->data_size);
        break;
    case HOLE:
        status = hpct_sink_hole(sink, r->size);
        break;
    case END:
        one->sink = NULL;
        status = hpct_sink_end(sink, NULL);
        break;
    }
    if (status == HPCT_OK && (r->what == WHOLE || r->what == END))
        h->report->files++;
    return status == HPCT_OK ? hpct_report_tick(h->report, r->data_size) : status;
}

static size_t record_size(const record *r)
{
    return (sizeof *r + r->path_size + r->data_size + 7) & ~(size_t) 7;
}

static void make_all(hand *one, const batch *b)
{
    for (size_t at = 0; at < b->used && !one->all->failed;) {
        const record *r = (const record *) (const void *) (b->records + at);
        hpct_status status = make(one, r);
        if (status != HPCT_OK)
            note_failure(one->all, status);
        at += record_size(r);
    }
}

static void *run(void *context)
{
    hand *one = context;
    pthread_mutex_lock(&one->mutex);
    for (;;) {
        while (one->done == one->given && !one->over)
            pthread_cond_wait(&one->changed, &one->mutex);
        if (one->done == one->given)
            break;
        batch *b = one->ring[one->done % DEPTH];
        pthread_mutex_unlock(&one->mutex);
        make_all(one, b);
        b->used = 0;
        pthread_mutex_lock(&one->mutex);
        one->done++;
        pthread_cond_signal(&one->changed);
    }
    pthread_mutex_unlock(&one->mutex);
    return NULL;
}

/* ---- submitting work ---- */

static hpct_status check(hpct_hands *h)
{
    return h->failed ? hpct_fail(h->status, "%s", h->message) : HPCT_OK;
}

/* Submits the collected batch, then waits until at most `most` batches of this hand are
 * unfinished. */
static void give(hand *one, size_t most)
{
    pthread_mutex_lock(&one->mutex);
    if (one->ring[one->given % DEPTH]->used > 0) {
        one->given++;
        pthread_cond_signal(&one->changed);
    }
    while (one->given - one->done > most)
        pthread_cond_wait(&one->changed, &one->mutex);
    pthread_mutex_unlock(&one->mutex);
}

static hpct_status wait_for_all(hpct_hands *h)
{
    for (int i = 0; i < h->count; i++)
        give(&h->hand[i], DEPTH - 1);
    for (int i = 0; i < h->count; i++)
        give(&h->hand[i], 0);
    memset(h->waiting, 0, sizeof h->waiting);
    return check(h);
}

/* The hand of a name. */
static hand *choose(hpct_hands *h, const char *path)
{
    uint64_t hash = hpct_hash(path, strlen(path));
    h->waiting[hash % FILTER / 64] |= UINT64_C(1) << (hash % 64);
    return &h->hand[(hash >> 32) % (uint64_t) h->count];
}

static bool may_wait(const hpct_hands *h, const char *path)
{
    uint64_t hash = hpct_hash(path, strlen(path));
    return (h->waiting[hash % FILTER / 64] >> (hash % 64) & 1) != 0;
}

static hpct_status append(hand *one, const record *r, const char *path, const void *data)
{
    size_t size = record_size(r);
    batch *b = one->ring[one->given % DEPTH];
    if (size > BATCH - b->used) {
        give(one, DEPTH - 1);
        b = one->ring[one->given % DEPTH];
    }
    char *at = b->records + b->used;
    memcpy(at, r, sizeof *r);
    if (r->path_size > 0)
        memcpy(at + sizeof *r, path, r->path_size);
    if (r->data_size > 0)
        memcpy(at + sizeof *r + r->path_size, data, r->data_size);
    b->used += size;
    return check(one->all);
}

static record record_of(kind what, const hpct_item *item)
{
    return (record){.what = what,
                    .mode = item->mode,
                    .size = item->size,
                    .times = {item->times[0], item->times[1]},
                    .path_size = strlen(item->path) + 1};
}

/* The caller creates folders and links itself, after waiting for records of the same name. */
static hpct_status add(void *context, const hpct_item *item)
{
    hpct_hands *h = context;
    hpct_status status = HPCT_OK;
    if (may_wait(h, item->path) || (item->kind == HPCT_ITEM_HARDLINK && may_wait(h, item->target)))
        status = wait_for_all(h);
    if (status == HPCT_OK)
        status = hpct_writer_add(h->writer, item);
    if (status == HPCT_OK && item->kind != HPCT_ITEM_FOLDER)
        h->report->files++;
    return status == HPCT_OK ? hpct_report_tick(h->report, 0) : status;
}

static hpct_status whole(void *context, const hpct_item *item, const void *content)
{
    hpct_hands *h = context;
    record r = record_of(WHOLE, item);
    r.data_size = (size_t) item->size;
    return append(choose(h, item->path), &r, item->path, content);
}

static hpct_status begin(void *context, const hpct_item *item)
{
    hpct_hands *h = context;
    record r = record_of(BEGIN, item);
    h->larger = choose(h, item->path);
    return append(h->larger, &r, item->path, NULL);
}

static hpct_status data(void *context, const void *bytes, size_t size)
{
    hpct_hands *h = context;
    const char *p = bytes;
    hpct_status status = HPCT_OK;
    while (size > 0 && status == HPCT_OK) {
        size_t part = size < HPCT_TAKER_SMALL ? size : HPCT_TAKER_SMALL;
        status = append(h->larger, &(record){.what = DATA, .data_size = part}, NULL, p);
        p += part;
        size -= part;
    }
    return status;
}

static hpct_status hole(void *context, uint64_t size)
{
    hpct_hands *h = context;
    hpct_status status = HPCT_OK;
    while (size > 0 && status == HPCT_OK) {
        uint64_t part = size < HOLE_BYTES ? size : HOLE_BYTES;
        status = append(h->larger, &(record){.what = HOLE, .size = part}, NULL, NULL);
        size -= part;
    }
    return status;
}

static hpct_status end(void *context)
{
    hpct_hands *h = context;
    return append(h->larger, &(record){.what = END}, NULL, NULL);
}

static hpct_status done(void *context)
{
    return wait_for_all(context);
}

/* ---- opening and closing ---- */

static bool start_hand(hpct_hands *h, hand *one)
{
    one->all = h;
    for (int i = 0; i < DEPTH; i++)
        one->ring[i] = malloc(sizeof *one->ring[i]);
    for (int i = 0; i < DEPTH; i++) {
        if (one->ring[i] == NULL)
            goto fail;
        one->ring[i]->used = 0;
    }
    pthread_mutex_init(&one->mutex, NULL);
    pthread_cond_init(&one->changed, NULL);
    if (pthread_create(&one->thread, NULL, run, one) == 0)
        return true;
    pthread_cond_destroy(&one->changed);
    pthread_mutex_destroy(&one->mutex);
fail:
    for (int i = 0; i < DEPTH; i++)
        free(one->ring[i]);
    return false;
}

hpct_status hpct_hands_open(hpct_hands **out, hpct_writer *writer, hpct_report *report,
                            hpct_taker *taker)
{
    int most = hpct_pace_cores(MOST_HANDS + 1) - 1; /* the caller decodes */
    hpct_hands *h = calloc(1, sizeof *h);
    if (h == NULL)
        return hpct_fail_memory(sizeof *h);
    h->writer = writer;
    h->report = report;
    pthread_mutex_init(&h->mutex, NULL);
    while ((h->count == 0 || h->count < most) && start_hand(h, &h->hand[h->count]))
        h->count++;
    if (h->count == 0) {
        hpct_hands_close(h);
        return hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started to write the files");
    }
    *taker = (hpct_taker){.context = h,
                          .add = add,
                          .whole = whole,
                          .begin = begin,
                          .data = data,
                          .hole = hole,
                          .end = end,
                          .done = done};
    *out = h;
    return HPCT_OK;
}

void hpct_hands_close(hpct_hands *h)
{
    if (h == NULL)
        return;
    h->failed = true; /* records that are still queued are dropped */
    for (int i = 0; i < h->count; i++) {
        hand *one = &h->hand[i];
        pthread_mutex_lock(&one->mutex);
        one->over = true;
        pthread_cond_signal(&one->changed);
        pthread_mutex_unlock(&one->mutex);
        pthread_join(one->thread, NULL);
        pthread_cond_destroy(&one->changed);
        pthread_mutex_destroy(&one->mutex);
        hpct_sink_drop(one->sink);
        for (int b = 0; b < DEPTH; b++)
            free(one->ring[b]);
    }
    pthread_mutex_destroy(&h->mutex);
    free(h);
}
