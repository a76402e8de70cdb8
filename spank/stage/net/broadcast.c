/* The caller's side of a broadcast: changes the state shared with the network thread and waits for
 * its condition variable. */
#include <config.h>

#include "spank/stage/net/broadcast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/net/link.h"
#include "base/status.h"
#include "base/thread.h"
#include "spank/stage/net/broadcast_state.h"

#define BACKLOG 128
#define PRINT_AFTER_MS 5000
#define PRINT_AGAIN_MS 60000

static bool is_reader(const hpct_stage_broadcast *b)
{
    return b->team->index == 0;
}

/* ---- opening and closing ---- */

static void destroy(hpct_stage_broadcast *b)
{
    for (int i = 0; i < HPCT_STAGE_WINDOW; i++)
        free(b->blocks[i].data);
    while (b->letters != NULL) {
        hpct_stage_letter *letter = b->letters;
        b->letters = letter->next;
        free(letter->data);
        free(letter);
    }
    free(b->votes);
    free(b->result);
    hpct_fd_close(b->wake_fd);
    hpct_fd_close(b->listen_fd);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static hpct_status show_alive(void *context);

static hpct_status listen_for_children(hpct_stage_broadcast *b, int port)
{
    b->listen_fd = hpct_net_link_open(port, BACKLOG, HPCT_STAGE_REPEAT_MS);
    if (b->listen_fd >= 0)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG,
                     "port %d, where the other nodes' connections are awaited, cannot be used: "
                     "%s; choose others with --hpc-train-port",
                     port, strerror(errno));
}

hpct_status hpct_stage_broadcast_open(const hpct_stage_team *team, hpct_stage_report *report,
                                      hpct_stage_broadcast **out)
{
    hpct_status status = HPCT_OK;
    hpct_stage_broadcast *b = calloc(1, sizeof *b);
    if (b == NULL)
        return hpct_fail_memory(sizeof *b);
    b->team = team;
    b->report = report;
    b->last_letter = &b->letters;
    b->listen_fd = -1;
    b->alive_at = hpct_now_ms();
    b->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&b->lock, NULL);
    hpct_thread_condition(&b->changed);
    for (int i = 0; i < HPCT_STAGE_WINDOW && status == HPCT_OK; i++) {
        b->blocks[i].data = hpct_stage_broadcast_block();
        if (b->blocks[i].data == NULL)
            status = hpct_fail_memory(HPCT_STAGE_BLOCK_BYTES);
    }
    if (status == HPCT_OK && b->wake_fd < 0)
        status = hpct_fail(HPCT_ERR_INTERNAL, "eventfd: %s", strerror(errno));
    if (status == HPCT_OK)
        status = listen_for_children(b, team->ports[team->index]);
    if (status == HPCT_OK) {
        hpct_stage_join_begin(b);
        if (pthread_create(&b->thread, NULL, hpct_stage_broadcast_loop, b) != 0)
            status = hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started");
    }
    if (status != HPCT_OK) {
        destroy(b);
        return status;
    }
    report->alive = show_alive;
    report->alive_context = b;
    *out = b;
    return HPCT_OK;
}

void hpct_stage_broadcast_close(hpct_stage_broadcast *b)
{
    if (b == NULL)
        return;
    b->report->alive = NULL;
    pthread_mutex_lock(&b->lock);
    b->closing = true;
    hpct_stage_broadcast_wake(b);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    destroy(b);
}

void hpct_stage_broadcast_traffic(hpct_stage_broadcast *b, uint64_t *received, uint64_t *sent)
{
    pthread_mutex_lock(&b->lock);
    *received = b->bytes_in;
    *sent = b->bytes_out;
    pthread_mutex_unlock(&b->lock);
}

/* ---- failing ---- */

void hpct_stage_broadcast_fail(hpct_stage_broadcast *b, hpct_status status, const char *why)
{
    pthread_mutex_lock(&b->lock);
    hpct_stage_broadcast_fail_locked(b, (uint32_t) b->team->index, status, why, false);
    pthread_mutex_unlock(&b->lock);
}

static hpct_status failure(const hpct_stage_broadcast *b)
{
    if (b->failure.node == (uint32_t) b->team->index) /* messages begin with it anyway */
        return hpct_fail((hpct_status) b->failure.status, "%s", b->failure.text);
    return hpct_fail((hpct_status) b->failure.status, "%s: %s",
                     hpct_stage_node_name(b, (int) b->failure.node), b->failure.text);
}

