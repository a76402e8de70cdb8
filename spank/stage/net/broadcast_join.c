/* Connecting to the neighbours: to the parents, and accepting the children. Both ends prove that
 * they belong to the same user and run and are the expected node. Any other connection is dropped
 * without a message in the job's output and without blocking the rest. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/net/link.h"
#include "base/status.h"
#include "spank/stage/net/broadcast_state.h"

#define RETRY_MS 100
#define RESOLVE_MS 200 /* of one attempt: heartbeats wait meanwhile */
#define MAX_RETRY_MS 1000

const char *hpct_stage_node_name(const hpct_stage_broadcast *b, int node)
{
    return b->team->hosts[node];
}

static void add(hpct_stage_broadcast *b, int node, int channel, bool is_parent)
{
    hpct_stage_neighbour *n = &b->neighbours[b->num_neighbours++];
    *n = (hpct_stage_neighbour){
        .node = node,
        .channel = channel,
        .is_parent = is_parent,
        .link.fd = -1,
        .next = (uint64_t) channel, /* each tree's first block has the tree's number */
        .retry_ms = RETRY_MS,
        .polled = -1,
    };
}

void hpct_stage_join_begin(hpct_stage_broadcast *b)
{
    for (int channel = 0; channel < HPCT_STAGE_NUM_CHANNELS; channel++) {
        int tree = channel == HPCT_STAGE_CHANNEL_LETTERS ? 0 : channel, parent;
        int children[HPCT_STAGE_MAX_CHILDREN];
        int count = hpct_stage_tree_place(tree, b->team->count, b->team->index, &parent, children);
        if (parent >= 0)
            add(b, parent, channel, true);
        for (int i = 0; i < count; i++)
            add(b, children[i], channel, false);
    }
    for (int i = 0; i < HPCT_STAGE_MAX_STRANGERS; i++)
        b->strangers[i].link.fd = -1;
    b->opened_at = hpct_now_ms();
}

void hpct_stage_join_end(hpct_stage_broadcast *b)
{
    for (int i = 0; i < HPCT_STAGE_MAX_STRANGERS; i++)
        hpct_stage_link_close(&b->strangers[i].link, true);
    hpct_fd_close(b->listen_fd);
    b->listen_fd = -1;
    for (int i = 0; i < b->num_neighbours; i++) {
        free(b->neighbours[i].addresses);
        b->neighbours[i].addresses = NULL;
    }
}

/* ---- connecting to a parent ---- */

static void try_later(hpct_stage_neighbour *n, int64_t now, const char *trouble)
{
    snprintf(n->trouble, sizeof n->trouble, "%s", trouble);
    hpct_stage_link_close(&n->link, true);
    n->joining = HPCT_STAGE_JOIN_LATER;
    n->retry_at = now + n->retry_ms;
    n->retry_ms = n->retry_ms * 3 / 2 > MAX_RETRY_MS ? MAX_RETRY_MS : n->retry_ms * 3 / 2;
}

/* Releases the lock meanwhile. */
static hpct_status find_addresses(hpct_stage_broadcast *b, hpct_stage_neighbour *n)
{
    hpct_net_addresses *found = calloc(1, sizeof *found);
    if (found == NULL)
        return hpct_fail_memory(sizeof *found);
    pthread_mutex_unlock(&b->lock);
    hpct_status status =
        hpct_net_resolve(found, b->team->hosts[n->node], b->team->ports[n->node], RESOLVE_MS);
    pthread_mutex_lock(&b->lock);
    if (status == HPCT_OK)
        n->addresses = found;
    else
        free(found);
    return status;
}

static void begin_connect(hpct_stage_broadcast *b, hpct_stage_neighbour *n, int64_t now)
{
    if (n->addresses == NULL && find_addresses(b, n) != HPCT_OK) {
        try_later(n, now, hpct_last_error());
        return;
    }
    int fd = hpct_net_link_begin_connect(&n->addresses->at[n->address],
                                         n->addresses->size[n->address], HPCT_STAGE_REPEAT_MS);
    int error = errno;
    n->address = (n->address + 1) % n->addresses->num; /* of the next attempt */
    if (fd < 0) {
        try_later(n, now, strerror(error));
        return;
    }
    hpct_stage_link_open(&n->link, fd);
    n->joining = HPCT_STAGE_JOIN_CONNECTING;
    n->give_up_at = now + HPCT_STAGE_GREETING_MS;
}

static bool say_hello(hpct_stage_broadcast *b, hpct_stage_neighbour *n)
{
    char *credential = NULL;
    if (n->link.header.type != HPCT_STAGE_WIRE_CHALLENGE ||
        n->link.header.size != HPCT_STAGE_NONCE_BYTES)
        return false;
    n->claim = (hpct_stage_auth_claim){
        .key = b->team->key,
        .run = b->team->run,
        .channel = (uint8_t) n->channel,
        .connector = (uint32_t) b->team->index,
        .listener = (uint32_t) n->node,
    };
    memcpy(n->claim.challenge, n->link.data, HPCT_STAGE_NONCE_BYTES);
    hpct_status status = hpct_stage_auth_draw(n->claim.answer);
    if (status == HPCT_OK)
        status = hpct_stage_auth_make(&n->claim, &credential);
    if (status != HPCT_OK) { /* a local error, which a retry would not cure */
        hpct_stage_broadcast_fail_locked(b, (uint32_t) b->team->index, status, hpct_last_error(),
                                         false);
        return false;
    }
    bool queued = hpct_stage_link_queue(&n->link, HPCT_STAGE_WIRE_HELLO, 0, credential,
                                        (uint32_t) strlen(credential)) &&
                  hpct_stage_link_flush(&n->link);
    free(credential);
    return queued;
}

