/* Threads that fetch work: some small files, or one block of a large file. */
#include <config.h>

#include "spank/stage/tree/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/thread_pool.h"

#define PIECE HPCT_STAGE_LANE_PIECE
#define SMALL PIECE
#define BATCH 64 /* small files per fetch */
#define BATCH_BYTES (2u << 20)
#define SAMPLE_EVERY 8
#define MOST_BUSY 4    /* threads that are limited by the CPU */
#define MOST_THREADS 8 /* threads that mostly wait for the source */

typedef enum way { WAY_READ, WAY_RANGE, WAY_CLONED } way;

/* A large file being copied; its last user ends it. */
typedef struct large {
    size_t index;
    uint64_t size, blocks, next; /* next: block to be fetched */
    hpct_stage_sink *sink;
    int users;
    _Atomic int way;
    _Atomic uint64_t done;
} large;

typedef struct copying {
    hpct_stage_walk *walk;
    hpct_stage_writer *writer;
    hpct_stage_report *report;
    pthread_mutex_t mutex; /* protects everything below */
    size_t next;           /* next item of the walk */
    large *large;          /* its blocks are being fetched; NULL: none */
    hpct_status status;    /* of the first failure */
    char message[1024];
    pthread_t threads[MOST_THREADS - 1];
    int num_threads; /* without the caller */
    _Atomic bool no_clone, no_range;
} copying;

typedef struct worker {
    copying *c;
    hpct_stage_lane *lane;
    hpct_stage_pace pace;
    unsigned reads, waited; /* sampled reads of the source since the last check of the pace: all,
                               and those that blocked */
} worker;

/* Work that a worker fetched: the items begin … end - 1, or a block. */
typedef struct work {
    size_t begin, end;
    large *large;
    uint64_t block;
} work;

static void fail(copying *c, hpct_status status)
{
    pthread_mutex_lock(&c->mutex);
    if (c->status == HPCT_OK) {
        c->status = status;
        snprintf(c->message, sizeof c->message, "%s", hpct_last_error());
    }
    pthread_mutex_unlock(&c->mutex);
}

static void note_wait(worker *wk, long before)
{
    wk->reads++;
    wk->waited += hpct_stage_pace_waits() > before;
}

/* ---- large files ---- */

static hpct_status begin_large(copying *c, size_t index, large **out)
{
    char path[PATH_MAX];
    hpct_stage_item item;
    large *l = calloc(1, sizeof *l);
    if (l == NULL)
        return hpct_fail_memory(sizeof *l);
    hpct_stage_walk_item(c->walk, index, &item, path, NULL);
    l->index = index;
    l->size = item.size;
    l->blocks = hpct_stage_hash_count(item.size);
    l->users = 1;
    hpct_status status = hpct_stage_writer_begin(c->writer, &item, &l->sink);
    if (status != HPCT_OK) {
        free(l);
        return status;
    }
    l->way = c->no_range ? WAY_READ : WAY_RANGE;
    if (!c->no_clone) {
        int src = -1;
        status = hpct_stage_walk_file(c->walk, index, &src);
        if (status == HPCT_OK && ioctl(hpct_stage_sink_fd(l->sink), FICLONE, src) == 0)
            l->way = WAY_CLONED;
        else if (status == HPCT_OK)
            c->no_clone = true; /* the next file will hardly fare better */
        hpct_fd_close(src);
    }
    if (status != HPCT_OK) {
        hpct_stage_sink_drop(l->sink);
        free(l);
        return status;
    }
    *out = l;
    return HPCT_OK;
}

static hpct_status end_large(copying *c, large *l)
{
    int src = -1;
    hpct_status status = HPCT_OK;
    if (l->done < l->blocks) { /* an error occurred */
        hpct_stage_sink_drop(l->sink);
    } else {
        status = hpct_stage_sink_end(l->sink, NULL);
        if (status == HPCT_OK)
            status = hpct_stage_walk_file(c->walk, l->index, &src); /* source unchanged? */
        hpct_fd_close(src);
        c->report->files++;
    }
    free(l);
    return status;
}

static void leave_large(copying *c, large *l)
{
    pthread_mutex_lock(&c->mutex);
    bool last = --l->users == 0;
    pthread_mutex_unlock(&c->mutex);
    if (!last)
        return;
    hpct_status status = end_large(c, l);
    if (status != HPCT_OK)
        fail(c, status);
}

