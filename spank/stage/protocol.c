/* The steps of staging, the same on all nodes: open the sources, connect, lock the destination,
 * list the sources, choose a mode for each, check the space, copy, broadcast. Without other nodes
 * nothing is sent. */
#include <config.h>

#include "spank/stage/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "spank/stage/destination.h"
#include "spank/stage/net/broadcast.h"
#include "spank/stage/net/broadcast_auth.h"
#include "spank/stage/net/reader.h"
#include "spank/stage/net/unpacker.h"
#include "spank/stage/tree/copy.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/identity.h"

/* One entry of the list. */
typedef struct source {
    const hpct_spec_stage_entry *entry;
    int fd;                       /* -1: not visible on this node (another node reads it) */
    hpct_stage_walk *walk;        /* NULL: listed by another node */
    hpct_stage_identity identity; /* on the first node */
    uint64_t digest;              /* of the source and whether it is unpacked */
    hpct_spec_stage_view view;    /* of this node */
    hpct_spec_stage_mode mode;    /* HPCT_SPEC_STAGE_AUTO: all nodes have it */
    hpct_stage_copy copy;
} source;

typedef struct staging {
    const hpct_stage_job *job;
    hpct_spec_stage_plan plan;
    hpct_stage_report *report;
    hpct_stage_destination destination;
    hpct_stage_broadcast *broadcast; /* NULL: this node alone */
    source *sources;
    int count;
} staging;

static bool is_first(const staging *s)
{
    return s->broadcast == NULL || s->job->team.index == 0;
}

/* ---- what the nodes send to each other ---- */

/* The first node's bytes reach the others; `differs` is their error if they expect another size. */
static hpct_status share(staging *s, uint8_t *data, size_t size, const char *differs)
{
    uint8_t *received = NULL;
    size_t got = 0;
    if (s->broadcast == NULL)
        return HPCT_OK;
    if (is_first(s))
        return hpct_stage_broadcast_send(s->broadcast, data, size);
    HPCT_TRY(hpct_stage_broadcast_receive(s->broadcast, &received, &got));
    if (got == size)
        memcpy(data, received, size);
    free(received);
    return got == size ? HPCT_OK : hpct_fail(HPCT_ERR_USAGE, "%s", differs);
}

static const char invalid[] = "the first node's answer is invalid";

/* The first node gets the AND of all nodes' votes. */
static hpct_status vote(staging *s, uint8_t *votes, size_t size)
{
    return s->broadcast == NULL ? HPCT_OK : hpct_stage_broadcast_vote(s->broadcast, votes, size);
}

/* *all: every node is ready. Returns when all have voted. */
static hpct_status agree(staging *s, bool ready, bool *all)
{
    uint8_t answer = ready;
    HPCT_TRY(vote(s, &answer, 1));
    HPCT_TRY(share(s, &answer, 1, invalid));
    *all = answer != 0;
    return HPCT_OK;
}

/* ---- the lock ---- */

/* Waits 50 to 300 ms, differently in each process, so that two steps that compete for the same
 * nodes do not collide again and again. */
static void back_off(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    hpct_pause_ms(50 + (int) (now.tv_nsec / 1000 % 250));
}

/* All nodes try until every one has its lock, and release it between attempts: two steps that each
 * waited for the other's would deadlock. */
static hpct_status lock(staging *s)
{
    hpct_stage_destination *d = &s->destination;
    time_t moved_at = time(NULL);
    for (int tries = 0;; tries++) {
        bool mine = false, all = false;
        HPCT_TRY(hpct_stage_destination_try_lock(d, &mine));
        HPCT_TRY(agree(s, mine, &all));
        if (all)
            return HPCT_OK;
        HPCT_TRY(hpct_stage_report_tick(s->report, 0));
        if (mine)
            hpct_stage_destination_unlock(d);
        else if (tries == 10)
            hpct_stage_report_say("another step of the job stages to %s: waiting for it", d->path);
        if (mine || hpct_stage_destination_holder_moved(d))
            moved_at = time(NULL);
        if (time(NULL) - moved_at > HPCT_STAGE_LOCK_SECONDS)
            return hpct_fail(
                HPCT_ERR_IO,
                "another step of the job stages to %s, without progress for %d seconds", d->path,
                HPCT_STAGE_LOCK_SECONDS);
        back_off();
    }
}

