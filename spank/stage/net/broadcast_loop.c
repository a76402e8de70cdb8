/* The network thread: receives blocks from the parents into the ring and sends them to the
 * children; letters, heartbeats and propagation of failures. Blocks only in poll. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/net/link.h"
#include "spank/stage/net/broadcast_state.h"

void hpct_stage_broadcast_wake(hpct_stage_broadcast *b)
{
    const uint64_t one = 1;
    if (write(b->wake_fd, &one, sizeof one) < 0) {
        /* the counter is full: the thread will wake up */
    }
}

/* ---- failing ---- */

void hpct_stage_broadcast_fail_locked(hpct_stage_broadcast *b, uint32_t node, hpct_status status,
                                      const char *why, bool elsewhere)
{
    if (b->failed || b->over)
        return;
    b->failed = true;
    b->elsewhere = elsewhere;
    b->failure.node = node;
    b->failure.status = (uint8_t) status;
    snprintf(b->failure.text, sizeof b->failure.text, "%s", why);
    pthread_cond_broadcast(&b->changed);
    hpct_stage_broadcast_wake(b);
}

static void lost(hpct_stage_broadcast *b, const hpct_stage_neighbour *n, const char *why)
{
    hpct_stage_broadcast_fail_locked(b, (uint32_t) n->node, HPCT_ERR_PEER, why, false);
}

/* Sends the failure to all connected neighbours, and to those not yet connected as soon as they
 * connect, as nobody else would tell them; not to the node that failed. */
static void tell_failure(hpct_stage_broadcast *b, int64_t now)
{
    uint8_t text[HPCT_STAGE_WIRE_FAILURE_MAX];
    size_t size = hpct_stage_wire_put_failure(text, &b->failure);
    bool stopped = hpct_stage_report_stopped() != HPCT_OK;
    bool own = b->failure.node == (uint32_t) b->team->index;
    bool late =
        !b->connected && !stopped && b->failure.status != HPCT_ERR_STOPPED && (own || b->elsewhere);
    if (b->farewell_at == 0)
        b->farewell_at = now + (late ? HPCT_STAGE_LATE_MS : HPCT_STAGE_FAREWELL_MS);
    else if (stopped && b->farewell_at > now + HPCT_STAGE_FAREWELL_MS)
        b->farewell_at = now + HPCT_STAGE_FAREWELL_MS;
    for (int i = 0; i < b->num_neighbours; i++) {
        hpct_stage_neighbour *n = &b->neighbours[i];
        if (hpct_stage_neighbour_has_blocks(n)) {
            hpct_stage_link_close(&n->link, true);
            n->informed = true;
        } else if (n->up && !n->informed) {
            n->informed = true;
            if (n->link.fd < 0)
                continue;
            hpct_stage_link_queue(&n->link, HPCT_STAGE_WIRE_FAIL, 0, text, (uint32_t) size);
            if (!hpct_stage_link_flush(&n->link))
                hpct_stage_link_close(&n->link, true);
        } else if (!late || (uint32_t) n->node == b->failure.node) {
            hpct_stage_link_close(&n->link, true);
            n->informed = true;
        }
    }
}

/* ---- blocks ---- */

/* A slot of the ring is free when this node has taken its block and all children have it. */
bool hpct_stage_block_is_free(const hpct_stage_broadcast *b, uint64_t sequence)
{
    if (sequence < HPCT_STAGE_WINDOW)
        return true;
    const uint64_t before = sequence - HPCT_STAGE_WINDOW;
    if (b->released <= before)
        return false;
    for (int i = 0; i < b->num_neighbours; i++) {
        const hpct_stage_neighbour *n = &b->neighbours[i];
        if (!n->is_parent && n->channel == (int) (sequence % HPCT_STAGE_NUM_TREES) &&
            n->next <= before)
            return false;
    }
    return true;
}

static hpct_stage_block *block_of(hpct_stage_broadcast *b, uint64_t sequence)
{
    return &b->blocks[sequence % HPCT_STAGE_WINDOW];
}

static void damaged(hpct_stage_broadcast *b, const hpct_stage_neighbour *n)
{
    char why[512];
    snprintf(why, sizeof why, "data received from %s was damaged in transit",
             hpct_stage_node_name(b, n->node));
    hpct_stage_broadcast_fail_locked(b, (uint32_t) b->team->index, HPCT_ERR_IO, why, false);
}