static void step_parent(hpct_stage_broadcast *b, hpct_stage_neighbour *n,
                        const struct pollfd *polls, int64_t now)
{
    const char *why = NULL;
    if (n->joining == HPCT_STAGE_JOIN_LATER) {
        if (now >= n->retry_at)
            begin_connect(b, n, now);
        return;
    }
    if (n->joining == HPCT_STAGE_JOIN_CONNECTING) {
        int error = 0;
        socklen_t size = sizeof error;
        if (n->polled < 0 || polls[n->polled].revents == 0) {
            if (now >= n->give_up_at)
                try_later(n, now, "it does not answer");
            return;
        }
        if (getsockopt(n->link.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
        if (error != 0) {
            try_later(n, now, strerror(error));
            return;
        }
        n->joining = HPCT_STAGE_JOIN_CHALLENGE;
    }
    hpct_stage_link_result result = hpct_stage_link_read(&n->link, HPCT_STAGE_GREETING_BYTES);
    if (result == HPCT_STAGE_LINK_HEADER)
        result = hpct_stage_link_read(&n->link, HPCT_STAGE_GREETING_BYTES);
    if (result == HPCT_STAGE_LINK_WAIT) {
        if (now >= n->give_up_at)
            try_later(n, now, "what listens there does not speak as hpc-train-stage does");
        return;
    }
    if (result == HPCT_STAGE_LINK_CLOSED) {
        try_later(n, now, "it closed the connection");
        return;
    }
    if (result != HPCT_STAGE_LINK_FRAME) {
        try_later(n, now, "what listens there does not speak as hpc-train-stage does");
        return;
    }
    if (n->joining == HPCT_STAGE_JOIN_CHALLENGE) {
        if (!say_hello(b, n)) {
            try_later(n, now, "what listens there does not speak as hpc-train-stage does");
            return;
        }
        n->joining = HPCT_STAGE_JOIN_WELCOME;
        hpct_stage_link_next(&n->link);
        return;
    }
    n->claim.from_listener = true;
    if (n->link.header.type != HPCT_STAGE_WIRE_WELCOME ||
        hpct_stage_auth_check((const char *) n->link.data, n->link.header.size, &n->claim, &why) !=
            HPCT_STAGE_AUTH_GOOD) {
        char trouble[160];
        snprintf(trouble, sizeof trouble, "the listener is not of this step: %s",
                 why == NULL ? "it shows no credential" : why);
        try_later(n, now, trouble);
        return;
    }
    hpct_stage_link_next(&n->link);
    n->joining = HPCT_STAGE_JOIN_DONE;
    n->up = true;
}

/* ---- accepting the children ---- */

static void let_in(hpct_stage_broadcast *b, int64_t now)
{
    for (;;) {
        int fd = accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        hpct_stage_stranger *s = &b->strangers[0]; /* a free slot, else the oldest connection's */
        for (int i = 0; i < HPCT_STAGE_MAX_STRANGERS && s->link.fd >= 0; i++) {
            hpct_stage_stranger *other = &b->strangers[i];
            if (other->link.fd < 0 || other->give_up_at < s->give_up_at)
                s = other;
        }
        hpct_stage_link_close(&s->link, true);
        hpct_stage_link_open(&s->link, fd);
        s->polled = -1;
        s->give_up_at = now + HPCT_STAGE_GREETING_MS;
        if (hpct_stage_auth_draw(s->challenge) != HPCT_OK ||
            !hpct_stage_link_queue(&s->link, HPCT_STAGE_WIRE_CHALLENGE, 0, s->challenge,
                                   HPCT_STAGE_NONCE_BYTES) ||
            !hpct_stage_link_flush(&s->link))
            hpct_stage_link_close(&s->link, true);
    }
}

static hpct_stage_neighbour *find_child(hpct_stage_broadcast *b, uint32_t node, int channel)
{
    for (int i = 0; i < b->num_neighbours; i++) {
        hpct_stage_neighbour *n = &b->neighbours[i];
        if (!n->is_parent && (uint32_t) n->node == node && n->channel == channel)
            return n;
    }
    return NULL;
}

/* Verifies the HELLO completely before it answers. */
static void greet(hpct_stage_broadcast *b, hpct_stage_stranger *s)
{
    const char *why = NULL;
    char *credential = NULL;
    hpct_stage_auth_claim claim = {
        .key = b->team->key, .run = b->team->run, .listener = (uint32_t) b->team->index};
    memcpy(claim.challenge, s->challenge, HPCT_STAGE_NONCE_BYTES);
    if (s->link.header.type != HPCT_STAGE_WIRE_HELLO ||
        hpct_stage_auth_check((const char *) s->link.data, s->link.header.size, &claim, &why) !=
            HPCT_STAGE_AUTH_GOOD) {
        if (b->report->verbose)
            hpct_stage_report_say("a connection was refused: %s",
                                  why == NULL ? "it shows no credential" : why);
        goto drop;
    }
    hpct_stage_neighbour *n = find_child(b, claim.connector, claim.channel);
    if (n == NULL || n->up)
        goto drop;
    claim.from_listener = true;
    hpct_status status = hpct_stage_auth_make(&claim, &credential);
    if (status != HPCT_OK) {
        hpct_stage_broadcast_fail_locked(b, (uint32_t) b->team->index, status, hpct_last_error(),
                                         false);
        goto drop;
    }
    hpct_stage_link_next(&s->link);
    if (!hpct_stage_link_queue(&s->link, HPCT_STAGE_WIRE_WELCOME, 0, credential,
                               (uint32_t) strlen(credential)) ||
        !hpct_stage_link_flush(&s->link))
        goto drop;
    free(credential);
    if (!hpct_stage_link_follow(&s->link, &n->link)) /* letters queued before the child connected */
        hpct_stage_broadcast_fail_locked(b, (uint32_t) b->team->index, HPCT_ERR_INTERNAL,
                                         "out of memory", false);
    n->link = s->link;
    n->up = true;
    n->polled = -1;
    s->link = (hpct_stage_link){.fd = -1};
    return;
drop:
    free(credential);
    hpct_stage_link_close(&s->link, true);
}

static void step_stranger(hpct_stage_broadcast *b, hpct_stage_stranger *s, int64_t now)
{
    hpct_stage_link_result result = hpct_stage_link_read(&s->link, HPCT_STAGE_GREETING_BYTES);
    if (result == HPCT_STAGE_LINK_HEADER)
        result = hpct_stage_link_read(&s->link, HPCT_STAGE_GREETING_BYTES);
    if (result == HPCT_STAGE_LINK_FRAME)
        greet(b, s);
    else if (result != HPCT_STAGE_LINK_WAIT || now >= s->give_up_at)
        hpct_stage_link_close(&s->link, true);
}

/* ---- polling ---- */

void hpct_stage_join_poll(hpct_stage_broadcast *b, struct pollfd *polls, int *count)
{
    if (b->listen_fd >= 0)
        polls[(*count)++] = (struct pollfd){.fd = b->listen_fd, .events = POLLIN};
    for (int i = 0; i < HPCT_STAGE_MAX_STRANGERS; i++) {
        hpct_stage_stranger *s = &b->strangers[i];
        s->polled = -1;
        if (s->link.fd < 0)
            continue;
        s->polled = *count;
        polls[(*count)++] = (struct pollfd){.fd = s->link.fd, .events = POLLIN};
    }
    for (int i = 0; i < b->num_neighbours; i++) {
        hpct_stage_neighbour *n = &b->neighbours[i];
        if (n->up || !n->is_parent)
            continue;
        n->polled = -1;
        if (n->link.fd < 0)
            continue;
        n->polled = *count;
        polls[(*count)++] =
            (struct pollfd){.fd = n->link.fd,
                            .events = n->joining == HPCT_STAGE_JOIN_CONNECTING ? POLLOUT : POLLIN};
    }
}

void hpct_stage_join_step(hpct_stage_broadcast *b, const struct pollfd *polls, int64_t now)
{
    bool all = true;
    for (int i = 0; i < b->num_neighbours; i++) {
        hpct_stage_neighbour *n = &b->neighbours[i];
        if (n->is_parent && !n->up && !n->informed)
            step_parent(b, n, polls, now);
    }
    for (int i = 0; i < HPCT_STAGE_MAX_STRANGERS; i++) {
        if (b->strangers[i].link.fd >= 0 && b->strangers[i].polled >= 0)
            step_stranger(b, &b->strangers[i], now);
    }
    if (b->listen_fd >= 0)
        let_in(b, now);
    for (int i = 0; i < b->num_neighbours; i++)
        all = all && b->neighbours[i].up;
    if (all && !b->connected) {
        b->connected = true;
        hpct_stage_join_end(b);
        pthread_cond_broadcast(&b->changed);
    }
    if (all || b->failed || now - b->opened_at < (int64_t) b->team->wait_seconds * 1000)
        return;
    for (int i = 0; i < b->num_neighbours; i++) {
        const hpct_stage_neighbour *n = &b->neighbours[i];
        char why[512];
        if (n->up)
            continue;
        snprintf(why, sizeof why, "it did not come within %d seconds%s%s%s", b->team->wait_seconds,
                 n->trouble[0] != '\0' ? " (" : "", n->trouble, n->trouble[0] != '\0' ? ")" : "");
        hpct_stage_broadcast_fail_locked(b, (uint32_t) n->node, HPCT_ERR_PEER, why, false);
        return;
    }
}
