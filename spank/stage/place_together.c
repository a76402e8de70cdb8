/* Staging with the other nodes of a step: agrees on the way of each entry, then copies and
 * broadcasts. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/status.h"
#include "spank/stage/net/broadcast_send.h"
#include "spank/stage/net/broadcast_take.h"
#include "spank/stage/net/together.h"
#include "spank/stage/place_state.h"
#include "spank/stage/tree/hash.h"
#include "spank/stage/tree/origin.h"

static bool is_first(const hpct_placing *p)
{
    return p->place->team.index == 0;
}

/* Waits 50 to 300 ms, differently in each process, so that two steps that compete for the same
 * nodes do not collide again and again. */
static void back_off(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    nanosleep(&(struct timespec){.tv_nsec = 50000000 + now.tv_nsec % 250000000}, NULL);
}

/* All nodes try until every one has its lock, and release it between attempts: two steps that each
 * waited for the other's would deadlock. */
hpct_status hpct_place_lock_together(hpct_placing *p, hpct_broadcast *b)
{
    struct timespec seen = {0};
    struct stat info;
    time_t changed_at = time(NULL);
    for (int tries = 0;; tries++) {
        bool go = false, mine = hpct_place_try_lock(p);
        hpct_status status = hpct_together_all(b, is_first(p), mine, &go);
        if (status == HPCT_OK && !go)
            status = hpct_report_tick(p->report, 0);
        if (status != HPCT_OK || go)
            return status;
        if (mine)
            hpct_place_unlock(p);
        else if (tries == 10)
            hpct_report_say("another step of the job stages to %s: waiting for it", p->place->to);
        /* the holder touches the lock file regularly */
        if (mine ||
            (fstat(p->lock, &info) == 0 && memcmp(&seen, &info.st_mtim, sizeof seen) != 0)) {
            seen = info.st_mtim;
            changed_at = time(NULL);
        }
        if (time(NULL) - changed_at > HPCT_LOCK_SECONDS)
            return hpct_fail(
                HPCT_ERR_IO,
                "another step of the job stages to %s, without progress for %d seconds",
                p->place->to, HPCT_LOCK_SECONDS);
        back_off();
    }
}

/* Hash of list and mode, which must be equal on all nodes. */
static uint64_t task_of(const hpct_placing *p, const hpct_source *sources, int count)
{
    uint64_t task = hpct_hash("", 0);
    for (int i = 0; i < count; i++) {
        const uint64_t parts[] = {
            task,
            hpct_hash(sources[i].entry->src, strlen(sources[i].entry->src)),
            hpct_hash(sources[i].entry->dst, strlen(sources[i].entry->dst)),
            (uint64_t) p->place->mode.way << 1 | p->place->mode.extract,
        };
        task = hpct_hash(parts, sizeof parts);
    }
    return task;
}

/* All nodes use the first node's view of the sources. */
static hpct_status exchange_offers(hpct_placing *p, hpct_broadcast *b, hpct_source *sources,
                                   hpct_offer *offers, int count)
{
    hpct_status status = HPCT_OK;
    for (int i = 0; i < count && is_first(p) && status == HPCT_OK; i++) {
        hpct_source *src = &sources[i];
        struct stat info;
        status = hpct_place_list(p, src);
        if (status == HPCT_OK && fstat(src->fd, &info) != 0)
            status = hpct_fail(HPCT_ERR_NO_INPUT, "%s: %s", src->entry->src, strerror(errno));
        if (status != HPCT_OK)
            break;
        hpct_offer_identify(&offers[i], &info, hpct_origin(src->fd));
        offers[i].digest = src->digest;
        offers[i].bytes = src->totals.bytes;
        offers[i].blocks = src->totals.blocks;
        offers[i].entries = src->totals.entries;
        offers[i].extract = src->extract;
    }
    if (status == HPCT_OK)
        status = hpct_together_offer(b, is_first(p), task_of(p, sources, count), offers, count);
    for (int i = 0; i < count && !is_first(p) && status == HPCT_OK; i++) {
        hpct_source *src = &sources[i];
        src->digest = offers[i].digest;
        src->extract = offers[i].extract;
        src->totals = (hpct_walk_totals){
            .bytes = offers[i].bytes, .blocks = offers[i].blocks, .entries = offers[i].entries};
        hpct_place_look(p, src);
        status = hpct_report_tick(p->report, 0);
    }
    return status;
}