hpct_status hpct_stage_broadcast_failure(hpct_stage_broadcast *b, bool *elsewhere)
{
    pthread_mutex_lock(&b->lock);
    hpct_status status = b->failed ? failure(b) : HPCT_OK;
    *elsewhere = b->failed && b->elsewhere;
    pthread_mutex_unlock(&b->lock);
    return status;
}

/* Called while this node works. Returns a failure of another node, which ends the work. */
static hpct_status show_alive(void *context)
{
    hpct_stage_broadcast *b = context;
    bool elsewhere;
    b->alive_at = hpct_now_ms();
    return hpct_stage_broadcast_failure(b, &elsewhere);
}

/* ---- waiting; all functions are called with the lock held ---- */

/* Waits 0.2 s or for a change of the state. Returns the broadcast's failure, if any. */
static hpct_status wait_for_change(hpct_stage_broadcast *b)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 200000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    if (!b->failed)
        pthread_cond_timedwait(&b->changed, &b->lock, &until);
    return b->failed ? failure(b) : HPCT_OK;
}

/* The same for the caller's main thread, which also checks for signals. */
static hpct_status wait_attended(hpct_stage_broadcast *b)
{
    HPCT_TRY(wait_for_change(b));
    pthread_mutex_unlock(&b->lock);
    hpct_status status = hpct_stage_report_tick(b->report, 0);
    pthread_mutex_lock(&b->lock);
    if (status != HPCT_OK)
        hpct_stage_broadcast_fail_locked(b, (uint32_t) b->team->index, status, hpct_last_error(),
                                         false);
    return status;
}

/* "node3, node7": the neighbours that are not connected; cut off where `text` is full. */
static void name_missing(const hpct_stage_broadcast *b, char *text, size_t size)
{
    int seen[HPCT_STAGE_MAX_NEIGHBOURS], missing = 0;
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < b->num_neighbours; i++) {
        bool again = b->neighbours[i].up;
        for (int j = 0; j < missing; j++)
            again = again || seen[j] == b->neighbours[i].node;
        if (again)
            continue;
        seen[missing++] = b->neighbours[i].node;
        int put = snprintf(text + length, size - length, "%s%s", missing > 1 ? ", " : "",
                           hpct_stage_node_name(b, b->neighbours[i].node));
        if (put < 0 || (size_t) put >= size - length)
            return;
        length += (size_t) put;
    }
}