static void receive_blocks(hpct_stage_broadcast *b, hpct_stage_neighbour *n, int64_t now)
{
    while (!b->failed && hpct_stage_block_is_free(b, n->next)) {
        hpct_stage_block *block = block_of(b, n->next);
        hpct_stage_link_result result = hpct_stage_link_read(&n->link, HPCT_STAGE_BLOCK_BYTES);
        if (result == HPCT_STAGE_LINK_HEADER) {
            if (n->link.header.type != HPCT_STAGE_WIRE_BLOCK ||
                n->link.header.sequence != n->next) {
                damaged(b, n);
                return;
            }
            block->filled = false;
            n->link.data = block->data;
            continue;
        }
        if (result == HPCT_STAGE_LINK_WAIT)
            return;
        if (result == HPCT_STAGE_LINK_CLOSED) {
            hpct_stage_link_close(&n->link, false);
            n->broken_at = now;
            return;
        }
        if (result == HPCT_STAGE_LINK_DAMAGED) {
            damaged(b, n);
            return;
        }
        block->size = n->link.header.size;
        block->sequence = n->next;
        memcpy(block->head, n->link.head, sizeof block->head);
        block->filled = true;
        b->bytes_in += block->size;
        n->next += HPCT_STAGE_NUM_TREES;
        hpct_stage_link_next(&n->link);
        pthread_cond_broadcast(&b->changed);
    }
}

static const hpct_stage_block *block_to_send(hpct_stage_broadcast *b, const hpct_stage_neighbour *n)
{
    const hpct_stage_block *block = block_of(b, n->next);
    return block->filled && block->sequence == n->next ? block : NULL;
}

static void send_blocks(hpct_stage_broadcast *b, hpct_stage_neighbour *n, int64_t now)
{
    const hpct_stage_block *block;
    while ((block = block_to_send(b, n)) != NULL) {
        if (!hpct_stage_link_send(&n->link, block->head, block->data, block->size, &n->sent)) {
            hpct_stage_link_close(&n->link, false);
            n->broken_at = now;
            return;
        }
        if (n->sent < HPCT_STAGE_WIRE_HEADER + block->size)
            return;
        b->bytes_out += block->size;
        n->sent = 0;
        n->next += HPCT_STAGE_NUM_TREES;
        pthread_cond_broadcast(&b->changed); /* node 0 may wait for a free slot */
    }
}

/* ---- letters ---- */

void hpct_stage_letters_down(hpct_stage_broadcast *b, hpct_stage_wire_type type, uint64_t sequence,
                             const void *data, size_t size)
{
    for (int i = 0; i < b->num_neighbours; i++) {
        hpct_stage_neighbour *n = &b->neighbours[i];
        if (hpct_stage_neighbour_has_blocks(n) || n->is_parent || (n->up && n->link.fd < 0))
            continue;
        /* for a child that is not connected yet the letter stays in the queue */
        if (!hpct_stage_link_queue(&n->link, type, sequence, data, (uint32_t) size))
            lost(b, n, "it does not listen any more");
    }
}

/* Votes are sent to the parent once this node's own and those of all its children have arrived. */
void hpct_stage_votes_ready(hpct_stage_broadcast *b)
{
    hpct_stage_neighbour *parent = NULL;
    if (!b->voted)
        return;
    for (int i = 0; i < b->num_neighbours; i++) {
        hpct_stage_neighbour *n = &b->neighbours[i];
        if (hpct_stage_neighbour_has_blocks(n))
            continue;
        if (n->is_parent)
            parent = n;
        else if (!n->gathered)
            return;
    }
    if (parent != NULL && parent->link.fd >= 0 &&
        !hpct_stage_link_queue(&parent->link, HPCT_STAGE_WIRE_GATHER, b->round, b->votes,
                               (uint32_t) b->votes_size))
        lost(b, parent, "it does not listen any more");
    for (int i = 0; i < b->num_neighbours; i++)
        b->neighbours[i].gathered = false;
    free(b->result);
    b->result = b->votes;
    b->votes = NULL;
    b->voted = false;
    b->round++;
    pthread_cond_broadcast(&b->changed);
}

bool hpct_stage_votes_add(hpct_stage_broadcast *b, const uint8_t *votes, size_t size)
{
    if (b->votes == NULL) {
        b->votes = malloc(size + 1);
        if (b->votes == NULL)
            return false;
        if (size > 0)
            memcpy(b->votes, votes, size);
        b->votes_size = size;
        return true;
    }
    if (size != b->votes_size)
        return false;
    for (size_t i = 0; i < size; i++)
        b->votes[i] &= votes[i];
    return true;
}

static bool keep_letter(hpct_stage_broadcast *b, hpct_stage_neighbour *n)
{
    hpct_stage_letter *letter = malloc(sizeof *letter);
    if (letter == NULL)
        return false;
    *letter = (hpct_stage_letter){.data = n->link.letter, .size = n->link.header.size};
    n->link.letter = NULL; /* now owned by the caller of hpct_stage_broadcast_receive */
    *b->last_letter = letter;
    b->last_letter = &letter->next;
    return true;
}