static hpct_status decide(hpct_placing *p, hpct_broadcast *b, const hpct_source *sources,
                          const hpct_offer *offers, int count, hpct_how *how)
{
    uint8_t *votes = calloc((size_t) count + 1, 1);
    char **names = calloc((size_t) count + 1, sizeof *names);
    hpct_status status = votes == NULL || names == NULL ? hpct_fail_memory(0) : HPCT_OK;
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        struct stat info;
        names[i] = sources[i].entry->src;
        if (sources[i].there)
            votes[i] |= HPCT_VOTE_HAS;
        if (sources[i].fd >= 0 && fstat(sources[i].fd, &info) == 0 &&
            hpct_offer_is(&offers[i], &info, hpct_origin(sources[i].fd)))
            votes[i] |= HPCT_VOTE_SAME;
    }
    if (status == HPCT_OK)
        status = hpct_together_decide(b, is_first(p), p->place->mode, p->place->team.count, offers,
                                      votes, count, names, p->report->verbose, how);
    free(names);
    free(votes);
    return status;
}

/* For an entry that each node copies itself. */
static hpct_status list_own(hpct_placing *p, hpct_source *src)
{
    if (src->walk != NULL)
        return HPCT_OK;
    if (src->fd < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT,
                         "%s cannot be read here: put it where all nodes see it, or use "
                         "--hpc-train-stage-mode=broadcast to have it sent from the first node",
                         src->entry->src);
    return hpct_place_list(p, src);
}

static hpct_status receive(hpct_placing *p, hpct_broadcast *b, hpct_source *sources,
                           const hpct_how *how, int count)
{
    hpct_take_target *targets = calloc((size_t) count, sizeof *targets);
    hpct_send_source *to_send = calloc((size_t) count, sizeof *to_send);
    hpct_fresh *fresh = calloc((size_t) count, sizeof *fresh);
    hpct_sender *sender = NULL;
    hpct_status status =
        targets == NULL || to_send == NULL || fresh == NULL ? hpct_fail_memory(0) : HPCT_OK;
    int sent = 0;
    bool all = false;
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        hpct_source *src = &sources[i];
        if (how[i] != HPCT_HOW_BROADCAST)
            continue;
        to_send[sent] = (hpct_send_source){.entry = (uint32_t) i,
                                           .walk = src->walk,
                                           .extract = src->extract,
                                           .name = src->entry->src};
        targets[sent] = (hpct_take_target){.entry = (uint32_t) i, .folder = p->incoming};
        if (!src->there) {
            status = hpct_place_fresh(p, src, i, &fresh[i]);
            targets[sent].root = fresh[i].name;
            targets[sent].options = fresh[i].options;
        }
        sent++;
    }
    if (status == HPCT_OK && is_first(p))
        status = hpct_sender_start(b, to_send, sent, p->report, &sender);
    if (status == HPCT_OK)
        status = hpct_take_all(b, targets, sent, p->report);
    if (status != HPCT_OK) /* ends the sender, too */
        hpct_broadcast_fail(b, status, hpct_last_error());
    hpct_sender_end(sender);
    if (status == HPCT_OK) /* rename only if all nodes have a complete copy */
        status = hpct_together_all(b, is_first(p), true, &all);
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        if (fresh[i].manifest != NULL)
            status = hpct_place_fresh_put(p, &fresh[i]);
    }
    for (int i = 0; fresh != NULL && i < count; i++)
        hpct_place_fresh_end(&fresh[i]);
    free(fresh);
    free(to_send);
    free(targets);
    return status;
}

hpct_status hpct_place_together(hpct_placing *p, hpct_broadcast *b, hpct_source *sources, int count)
{
    hpct_offer *offers = calloc((size_t) count, sizeof *offers);
    hpct_how *how = calloc((size_t) count, sizeof *how);
    bool stream = false;
    hpct_status status = offers == NULL || how == NULL ? hpct_fail_memory(0) : HPCT_OK;
    if (status == HPCT_OK)
        status = exchange_offers(p, b, sources, offers, count);
    if (status == HPCT_OK)
        status = decide(p, b, sources, offers, count, how);
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        stream = stream || how[i] == HPCT_HOW_BROADCAST;
        if (how[i] == HPCT_HOW_COPY)
            status = list_own(p, &sources[i]);
    }
    if (status == HPCT_OK)
        status = hpct_place_check_space(p, sources, count);
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        if (how[i] == HPCT_HOW_COPY && !sources[i].there)
            status = hpct_place_one(p, &sources[i], i);
    }
    if (status == HPCT_OK && stream)
        status = receive(p, b, sources, how, count);
    if (status == HPCT_OK)
        status = hpct_broadcast_finish(b);
    free(how);
    free(offers);
    return status;
}