/* ---- sources ---- */

/* Checks the real path of the open file, independent of links. */
static hpct_status check_allowed(const hpct_stage_job *job, int src, const char *name)
{
    char link[64], path[PATH_MAX], prefix[PATH_MAX];
    if (job->num_allowed == 0)
        return HPCT_OK;
    snprintf(link, sizeof link, "/proc/self/fd/%d", src);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return hpct_fail(HPCT_ERR_CONFIG, "%s: its place cannot be told: %s", name,
                         strerror(errno));
    path[size] = '\0';
    for (int i = 0; i < job->num_allowed; i++) {
        if (realpath(job->allowed[i], prefix) == NULL)
            continue;
        if (hpct_spec_entry_is_within(path, prefix))
            return HPCT_OK;
    }
    return hpct_fail(HPCT_ERR_CONFIG,
                     "%s (%s) does not lie in a folder that may be staged from here; "
                     "stage_src= in plugstack.conf says which may",
                     name, path);
}

static hpct_status follow_allowed(void *context, int fd, const char *name)
{
    return check_allowed(context, fd, name);
}

/* Another node than the first may not see the source. */
static hpct_status open_source(const staging *s, source *src)
{
    const char *name = src->entry->src;
    src->fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (src->fd < 0 && !is_first(s))
        return HPCT_OK;
    if (src->fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", name, strerror(errno));
    return check_allowed(s->job, src->fd, name);
}

/* Checks whether the source is staged already, and prints that it is. */
static hpct_status check_staged(staging *s, source *src)
{
    const hpct_spec_stage_entry *entry = src->entry;
    src->view.staged = hpct_stage_destination_has(&s->destination, entry->dst, src->digest);
    if (src->view.staged && !s->report->quiet)
        hpct_stage_report_say("%s is at %s/%s already, unchanged", entry->src, s->destination.path,
                              entry->dst);
    return hpct_stage_report_tick(s->report, 0);
}

static hpct_status list_source(staging *s, source *src)
{
    const hpct_stage_walk_options options = {.follow = s->job->follow,
                                             .allowed = follow_allowed,
                                             .context = (void *) (uintptr_t) s->job};
    hpct_stage_item root;
    HPCT_TRY(hpct_stage_walk_open(&src->walk, src->fd, src->entry->src, &options, s->report));
    hpct_stage_walk_item(src->walk, 0, &root, NULL, NULL);
    const hpct_stage_walk_totals sum = hpct_stage_walk_sum(src->walk);
    src->view = (hpct_spec_stage_view){
        .extract = s->plan.request.extract && root.kind == HPCT_STAGE_ITEM_FILE,
        .bytes = sum.bytes,
        .blocks = sum.blocks,
        .entries = sum.entries,
    };
    const uint64_t content[] = {hpct_stage_walk_digest(src->walk), src->view.extract};
    src->digest = hpct_stage_hash(content, sizeof content);
    return check_staged(s, src);
}

/* ---- offers: the first node's view of the sources, which all nodes use ---- */

enum { OFFER_WORDS = 6 + 6, OFFER_BYTES = 8 * OFFER_WORDS };

static void write_offer(uint8_t *out, const source *src)
{
    const uint64_t *inode = src->identity.inode;
    const hpct_spec_stage_view *view = &src->view;
    const uint64_t words[OFFER_WORDS] = {
        inode[0],    inode[1],    inode[2],     inode[3],      inode[4],      inode[5],
        src->digest, view->bytes, view->blocks, view->entries, view->extract, src->identity.origin,
    };
    for (int i = 0; i < OFFER_WORDS; i++)
        hpct_put(out + 8 * i, words[i], 8);
}

static void read_offer(const uint8_t *in, source *src)
{
    uint64_t words[OFFER_WORDS];
    for (int i = 0; i < OFFER_WORDS; i++)
        words[i] = hpct_get(in + 8 * i, 8);
    memcpy(src->identity.inode, words, sizeof src->identity.inode);
    src->digest = words[6];
    src->view = (hpct_spec_stage_view){
        .bytes = words[7], .blocks = words[8], .entries = words[9], .extract = words[10] != 0};
    src->identity.origin = words[11];
}

/* Hash of list and request, which must be equal on all nodes. */
static uint64_t hash_list(const staging *s)
{
    uint64_t hash = hpct_stage_hash("", 0);
    for (int i = 0; i < s->count; i++) {
        const hpct_spec_stage_entry *entry = s->sources[i].entry;
        const uint64_t parts[] = {
            hash,
            hpct_stage_hash(entry->src, strlen(entry->src)),
            hpct_stage_hash(entry->dst, strlen(entry->dst)),
            (uint64_t) s->plan.request.mode << 1 | s->plan.request.extract,
        };
        hash = hpct_stage_hash(parts, sizeof parts);
    }
    return hash;
}

static hpct_status share_offers(staging *s)
{
    static const char differs[] =
        "it is to stage something else, or in another way, than the first node";
    const uint64_t hash = hash_list(s);
    const size_t size = 8 + (size_t) s->count * OFFER_BYTES;
    uint8_t *offers = calloc(1, size);
    if (offers == NULL)
        return hpct_fail_memory(size);
    hpct_put(offers, hash, 8);
    for (int i = 0; is_first(s) && i < s->count; i++)
        write_offer(offers + 8 + (size_t) i * OFFER_BYTES, &s->sources[i]);
    hpct_status status = share(s, offers, size, differs);
    if (status == HPCT_OK && hpct_get(offers, 8) != hash)
        status = hpct_fail(HPCT_ERR_USAGE, "%s", differs);
    for (int i = 0; status == HPCT_OK && !is_first(s) && i < s->count; i++)
        read_offer(offers + 8 + (size_t) i * OFFER_BYTES, &s->sources[i]);
    free(offers);
    return status;
}

static hpct_status list_sources(staging *s)
{
    for (int i = 0; is_first(s) && i < s->count; i++) {
        source *src = &s->sources[i];
        HPCT_TRY(list_source(s, src));
        if (s->broadcast != NULL && !hpct_stage_identity_read(&src->identity, src->fd))
            return hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", src->entry->src, strerror(errno));
    }
    HPCT_TRY(share_offers(s));
    for (int i = 0; !is_first(s) && i < s->count; i++)
        HPCT_TRY(check_staged(s, &s->sources[i]));
    return HPCT_OK;
}

/* ---- modes ---- */

enum { VOTE_STAGED = 1, VOTE_SHARED = 2 };

static uint8_t vote_on(const staging *s, const source *src)
{
    hpct_stage_identity own;
    bool shared = s->broadcast != NULL && src->fd >= 0 && hpct_stage_identity_read(&own, src->fd) &&
                  hpct_stage_identity_same(&src->identity, &own);
    return (uint8_t) ((src->view.staged ? VOTE_STAGED : 0) | (shared ? VOTE_SHARED : 0));
}

static hpct_spec_stage_mode choose_mode(const staging *s, const source *src, uint8_t votes)
{
    char why[256];
    hpct_spec_stage_view all = src->view;
    all.staged = (votes & VOTE_STAGED) != 0;
    all.shared = (votes & VOTE_SHARED) != 0;
    hpct_spec_stage_mode mode = hpct_spec_stage_plan_mode(&s->plan, &all, why, sizeof why);
    if (s->report->verbose && s->broadcast != NULL && mode != HPCT_SPEC_STAGE_AUTO)
        hpct_stage_report_say("%s: %s: %s", src->entry->src,
                              mode == HPCT_SPEC_STAGE_BROADCAST
                                  ? "read here and sent to the other nodes"
                                  : "copied by each node",
                              why);
    return mode;
}

/* The first node chooses, from the votes of all. */
static hpct_status choose_modes(staging *s)
{
    const size_t size = (size_t) s->count;
    uint8_t *bytes = calloc(size, 1);
    hpct_status status = bytes == NULL ? hpct_fail_memory(size) : HPCT_OK;
    for (size_t i = 0; status == HPCT_OK && i < size; i++)
        bytes[i] = vote_on(s, &s->sources[i]);
    if (status == HPCT_OK)
        status = vote(s, bytes, size);
    for (size_t i = 0; status == HPCT_OK && is_first(s) && i < size; i++)
        bytes[i] = (uint8_t) choose_mode(s, &s->sources[i], bytes[i]);
    if (status == HPCT_OK)
        status = share(s, bytes, size, invalid);
    for (size_t i = 0; status == HPCT_OK && i < size; i++) {
        if (bytes[i] >= HPCT_SPEC_NUM_STAGE_MODES)
            status = hpct_fail(HPCT_ERR_INTERNAL, "%s", invalid);
        s->sources[i].mode = (hpct_spec_stage_mode) bytes[i];
    }
    free(bytes);
    return status;
}

/* For a source that each node copies itself. */
static hpct_status list_own(staging *s, source *src)
{
    if (src->walk != NULL)
        return HPCT_OK;
    if (src->fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT,
                         "%s cannot be read here: put it where all nodes see it, or use "
                         "--hpc-train-stage-mode=broadcast to have it sent from the first node",
                         src->entry->src);
    return list_source(s, src);
}

static hpct_status check_space(staging *s)
{
    hpct_stage_destination *d = &s->destination;
    hpct_spec_stage_need need = {.known = true};
    for (int i = 0; i < s->count; i++) {
        if (s->sources[i].mode == HPCT_SPEC_STAGE_COPY)
            HPCT_TRY(list_own(s, &s->sources[i]));
    }
    for (int i = 0; i < s->count; i++)
        hpct_spec_stage_need_add(&need, &s->sources[i].view);
    HPCT_TRY(hpct_spec_stage_need_check(&need, s->job->max));
    s->report->total = need.known ? need.bytes : 0;
    s->report->total_files = need.known ? need.entries : 0;
    HPCT_TRY(hpct_stage_room_measure(d->to, d->path, s->job->memory, &d->room));
    return hpct_stage_room_check(&d->room, need.blocks, need.entries);
}

/* ---- copies ---- */

static hpct_status begin_copy(staging *s, source *src, int number)
{
    const hpct_stage_room *room = &s->destination.room;
    HPCT_TRY(hpct_stage_copy_begin(&src->copy, src->entry->src, number));
    if (src->view.extract) {
        src->copy.options.loose = true;
        src->copy.options.max_bytes =
            hpct_spec_stage_limit(s->job->max, room->bytes, s->report->bytes);
        src->copy.options.max_entries = room->files == UINT64_MAX ? 0 : room->files;
    }
    return HPCT_OK;
}

static hpct_status rename_copy(staging *s, source *src)
{
    return hpct_stage_copy_rename(&src->copy, &s->destination, src->entry->dst, src->digest);
}

static hpct_status extract(staging *s, source *src)
{
    const hpct_stage_unpacker_target to = {
        .folder = s->destination.incoming, .root = src->copy.name, .options = src->copy.options};
    return hpct_stage_unpacker_archive(&to, src->walk, src->entry->src, s->report);
}

static hpct_status copy_tree(staging *s, source *src)
{
    hpct_stage_writer *writer = NULL;
    const hpct_stage_copy *copy = &src->copy;
    HPCT_TRY(hpct_stage_writer_open(&writer, s->destination.incoming, copy->name, &copy->options));
    hpct_status status = hpct_stage_copy_tree(src->walk, writer, s->report);
    if (status == HPCT_OK)
        status = hpct_stage_writer_finish(writer);
    hpct_stage_writer_close(writer);
    return status;
}

static hpct_status copy_sources(staging *s)
{
    for (int i = 0; i < s->count; i++) {
        source *src = &s->sources[i];
        if (src->mode != HPCT_SPEC_STAGE_COPY || src->view.staged)
            continue;
        HPCT_TRY(begin_copy(s, src, i));
        HPCT_TRY(src->view.extract ? extract(s, src) : copy_tree(s, src));
        HPCT_TRY(hpct_stage_report_tick(s->report, 0));
        HPCT_TRY(rename_copy(s, src));
        hpct_stage_copy_end(&src->copy);
    }
    return HPCT_OK;
}

/* ---- the broadcast ---- */

/* Appends what is read on the first node, and written on this one. */
static hpct_status add_stream(staging *s, int number, hpct_stage_reader_source *from,
                              hpct_stage_unpacker_target *to)
{
    source *src = &s->sources[number];
    *from = (hpct_stage_reader_source){.entry = (uint32_t) number,
                                       .walk = src->walk,
                                       .extract = src->view.extract,
                                       .name = src->entry->src};
    *to =
        (hpct_stage_unpacker_target){.entry = (uint32_t) number, .folder = s->destination.incoming};
    if (src->view.staged)
        return HPCT_OK;
    HPCT_TRY(begin_copy(s, src, number));
    to->root = src->copy.name;
    to->options = src->copy.options;
    return HPCT_OK;
}

/* Renames only if all nodes have a complete copy. */
static hpct_status rename_copies(staging *s)
{
    bool all = false;
    HPCT_TRY(agree(s, true, &all));
    for (int i = 0; i < s->count; i++) {
        if (s->sources[i].copy.manifest != NULL)
            HPCT_TRY(rename_copy(s, &s->sources[i]));
    }
    return HPCT_OK;
}

static hpct_status stream(staging *s, const hpct_stage_reader_source *from,
                          const hpct_stage_unpacker_target *to, int count)
{
    hpct_stage_reader *reader = NULL;
    hpct_status status = HPCT_OK;
    if (is_first(s))
        status = hpct_stage_reader_start(s->broadcast, from, count, s->report, &reader);
    if (status == HPCT_OK)
        status = hpct_stage_unpacker_run(s->broadcast, to, count, s->report);
    if (status != HPCT_OK) /* ends the reader, too */
        hpct_stage_broadcast_fail(s->broadcast, status, hpct_last_error());
    hpct_stage_reader_end(reader);
    return status;
}

static hpct_status broadcast_sources(staging *s)
{
    const size_t most = (size_t) s->count;
    hpct_stage_reader_source *from = calloc(most, sizeof *from);
    hpct_stage_unpacker_target *to = calloc(most, sizeof *to);
    hpct_status status = from == NULL || to == NULL ? hpct_fail_memory(0) : HPCT_OK;
    int count = 0;
    for (int i = 0; status == HPCT_OK && i < s->count; i++) {
        if (s->sources[i].mode != HPCT_SPEC_STAGE_BROADCAST)
            continue;
        status = add_stream(s, i, &from[count], &to[count]);
        count++;
    }
    if (status == HPCT_OK && count > 0)
        status = stream(s, from, to, count);
    if (status == HPCT_OK && count > 0)
        status = rename_copies(s);
    free(to);
    free(from);
    return status;
}

/* ---- all of it ---- */

/* The lock is taken after all nodes have connected, so that late nodes do not make other steps
 * wait. */
static hpct_status run(staging *s)
{
    for (int i = 0; i < s->count; i++)
        HPCT_TRY(open_source(s, &s->sources[i]));
    if (s->broadcast != NULL)
        HPCT_TRY(hpct_stage_broadcast_connect(s->broadcast));
    HPCT_TRY(hpct_stage_destination_open(&s->destination, s->job->to, s->report));
    HPCT_TRY(lock(s));
    HPCT_TRY(hpct_stage_destination_prepare(&s->destination));
    HPCT_TRY(list_sources(s));
    HPCT_TRY(choose_modes(s));
    HPCT_TRY(check_space(s));
    HPCT_TRY(copy_sources(s));
    HPCT_TRY(broadcast_sources(s));
    return s->broadcast == NULL ? HPCT_OK : hpct_stage_broadcast_finish(s->broadcast);
}

/* "rchar" of /proc/self/io: bytes read from all files. */
static unsigned long long bytes_read(void)
{
    unsigned long long bytes = 0;
    FILE *io = fopen("/proc/self/io", "re");
    if (io == NULL || fscanf(io, "rchar: %llu", &bytes) != 1)
        bytes = 0;
    if (io != NULL)
        fclose(io);
    return bytes;
}

static void report_traffic(staging *s)
{
    uint64_t received = 0, sent = 0;
    hpct_stage_broadcast_traffic(s->broadcast, &received, &sent);
    if (s->report->verbose && received + sent > 0)
        hpct_stage_report_say(
            "%llu bytes received from other nodes, %llu sent to them; %llu read from "
            "files, the check of what was written included",
            (unsigned long long) received, (unsigned long long) sent, bytes_read());
}

static hpct_status run_connected(staging *s)
{
    const hpct_stage_team *team = &s->job->team;
    const bool speaks = team->index == 0 || s->report->verbose; /* the first node prints for all */
    bool elsewhere = false;
    if (team->key == NULL && !hpct_stage_auth_is_here())
        /* no fallback to copying: other nodes may have a munged and would wait for this one */
        return hpct_fail(HPCT_ERR_CONFIG,
                         "this step has no key and no munged answers here, and nodes can only "
                         "send data to each other with one of the two: start munged, or use "
                         "--hpc-train-stage-mode=copy");
    s->report->quiet = s->report->quiet || !speaks;
    HPCT_TRY(hpct_stage_broadcast_open(team, s->report, &s->broadcast));
    hpct_status status = run(s);
    if (status != HPCT_OK) {
        hpct_stage_broadcast_fail(s->broadcast, status, hpct_last_error());
        status =
            hpct_stage_broadcast_failure(s->broadcast, &elsewhere); /* the first of all nodes */
    }
    /* only the failed node and the first one print the failure */
    s->report->reported = elsewhere && !speaks;
    if (status == HPCT_OK)
        report_traffic(s);
    hpct_stage_broadcast_close(s->broadcast);
    return status;
}

static void free_sources(staging *s)
{
    for (int i = 0; i < s->count; i++) {
        source *src = &s->sources[i];
        hpct_stage_copy_end(&src->copy);
        hpct_stage_walk_close(src->walk);
        hpct_fd_close(src->fd);
    }
    free(s->sources);
}

hpct_status hpct_stage_all(const hpct_stage_job *job, const hpct_spec_stage_list *list,
                           hpct_stage_report *report)
{
    staging s = {.job = job,
                 .report = report,
                 .plan =
                     hpct_spec_stage_plan_make(job->request, list->count, job->team.count, true),
                 .count = list->count,
                 .sources = calloc((size_t) list->count, sizeof *s.sources)};
    if (s.sources == NULL)
        return hpct_fail_memory(0);
    for (int i = 0; i < list->count; i++)
        s.sources[i] = (source){.entry = &list->entries[i], .fd = -1};
    hpct_status status = s.plan.connect ? run_connected(&s) : run(&s);
    hpct_stage_destination_close(&s.destination, status == HPCT_ERR_STOPPED);
    free_sources(&s);
    return status;
}