static void take_letter(hpct_stage_broadcast *b, hpct_stage_neighbour *n)
{
    hpct_stage_wire_failure failure;
    const hpct_stage_wire_header *header = &n->link.header;
    bool good = false;
    switch (header->type) {
    case HPCT_STAGE_WIRE_LETTER:
        good = n->is_parent && header->sequence == b->num_letters;
        if (good) {
            b->num_letters++;
            hpct_stage_letters_down(b, HPCT_STAGE_WIRE_LETTER, header->sequence, n->link.data,
                                    header->size);
            good = keep_letter(b, n);
        }
        break;
    case HPCT_STAGE_WIRE_GATHER:
        good = !n->is_parent && !n->gathered && header->sequence == b->round &&
               hpct_stage_votes_add(b, n->link.data, header->size);
        if (good) {
            n->gathered = true;
            hpct_stage_votes_ready(b);
        }
        break;
    case HPCT_STAGE_WIRE_FAIL:
        good = hpct_stage_wire_get_failure(&failure, n->link.data, header->size) &&
               failure.node < (uint32_t) b->team->count;
        if (good)
            hpct_stage_broadcast_fail_locked(b, failure.node, (hpct_status) failure.status,
                                             failure.text, true);
        break;
    case HPCT_STAGE_WIRE_BEAT:
        good = true;
        break;
    case HPCT_STAGE_WIRE_BYE:
        good = n->is_parent;
        if (good) {
            hpct_stage_letters_down(b, HPCT_STAGE_WIRE_BYE, 0, NULL, 0);
            b->over = true;
        }
        break;
    default:
        break;
    }
    if (!good)
        damaged(b, n);
    pthread_cond_broadcast(&b->changed);
}

static void receive_letters(hpct_stage_broadcast *b, hpct_stage_neighbour *n)
{
    for (;;) {
        hpct_stage_link_result result = hpct_stage_link_read(&n->link, HPCT_STAGE_LETTER_BYTES);
        if (result == HPCT_STAGE_LINK_HEADER)
            continue;
        if (result == HPCT_STAGE_LINK_WAIT)
            return;
        if (result == HPCT_STAGE_LINK_FRAME) {
            take_letter(b, n);
            hpct_stage_link_next(&n->link);
            continue;
        }
        if (result == HPCT_STAGE_LINK_DAMAGED)
            damaged(b, n);
        else
            lost(b, n, "it was lost: it ended, or was killed, without a word");
        hpct_stage_link_close(&n->link, false);
        return;
    }
}

/* ---- the loop ---- */

static void poll_neighbours(hpct_stage_broadcast *b, struct pollfd *polls, int *count)
{
    for (int i = 0; i < b->num_neighbours; i++) {
        hpct_stage_neighbour *n = &b->neighbours[i];
        short events = 0;
        if (!n->up)
            continue;
        n->polled = -1;
        if (n->link.fd < 0)
            continue;
        if (!hpct_stage_neighbour_has_blocks(n))
            events = hpct_stage_link_flushed(&n->link) ? POLLIN : POLLIN | POLLOUT;
        else if (n->is_parent)
            events = hpct_stage_block_is_free(b, n->next) ? POLLIN : 0;
        else /* children send nothing on this channel, only close it */
            events = block_to_send(b, n) != NULL ? POLLIN | POLLOUT : POLLIN;
        if (events == 0) /* with events = 0 poll would report POLLHUP again and again */
            continue;
        n->polled = *count;
        polls[(*count)++] = (struct pollfd){.fd = n->link.fd, .events = events};
    }
}