hpct_status hpct_stage_broadcast_connect(hpct_stage_broadcast *b)
{
    hpct_status status = HPCT_OK;
    int64_t print_at = hpct_now_ms() + PRINT_AFTER_MS;
    pthread_mutex_lock(&b->lock);
    while (!b->connected && status == HPCT_OK) {
        status = wait_attended(b);
        if (status == HPCT_OK && !b->connected && hpct_now_ms() >= print_at) {
            char names[1024];
            name_missing(b, names, sizeof names);
            print_at = hpct_now_ms() + PRINT_AGAIN_MS;
            hpct_stage_report_say("waiting for %s to stage with it", names);
        }
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

/* ---- letters (control messages) ---- */

hpct_status hpct_stage_broadcast_send(hpct_stage_broadcast *b, const void *data, size_t size)
{
    if (size > HPCT_STAGE_LETTER_BYTES)
        return hpct_fail(HPCT_ERR_USAGE, "there are too many entries to be sent to other nodes");
    pthread_mutex_lock(&b->lock);
    hpct_status status = b->failed ? failure(b) : HPCT_OK;
    if (status == HPCT_OK) {
        hpct_stage_letters_down(b, HPCT_STAGE_WIRE_LETTER, b->num_letters++, data, size);
        hpct_stage_broadcast_wake(b);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

hpct_status hpct_stage_broadcast_receive(hpct_stage_broadcast *b, uint8_t **data, size_t *size)
{
    hpct_status status = HPCT_OK;
    pthread_mutex_lock(&b->lock);
    while (b->letters == NULL && status == HPCT_OK)
        status = wait_attended(b);
    if (status == HPCT_OK) {
        hpct_stage_letter *letter = b->letters;
        b->letters = letter->next;
        if (b->letters == NULL)
            b->last_letter = &b->letters;
        *data = letter->data;
        *size = letter->size;
        free(letter);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

hpct_status hpct_stage_broadcast_vote(hpct_stage_broadcast *b, uint8_t *votes, size_t size)
{
    pthread_mutex_lock(&b->lock);
    const uint64_t round = b->round;
    hpct_status status = b->failed ? failure(b) : HPCT_OK;
    if (status == HPCT_OK && !hpct_stage_votes_add(b, votes, size))
        status = hpct_fail(HPCT_ERR_INTERNAL, "the nodes vote on different entries");
    if (status == HPCT_OK) {
        b->voted = true;
        hpct_stage_votes_ready(b);
        hpct_stage_broadcast_wake(b);
    }
    while (status == HPCT_OK && is_reader(b) && b->round == round)
        status = wait_attended(b);
    if (status == HPCT_OK && is_reader(b) && size > 0)
        memcpy(votes, b->result, size);
    pthread_mutex_unlock(&b->lock);
    return status;
}

hpct_status hpct_stage_broadcast_finish(hpct_stage_broadcast *b)
{
    hpct_status status = hpct_stage_broadcast_vote(b, NULL, 0);
    pthread_mutex_lock(&b->lock);
    if (status == HPCT_OK && is_reader(b)) {
        hpct_stage_letters_down(b, HPCT_STAGE_WIRE_BYE, 0, NULL, 0);
        b->over = true;
        hpct_stage_broadcast_wake(b);
    }
    while (status == HPCT_OK && !b->over)
        status = wait_attended(b);
    pthread_mutex_unlock(&b->lock);
    return status;
}

/* ---- blocks ---- */

uint8_t *hpct_stage_broadcast_block(void)
{
    return malloc(HPCT_STAGE_BLOCK_BYTES);
}

hpct_status hpct_stage_broadcast_push(hpct_stage_broadcast *b, uint8_t **data, size_t size)
{
    hpct_stage_wire_header header = {.type = HPCT_STAGE_WIRE_BLOCK, .size = (uint32_t) size};
    uint8_t head[HPCT_STAGE_WIRE_HEADER];
    hpct_status status = HPCT_OK;
    hpct_stage_wire_encode(head, &header, data == NULL ? (const void *) "" : *data);
    pthread_mutex_lock(&b->lock);
    if (b->failed)
        status = failure(b);
    while (status == HPCT_OK && !hpct_stage_block_is_free(b, b->pushed))
        status = wait_for_change(b);
    if (status == HPCT_OK) {
        hpct_stage_block *block = &b->blocks[b->pushed % HPCT_STAGE_WINDOW];
        if (data != NULL) {
            uint8_t *other = block->data;
            block->data = *data;
            *data = other;
        }
        header.sequence = b->pushed;
        hpct_stage_wire_encode_again(block->head, &header);
        block->size = size;
        block->sequence = b->pushed++;
        block->filled = true;
        b->pushed_at = size == 0 ? 0 : hpct_now_ms();
        pthread_cond_broadcast(&b->changed);
        hpct_stage_broadcast_wake(b);
    }
    pthread_mutex_unlock(&b->lock);
    return status;
}

hpct_status hpct_stage_broadcast_push_end(hpct_stage_broadcast *b)
{
    for (int tree = 0; tree < HPCT_STAGE_NUM_TREES; tree++)
        HPCT_TRY(hpct_stage_broadcast_push(b, NULL, 0));
    return HPCT_OK;
}

hpct_status hpct_stage_broadcast_pop(hpct_stage_broadcast *b, const uint8_t **data, size_t *size)
{
    hpct_status status = HPCT_OK;
    pthread_mutex_lock(&b->lock);
    const hpct_stage_block *block = &b->blocks[b->popped % HPCT_STAGE_WINDOW];
    if (b->failed)
        status = failure(b);
    while (status == HPCT_OK && !(block->filled && block->sequence == b->popped))
        status = wait_attended(b);
    *data = block->data;
    *size = block->size;
    b->popped += status == HPCT_OK;
    pthread_mutex_unlock(&b->lock);
    return status;
}

void hpct_stage_broadcast_release(hpct_stage_broadcast *b)
{
    pthread_mutex_lock(&b->lock);
    b->released++;
    pthread_cond_broadcast(&b->changed);
    hpct_stage_broadcast_wake(b);
    pthread_mutex_unlock(&b->lock);
}