/* Copies by copy_file_range; false if that is not possible for these files. */
static bool copy_range(int src, int dst, uint64_t at, uint64_t size)
{
    while (size > 0) {
        off_t from = (off_t) at, to = (off_t) at;
        ssize_t got = copy_file_range(src, &from, dst, &to, (size_t) size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += (uint64_t) got;
        size -= (uint64_t) got;
    }
    return true;
}

static hpct_status copy_data(worker *wk, large *l, int src, uint64_t at, uint64_t end)
{
    copying *c = wk->c;
    char *data = hpct_stage_lane_buffer(wk->lane);
    while (at < end) {
        size_t size = end - at < PIECE ? (size_t) (end - at) : PIECE;
        bool sample = at / PIECE % SAMPLE_EVERY == 0;
        long waits = sample ? hpct_stage_pace_waits() : 0;
        hpct_status status = hpct_stage_walk_read(c->walk, l->index, src, data, size, at);
        if (sample)
            note_wait(wk, waits);
        HPCT_TRY(status);
        HPCT_TRY(hpct_stage_lane_data(wk->lane, data, size));
        HPCT_TRY(hpct_stage_report_tick(c->report, size));
        at += size;
    }
    return HPCT_OK;
}

/* Copies the extents of a block. Each block has its own descriptor, so that read-ahead works for
 * each. */
static hpct_status copy_block(worker *wk, large *l, uint64_t block)
{
    copying *c = wk->c;
    int src = -1;
    uint64_t at = block * HPCT_STAGE_HASH_BLOCK, left = l->size - at;
    uint64_t end = at + (left < HPCT_STAGE_HASH_BLOCK ? left : HPCT_STAGE_HASH_BLOCK);
    HPCT_TRY(hpct_stage_walk_file(c->walk, l->index, &src));
    hpct_status status = HPCT_OK;
    posix_fadvise(src, (off_t) at, (off_t) (end - at), POSIX_FADV_SEQUENTIAL);
    bool present = l->way == WAY_CLONED;
    if (l->way == WAY_RANGE) {
        bool hole = true; /* true keeps holes: copy_file_range might fill them */
        uint64_t until = 0;
        status = hpct_stage_walk_extent(c->walk, l->index, src, at, &until, &hole);
        bool whole = status == HPCT_OK && !hole && until >= end;
        present = whole && copy_range(src, hpct_stage_sink_fd(l->sink), at, end - at);
        if (whole && !present)
            c->no_range = true; /* the next block will hardly fare better */
        if (!present)
            l->way = WAY_READ;
    }
    hpct_stage_lane_begin(wk->lane, l->sink, block, present);
    while (at < end && status == HPCT_OK) {
        bool hole = false;
        uint64_t until = 0;
        status = hpct_stage_walk_extent(c->walk, l->index, src, at, &until, &hole);
        if (until > end)
            until = end;
        if (status == HPCT_OK)
            status = hole ? hpct_stage_lane_hole(wk->lane, until - at)
                          : copy_data(wk, l, src, at, until);
        at = until;
    }
    if (status == HPCT_OK)
        status = hpct_stage_lane_end(wk->lane);
    if (status == HPCT_OK)
        status = hpct_stage_walk_unchanged(c->walk, l->index, src);
    close(src);
    if (status == HPCT_OK)
        l->done++;
    return status;
}

/* ---- small files ---- */

static hpct_status copy_small(worker *wk, size_t index)
{
    copying *c = wk->c;
    char path[PATH_MAX], *data = hpct_stage_lane_buffer(wk->lane);
    hpct_stage_item item;
    hpct_stage_walk_item(c->walk, index, &item, path, NULL);
    bool sample = index % SAMPLE_EVERY == 0;
    long waits = sample ? hpct_stage_pace_waits() : 0;
    hpct_status status = hpct_stage_walk_whole(c->walk, index, data);
    if (sample)
        note_wait(wk, waits);
    if (status == HPCT_OK)
        status = hpct_stage_writer_whole(c->writer, &item, data, NULL);
    c->report->files++;
    return status == HPCT_OK ? hpct_stage_report_tick(c->report, item.size) : status;
}

static bool is_file(const copying *c, size_t index, uint64_t *size)
{
    hpct_stage_item item;
    hpct_stage_walk_item(c->walk, index, &item, NULL, NULL);
    *size = item.size;
    return item.kind == HPCT_STAGE_ITEM_FILE;
}

/* ---- distribution of work ---- */

/* False at the end or after an error. Called with the mutex held. */
static bool fetch_locked(copying *c, work *w)
{
    uint64_t bytes = 0, size = 0;
    size_t count = hpct_stage_walk_count(c->walk), files = 0;
    *w = (work){0};
    if (c->status != HPCT_OK)
        return false;
    if (c->large == NULL) {
        while (c->next < count && !is_file(c, c->next, &size))
            c->next++;
        if (c->next < count && size > SMALL) {
            hpct_status status = begin_large(c, c->next++, &c->large);
            if (status != HPCT_OK) {
                c->status = status;
                snprintf(c->message, sizeof c->message, "%s", hpct_last_error());
                return false;
            }
        }
    }
    if (c->large != NULL) {
        w->large = c->large;
        w->block = c->large->next++;
        c->large->users++;
        if (c->large->next == c->large->blocks) {
            c->large->users--; /* the reference passes to the worker */
            c->large = NULL;
        }
        return true;
    }
    w->begin = c->next;
    for (; c->next < count && files < BATCH && bytes < BATCH_BYTES; c->next++) {
        if (!is_file(c, c->next, &size))
            continue;
        if (size > SMALL)
            break;
        files++;
        bytes += size;
    }
    w->end = c->next;
    return w->begin < w->end;
}

static bool fetch(copying *c, work *w)
{
    pthread_mutex_lock(&c->mutex);
    bool more = fetch_locked(c, w);
    pthread_mutex_unlock(&c->mutex);
    return more;
}

static void *run(void *context);

static void add_thread(copying *c, int most)
{
    pthread_mutex_lock(&c->mutex);
    if (c->num_threads + 1 < most && c->status == HPCT_OK &&
        pthread_create(&c->threads[c->num_threads], NULL, run, c) == 0)
        c->num_threads++; /* on error the existing threads continue without it */
    pthread_mutex_unlock(&c->mutex);
}

/* Starts with one thread. Adds one if its reads mostly block, or if it is CPU-bound and cores are
 * free; not if it already shares its core, where another thread would only compete. */
static void adapt(worker *wk)
{
    hpct_stage_pace_kind kind = hpct_stage_pace_check(&wk->pace);
    if (kind == HPCT_STAGE_PACE_EARLY)
        return;
    if (wk->waited * 2 > wk->reads)
        add_thread(wk->c, MOST_THREADS);
    else if (kind == HPCT_STAGE_PACE_BUSY)
        add_thread(wk->c, hpct_stage_pace_cores(MOST_BUSY));
    wk->reads = wk->waited = 0;
}

static hpct_status do_work(worker *wk, const work *w)
{
    hpct_status status = HPCT_OK;
    uint64_t size = 0;
    if (w->large != NULL)
        return copy_block(wk, w->large, w->block);
    for (size_t i = w->begin; i < w->end && status == HPCT_OK; i++) {
        if (is_file(wk->c, i, &size))
            status = copy_small(wk, i);
    }
    return status;
}

static void *run(void *context)
{
    copying *c = context;
    worker wk = {.c = c, .lane = hpct_stage_lane_new()};
    work w;
    if (wk.lane == NULL)
        fail(c, hpct_fail_memory(SMALL));
    while (fetch(c, &w)) {
        hpct_stage_pace_begin(&wk.pace);
        hpct_status status = do_work(&wk, &w);
        hpct_stage_pace_end(&wk.pace);
        if (status != HPCT_OK)
            fail(c, status);
        if (w.large != NULL)
            leave_large(c, w.large);
        adapt(&wk);
    }
    hpct_stage_lane_free(wk.lane);
    return NULL;
}

static void copy_files(copying *c)
{
    run(c);
    /* Only workers add threads, and this one has ended: join the others in turn, also those that
     * they add meanwhile. */
    for (int i = 0;; i++) {
        pthread_mutex_lock(&c->mutex);
        int count = c->num_threads;
        pthread_mutex_unlock(&c->mutex);
        if (i == count)
            break;
        pthread_join(c->threads[i], NULL);
    }
    if (c->large != NULL)
        leave_large(c, c->large);
}

/* ---- the tree ---- */

/* Folders and symbolic links before the files, hard links after them. */
static hpct_status make_others(copying *c, bool hard_links)
{
    char path[PATH_MAX], target[PATH_MAX];
    hpct_stage_item item;
    hpct_status status = HPCT_OK;
    for (size_t i = 0; i < hpct_stage_walk_count(c->walk) && status == HPCT_OK; i++) {
        hpct_stage_walk_item(c->walk, i, &item, NULL, NULL);
        if (item.kind == HPCT_STAGE_ITEM_FILE ||
            (item.kind == HPCT_STAGE_ITEM_HARDLINK) != hard_links)
            continue;
        hpct_stage_walk_item(c->walk, i, &item, path, target);
        status = hpct_stage_writer_add(c->writer, &item);
        if (status == HPCT_OK)
            status = hpct_stage_report_tick(c->report, 0);
        if (item.kind != HPCT_STAGE_ITEM_FOLDER)
            c->report->files++;
    }
    return status;
}

hpct_status hpct_stage_copy_tree(hpct_stage_walk *walk, hpct_stage_writer *writer,
                                 hpct_stage_report *report)
{
    copying c = {
        .walk = walk, .writer = writer, .report = report, .mutex = PTHREAD_MUTEX_INITIALIZER};
    HPCT_TRY(make_others(&c, false));
    copy_files(&c);
    if (c.status != HPCT_OK)
        return hpct_fail(c.status, "%s", c.message);
    return make_others(&c, true);
}