static void await_end(hpct_stage_broadcast *b, hpct_stage_neighbour *n, int64_t now)
{
    char byte;
    ssize_t got = recv(n->link.fd, &byte, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (got > 0) {
        damaged(b, n);
        return;
    }
    hpct_stage_link_close(&n->link, false);
    n->broken_at = now;
}

static void step_neighbour(hpct_stage_broadcast *b, hpct_stage_neighbour *n,
                           const struct pollfd *polls, int64_t now)
{
    short events = n->polled < 0 ? 0 : polls[n->polled].revents;
    if (n->link.fd < 0)
        return;
    if (!hpct_stage_neighbour_has_blocks(n)) {
        if (events & (POLLIN | POLLERR | POLLHUP))
            receive_letters(b, n);
        if (n->link.fd >= 0 && !hpct_stage_link_flushed(&n->link) &&
            !hpct_stage_link_flush(&n->link)) {
            lost(b, n, "it was lost: its connection broke");
            hpct_stage_link_close(&n->link, false);
        }
    } else if (n->is_parent) {
        if (events != 0)
            receive_blocks(b, n, now);
    } else {
        if (events & (POLLIN | POLLERR | POLLHUP))
            await_end(b, n, now);
        if (n->link.fd >= 0)
            send_blocks(b, n, now);
    }
}

/* Detects that this node's own work hangs, for example in a file system. */
static void watch_own(hpct_stage_broadcast *b, int64_t now)
{
    const char *why = NULL;
    if (now - b->alive_at >= HPCT_STAGE_STALL_MS)
        why = "its work made no progress for 300 seconds";
    else if (b->pushed_at != 0 && now - b->pushed_at >= HPCT_STAGE_STALL_MS &&
             b->released == b->pushed)
        why = "reading the source made no progress for 300 seconds";
    if (why != NULL)
        hpct_stage_broadcast_fail_locked(b, (uint32_t) b->team->index, HPCT_ERR_IO, why, false);
}

static void watch(hpct_stage_broadcast *b, int64_t now)
{
    /* Until all have connected, the FAIL message may have to wait for its connection. */
    const int64_t grace =
        b->connected ? HPCT_STAGE_GRACE_MS : HPCT_STAGE_LATE_MS + HPCT_STAGE_GRACE_MS;
    watch_own(b, now);
    for (int i = 0; i < b->num_neighbours && !b->failed && !b->over; i++) {
        hpct_stage_neighbour *n = &b->neighbours[i];
        if (n->broken_at != 0 && now - n->broken_at >= grace) {
            lost(b, n, "it was lost: its connection broke");
        } else if (n->up && n->link.fd >= 0 && !hpct_stage_neighbour_has_blocks(n)) {
            if (now - n->link.received_at > n->link.silence)
                lost(b, n,
                     "it was lost: nothing was heard of it for more than 30 seconds (stopped, or "
                     "its node or the network is down)");
            else if (now - n->link.sent_at >= HPCT_NET_LINK_BEAT_MS)
                hpct_stage_link_queue(&n->link, HPCT_STAGE_WIRE_BEAT, 0, NULL, 0);
        }
    }
}

/* True when everything was sent and received, or at the deadline. The connecting side closes first,
 * so that TIME_WAIT is on its side and the listener's port is free at once. */
static bool said_farewell(hpct_stage_broadcast *b, int64_t now)
{
    bool quiet = true;
    if (b->farewell_at == 0)
        b->farewell_at = now + HPCT_STAGE_LAST_MS;
    for (int i = 0; i < b->num_neighbours; i++) {
        hpct_stage_neighbour *n = &b->neighbours[i];
        if (b->failed && !n->informed)
            quiet = false;
        if (n->link.fd < 0 || !n->up)
            continue;
        bool queued = hpct_stage_neighbour_has_blocks(n)
                          ? n->is_parent || (block_to_send(b, n) == NULL && n->sent == 0)
                          : hpct_stage_link_flushed(&n->link);
        if (queued && n->is_parent)
            hpct_stage_link_close(&n->link, false);
        quiet = quiet && n->link.fd < 0;
    }
    return quiet || now >= b->farewell_at;
}

static int timeout_of(const hpct_stage_broadcast *b)
{
    if (b->failed || b->closing)
        return 20;
    return b->connected ? HPCT_NET_LINK_BEAT_MS / 2 : 50;
}

void *hpct_stage_broadcast_loop(void *broadcast)
{
    hpct_stage_broadcast *b = broadcast;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        struct pollfd polls[HPCT_STAGE_MAX_POLLS];
        int count = 0;
        uint64_t wakes;
        polls[count++] = (struct pollfd){.fd = b->wake_fd, .events = POLLIN};
        if (!b->connected)
            hpct_stage_join_poll(b, polls, &count);
        poll_neighbours(b, polls, &count);
        int timeout = timeout_of(b);
        pthread_mutex_unlock(&b->lock);
        poll(polls, (nfds_t) count, timeout);
        if (polls[0].revents != 0 && read(b->wake_fd, &wakes, sizeof wakes) < 0) {
            /* EAGAIN: nothing to clear */
        }
        int64_t now = hpct_now_ms();
        pthread_mutex_lock(&b->lock);
        if (!b->connected)
            hpct_stage_join_step(b, polls, now);
        for (int i = 0; i < b->num_neighbours; i++) {
            if (b->neighbours[i].up)
                step_neighbour(b, &b->neighbours[i], polls, now);
        }
        watch(b, now);
        if (b->failed)
            tell_failure(b, now);
        if ((b->failed || (b->closing && b->over)) && said_farewell(b, now))
            break;
        if (b->closing && !b->over && !b->failed)
            break;
    }
    for (int i = 0; i < b->num_neighbours; i++)
        hpct_stage_link_close(&b->neighbours[i].link, true);
    hpct_stage_join_end(b);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}
