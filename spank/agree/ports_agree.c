/* Messages are the heartbeat frames of base/net/frame.h. To srun: its network, HELLO (rank: number
 * of nodes, node: its name, text: bitmap of free blocks) and ARRIVED (status: whether the node
 * holds the block). From srun: the network (network_frames.h), READY (rank: hold this block), then
 * BYE (all hold it), or ABORT (text: why there is no network; none: no block is left) or LOST
 * (rank: missing node; text: seconds); in ABORT, status: whether this node reports the error. */
#include "spank/agree/ports_agree.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/auth/forget.h"
#include "base/net/acceptor.h"
#include "base/net/link.h"
#include "base/status.h"
#include "base/thread.h"
#include "spank/agree/network_frames.h"

#define RUN "ports" /* only the key identifies the step */
#define BACKLOG 1024
#define MAX_NODES 65536 /* Slurm's own limit */
#define CONNECT_MS 10000
#define AGAIN_MS                                                                                   \
    100 /* retries: srun had too many unauthenticated connections, or nodes at once                \
         */

typedef struct member {
    hpct_net_link link;
    bool told, answered, held;
    uint64_t free, left; /* blocks it reported free and has not failed to hold in this round */
    hpct_agree_network_node network;
    uint32_t sent; /* frames of the decision */
} member;

struct hpct_agree_ports_host {
    hpct_auth_key *key; /* not in core dumps */
    hpct_auth auth;
    hpct_net_acceptor *acceptor;
    int stop; /* eventfd */
    hpct_agree_ports_serving serving;
    hpct_agree_ports_outcome outcome;
    bool noticed;
    pthread_t thread;
    member *members; /* by node */
    struct pollfd *polls;
    uint32_t num_members; /* allocated; at least num_nodes once that is known */
    uint32_t num_nodes;   /* 0: no node has reported */
    int64_t first_ms;     /* time of the first report; before: when serving began */
    bool has_network;     /* it is decided: */
    hpct_agree_network_decision network;
    uint32_t num_frames; /* of it, for each node */
    int choice;          /* -1: none yet */
    int round;
};

/* ---- srun's side ----------------------------------------------------------------------------- */

static bool make_room(hpct_agree_ports_host *h, uint32_t members)
{
    if (members <= h->num_members)
        return true;
    struct pollfd *polls = realloc(h->polls, (members + 2) * sizeof *polls);
    if (polls != NULL)
        h->polls = polls;
    member *more = polls == NULL ? NULL : realloc(h->members, members * sizeof *more);
    if (more == NULL)
        return false;
    for (uint32_t i = h->num_members; i < members; i++)
        more[i] = (member){.link = {.session = {.fd = -1}}};
    h->members = more;
    h->num_members = members;
    return true;
}

static void leave(member *m)
{
    hpct_net_link_close(&m->link);
    hpct_agree_network_node_free(&m->network);
    m->told = false;
    m->sent = 0;
}

static void take_guests(hpct_agree_ports_host *h)
{
    hpct_net_guest guest;
    hpct_net_session session;
    while (hpct_net_acceptor_next(h->acceptor, &guest)) {
        uint32_t node = guest.from;
        if (guest.purpose != HPCT_AUTH_FOR_PORTS || node >= MAX_NODES || !make_room(h, node + 1)) {
            hpct_net_guest_refuse(&guest);
            continue;
        }
        if (!hpct_net_guest_accept(&guest, &session))
            continue;
        leave(&h->members[node]);
        hpct_net_link_init(&h->members[node].link, &session);
    }
}

/* False unless it is a valid message of a node at this point. */
static bool take_frame(hpct_agree_ports_host *h, uint32_t node, const hpct_net_frame *frame)
{
    member *m = &h->members[node];
    if (frame->type == HPCT_NET_FRAME_NETWORK && !m->told)
        return hpct_agree_network_take_report(&m->network, frame);
    if (frame->type == HPCT_NET_FRAME_ARRIVED && m->told && h->choice >= 0 && !m->answered) {
        m->answered = true;
        m->held = frame->status == 1;
        return true;
    }
    if (frame->type != HPCT_NET_FRAME_HELLO || m->told || frame->rank <= node ||
        frame->rank > MAX_NODES || (h->num_nodes != 0 && frame->rank != h->num_nodes) ||
        h->choice >= 0 || !make_room(h, frame->rank))
        return false;
    if (h->num_nodes == 0)
        h->first_ms = hpct_now_ms();
    h->num_nodes = frame->rank;
    m = &h->members[node];
    m->told = true;
    m->free = m->left = strtoull(frame->text, NULL, 16);
    hpct_net_frame_set(m->network.name, sizeof m->network.name, frame->node);
    return true;
}

static void receive_frames(hpct_agree_ports_host *h, uint32_t node)
{
    for (;;) {
        hpct_net_frame frame;
        if (h->members[node].link.session.fd < 0)
            return;
        hpct_net_link_flush(&h->members[node].link);
        switch (hpct_net_link_receive(&h->members[node].link, &frame)) {
        case HPCT_NET_LINK_NOTHING:
            return;
        case HPCT_NET_LINK_FRAME:
            if (take_frame(h, node, &frame))
                continue;
            break;
        case HPCT_NET_LINK_CLOSED:
        case HPCT_NET_LINK_GARBAGE:
            break;
        }
        leave(&h->members[node]);
    }
}

static void send_to_all(hpct_agree_ports_host *h, hpct_net_frame_type type, uint32_t rank,
                        uint32_t speaker)
{
    for (uint32_t node = 0; node < h->num_nodes; node++) {
        hpct_net_frame frame = {.type = type, .status = node == speaker, .rank = rank};
        if (type == HPCT_NET_FRAME_LOST)
            snprintf(frame.text, sizeof frame.text, "%d", h->serving.seconds);
        hpct_net_link_send(&h->members[node].link, &frame);
    }
}

static int count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

/* Tries the lowest block first; later a random one, as another step competes for the same
 * blocks. */
static int choose_of(uint64_t common, bool again)
{
    unsigned skip = 0;
    if (again && getrandom(&skip, sizeof skip, 0) != (ssize_t) sizeof skip)
        skip = 0;
    for (skip %= (unsigned) count_bits(common); skip > 0; skip--)
        common &= common - 1;
    return __builtin_ctzll(common);
}

static uint64_t find_common(const hpct_agree_ports_host *h)
{
    uint64_t common = UINT64_MAX;
    for (uint32_t node = 0; node < h->num_nodes; node++)
        common &= h->members[node].left;
    return common;
}

/* False if none is left; `speaker` is the node that excluded the last one, or -1. Steps that start
 * together can block each other temporarily: hence the rounds. */
static bool choose(hpct_agree_ports_host *h, int speaker)
{
    uint64_t common = find_common(h);
    uint32_t fewest = 0;
    if (common == 0 && speaker >= 0 && ++h->round < HPCT_AGREE_PORTS_ROUNDS) {
        for (uint32_t node = 0; node < h->num_nodes; node++)
            h->members[node].left = h->members[node].free;
        common = find_common(h);
    }
    for (uint32_t node = 0; node < h->num_nodes; node++) {
        h->members[node].answered = false;
        if (count_bits(h->members[node].free) < count_bits(h->members[fewest].free))
            fewest = node;
    }
    if (common == 0) {
        send_to_all(h, HPCT_NET_FRAME_ABORT, 0, speaker < 0 ? fewest : (uint32_t) speaker);
        return false;
    }
    h->choice = choose_of(common, h->choice >= 0);
    send_to_all(h, HPCT_NET_FRAME_READY, (uint32_t) h->choice, UINT32_MAX);
    return true;
}

static bool is_missing(const hpct_agree_ports_host *h, uint32_t node)
{
    const member *m = &h->members[node];
    return !m->told || m->sent < h->num_frames || (h->choice >= 0 && !m->answered);
}

/* The first node that has not reported, or does not receive; -1: none. */
static int find_missing(const hpct_agree_ports_host *h)
{
    for (uint32_t node = 0; node < h->num_nodes; node++) {
        if (is_missing(h, node))
            return (int) node;
    }
    return -1;
}

static uint32_t count_missing(const hpct_agree_ports_host *h)
{
    uint32_t count = 0;
    for (uint32_t node = 0; node < h->num_nodes; node++)
        count += is_missing(h, node);
    return h->num_nodes > 0 ? count : h->serving.nodes;
}

/* Reports once the nodes that srun waits for. True when it waits no longer. */
static bool is_too_late(hpct_agree_ports_host *h, uint32_t missing)
{
    const int seconds = h->serving.seconds * (h->num_nodes > 0 ? 1 : 2);
    const int notice =
        seconds / 2 < HPCT_AGREE_PORTS_NOTICE ? seconds / 2 : HPCT_AGREE_PORTS_NOTICE;
    const int waited = (int) ((hpct_now_ms() - h->first_ms) / 1000);
    const bool over = waited >= seconds;
    if (!over && (h->noticed || waited < notice))
        return false;
    h->noticed = true;
    if (over)
        send_to_all(h, HPCT_NET_FRAME_LOST, missing, UINT32_MAX);
    const hpct_agree_ports_late late = {.first = missing,
                                        .count = count_missing(h),
                                        .waited = waited,
                                        .left = over ? 0 : seconds - waited};
    if (h->serving.late != NULL)
        h->serving.late(h->serving.context, &late);
    h->outcome = over ? HPCT_AGREE_PORTS_LATE : HPCT_AGREE_PORTS_PENDING;
    return over;
}

/* False, after telling the nodes, if a node lacks the network that was named. */
static bool choose_network(hpct_agree_ports_host *h)
{
    hpct_agree_network_node *nodes = calloc(h->num_nodes, sizeof *nodes);
    hpct_agree_network_part *parts = calloc(h->num_nodes, sizeof *parts);
    hpct_net_frame abort = {.type = HPCT_NET_FRAME_ABORT, .status = 1};
    hpct_status status = nodes == NULL || parts == NULL ? hpct_fail_memory(0) : HPCT_OK;
    for (uint32_t node = 0; status == HPCT_OK && node < h->num_nodes; node++)
        nodes[node] = h->members[node].network;
    h->network = (hpct_agree_network_decision){.parts = parts, .count = h->num_nodes};
    h->has_network = true;
    if (status == HPCT_OK)
        status = hpct_agree_network_choose(&h->serving.network, nodes, h->num_nodes, parts,
                                           &h->network.changes);
    free(nodes);
    if (status == HPCT_OK)
        h->num_frames = hpct_agree_network_count_frames(&h->network);
    else
        hpct_net_frame_set(abort.text, sizeof abort.text, hpct_last_error());
    for (uint32_t node = 0; status != HPCT_OK && node < h->num_nodes; node++, abort.status = 0)
        hpct_net_link_send(&h->members[node].link, &abort);
    return status == HPCT_OK;
}

/* Sends what the sockets accept; a link has room for a frame when it has sent the last. */
static void send_network(hpct_agree_ports_host *h)
{
    for (uint32_t node = 0; node < h->num_nodes; node++) {
        member *m = &h->members[node];
        hpct_net_frame frame;
        while (m->told && m->link.session.fd >= 0 && m->link.out_filled == 0 &&
               m->sent < h->num_frames) {
            hpct_agree_network_make_frame(&h->network, node, m->sent++, &frame);
            hpct_net_link_send(&m->link, &frame);
        }
    }
}

/* Advances the agreement as far as possible. True when everything has been sent. */
static bool go_on(hpct_agree_ports_host *h)
{
    int missing = find_missing(h), speaker = -1;
    if (h->num_nodes == 0)
        return h->serving.nodes > 0 && is_too_late(h, 0);
    if (missing < 0 && !h->has_network && !choose_network(h)) {
        h->outcome = HPCT_AGREE_PORTS_DONE;
        return true;
    }
    send_network(h);
    missing = find_missing(h);
    if (missing >= 0)
        return is_too_late(h, (uint32_t) missing);
    h->outcome = HPCT_AGREE_PORTS_DONE;
    for (uint32_t node = 0; h->choice >= 0 && node < h->num_nodes; node++) {
        if (h->members[node].held)
            continue;
        h->members[node].left &= ~(UINT64_C(1) << h->choice);
        speaker = (int) node;
    }
    if (h->choice >= 0 && speaker < 0) {
        send_to_all(h, HPCT_NET_FRAME_BYE, 0, UINT32_MAX);
        return true;
    }
    return !choose(h, speaker);
}

static void *serve(void *context)
{
    hpct_agree_ports_host *h = context;
    bool done = false;
    pthread_setname_np(pthread_self(), "hpc-train");
    while (!done) {
        h->polls[0] = (struct pollfd){.fd = h->stop, .events = POLLIN};
        h->polls[1] = (struct pollfd){.fd = hpct_net_acceptor_fd(h->acceptor), .events = POLLIN};
        for (uint32_t i = 0; i < h->num_members; i++) {
            const hpct_net_link *link = &h->members[i].link;
            h->polls[2 + i] = (struct pollfd){
                .fd = link->session.fd, .events = link->out_filled > 0 ? POLLIN | POLLOUT : POLLIN};
        }
        poll(h->polls, 2 + h->num_members, 1000);
        if (h->polls[0].revents != 0)
            break;
        take_guests(h);
        for (uint32_t node = 0; node < h->num_members; node++)
            receive_frames(h, node);
        done = go_on(h);
    }
    for (uint32_t i = 0; i < h->num_members; i++)
        leave(&h->members[i]);
    hpct_net_acceptor_free(h->acceptor); /* after this, nodes cannot connect any more */
    h->acceptor = NULL;
    if (done) /* all nodes have it */
        hpct_auth_key_forget(h->key);
    return NULL;
}

/* The port is random within the range, as Slurm chooses srun's own ports. */
hpct_status hpct_agree_ports_listen(int low, int high, int *fd, int *port)
{
    const unsigned count = (unsigned) (high - low + 1);
    unsigned first = 0;
    hpct_status status = HPCT_OK;
    if (getrandom(&first, sizeof first, 0) != (ssize_t) sizeof first)
        first = 0;
    for (unsigned i = 0; i < count; i++) {
        *port = low + (int) ((first % count + i) % count);
        status = hpct_net_link_listen(fd, port, "this machine", BACKLOG);
        if (status == HPCT_OK)
            return HPCT_OK;
    }
    return status;
}

static void free_host(hpct_agree_ports_host *h)
{
    hpct_net_acceptor_free(h->acceptor);
    if (h->stop >= 0)
        close(h->stop);
    free(h->members);
    free(h->polls);
    free(h->network.parts);
    hpct_auth_key_free(h->key);
    free(h);
}

hpct_status hpct_agree_ports_serve(hpct_agree_ports_host **out,
                                   const hpct_agree_ports_serving *serving, int *port)
{
    int fd = -1;
    hpct_agree_ports_host *h = calloc(1, sizeof *h);
    if (h == NULL)
        return hpct_fail_memory(sizeof *h);
    h->stop = -1;
    if (hpct_auth_key_new(&h->key) != HPCT_OK) {
        free_host(h);
        return HPCT_ERR_INTERNAL;
    }
    *h->key = *serving->key;
    h->auth = (hpct_auth){.key = h->key, .run = RUN};
    h->serving = *serving;
    h->first_ms = hpct_now_ms();
    h->choice = -1;
    h->stop = eventfd(0, EFD_CLOEXEC);
    hpct_status status = h->stop < 0 || !make_room(h, 2)
                             ? hpct_fail_memory(0)
                             : hpct_agree_ports_listen(serving->low, serving->high, &fd, port);
    if (status == HPCT_OK)
        status = hpct_net_acceptor_new(&h->acceptor, fd, &h->auth, 0);
    int error = status == HPCT_OK ? hpct_thread_start(&h->thread, serve, h) : 0;
    if (error != 0)
        status = hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started: %s", strerror(error));
    if (status != HPCT_OK) {
        free_host(h);
        return status;
    }
    *out = h;
    return HPCT_OK;
}

hpct_agree_ports_outcome hpct_agree_ports_serve_end(hpct_agree_ports_host *host)
{
    eventfd_write(host->stop, 1);
    pthread_join(host->thread, NULL);
    hpct_agree_ports_outcome outcome = host->outcome;
    free_host(host);
    return outcome;
}

/* ---- a node's side --------------------------------------------------------------------------- */

static void pause_a_little(void)
{
    unsigned some = 0;
    if (getrandom(&some, sizeof some, 0) != (ssize_t) sizeof some)
        some = AGAIN_MS;
    nanosleep(&(struct timespec){.tv_nsec = (1 + some % AGAIN_MS) * 1000000L}, NULL);
}

static hpct_status fail_silent(const hpct_agree_ports_ask *ask)
{
    return hpct_fail(HPCT_ERR_PEER,
                     "srun, at %s, has not said in %d seconds which ports the step is to have",
                     ask->address, ask->seconds);
}

static hpct_status fail_invalid(const hpct_agree_ports_ask *ask)
{
    return hpct_fail(HPCT_ERR_PEER, "srun, at %s, sent an invalid message", ask->address);
}

static hpct_status join(const hpct_agree_ports_ask *ask, const hpct_auth *auth, int64_t until_ms,
                        hpct_net_session *session)
{
    const int64_t began_ms = hpct_now_ms();
    for (;;) {
        int fd = -1;
        hpct_net_connecting connecting;
        hpct_status status = hpct_net_link_connect(&fd, ask->address, CONNECT_MS);
        if (status == HPCT_OK) {
            status = hpct_net_connecting_begin(&connecting, fd, auth, HPCT_AUTH_FOR_PORTS,
                                               (uint32_t) ask->node, 0);
            if (status != HPCT_OK)
                return status;
            int64_t left = until_ms - hpct_now_ms();
            if (hpct_net_connecting_wait(&connecting, left > 0 ? (int) left : 0, until_ms,
                                         session) == HPCT_NET_HANDSHAKE_DONE)
                return HPCT_OK;
        } else if (hpct_now_ms() - began_ms > CONNECT_MS) {
            return hpct_fail_within(HPCT_ERR_PEER, "agreement on ports through srun");
        }
        if (hpct_now_ms() >= until_ms)
            return fail_silent(ask);
        pause_a_little();
    }
}

static hpct_status receive(const hpct_agree_ports_ask *ask, hpct_net_link *link, int64_t until_ms,
                           hpct_net_frame *frame)
{
    for (;;) {
        hpct_net_link_flush(link);
        switch (hpct_net_link_receive(link, frame)) {
        case HPCT_NET_LINK_FRAME:
            return HPCT_OK;
        case HPCT_NET_LINK_NOTHING:
            break;
        case HPCT_NET_LINK_CLOSED:
        case HPCT_NET_LINK_GARBAGE:
            return hpct_fail(HPCT_ERR_PEER, "srun, at %s, is gone", ask->address);
        }
        int64_t left = until_ms - hpct_now_ms();
        if (left <= 0)
            return fail_silent(ask);
        struct pollfd waits = {.fd = link->session.fd, .events = POLLIN};
        poll(&waits, 1, (int) left);
    }
}

static hpct_status send_frame(const hpct_agree_ports_ask *ask, hpct_net_link *link,
                              int64_t until_ms, const hpct_net_frame *frame)
{
    hpct_net_link_send(link, frame);
    while (link->out_filled > 0 && link->session.fd >= 0) {
        const int64_t left = until_ms - hpct_now_ms();
        struct pollfd waits = {.fd = link->session.fd, .events = POLLOUT};
        if (left <= 0)
            return fail_silent(ask);
        poll(&waits, 1, (int) left);
        hpct_net_link_flush(link);
    }
    return HPCT_OK;
}

static hpct_status report_network(const hpct_agree_ports_ask *ask, hpct_net_link *link,
                                  int64_t until_ms)
{
    hpct_agree_network_node own;
    hpct_net_frame frame;
    hpct_status status = hpct_agree_network_look(&own, ask->num_nodes > 1);
    for (int i = 0; status == HPCT_OK && hpct_agree_network_make_report(&own, i, &frame); i++)
        status = send_frame(ask, link, until_ms, &frame);
    hpct_agree_network_node_free(&own);
    return status;
}

/* Receives the network, which srun sends first, and the next frame after it. */
static hpct_status receive_after_network(const hpct_agree_ports_ask *ask, hpct_net_link *link,
                                         int64_t until_ms, hpct_net_frame *heard)
{
    for (;;) {
        HPCT_TRY(receive(ask, link, until_ms, heard));
        if (heard->type != HPCT_NET_FRAME_NETWORK && heard->type != HPCT_NET_FRAME_ADDRESSES)
            return HPCT_OK;
        if (!hpct_agree_network_take_decision(ask->network, (uint32_t) ask->num_nodes, heard))
            return fail_invalid(ask);
    }
}

static hpct_status talk(const hpct_agree_ports_ask *ask, hpct_net_link *link, int64_t until_ms,
                        int *choice, bool *speaks)
{
    hpct_net_frame said = {.type = HPCT_NET_FRAME_HELLO, .rank = (uint32_t) ask->num_nodes}, heard;
    snprintf(said.text, sizeof said.text, "%" PRIx64, ask->free);
    hpct_net_frame_set(said.node, sizeof said.node, ask->names[ask->node]);
    *choice = -1;
    HPCT_TRY(report_network(ask, link, until_ms));
    for (;;) {
        HPCT_TRY(send_frame(ask, link, until_ms, &said));
        hpct_status status = receive_after_network(ask, link, until_ms, &heard);
        if (status != HPCT_OK)
            return status;
        if (heard.type == HPCT_NET_FRAME_BYE && *choice >= 0)
            return HPCT_OK;
        *speaks = heard.status == 1;
        ask->network->refused = heard.type == HPCT_NET_FRAME_ABORT && heard.text[0] != '\0';
        if (ask->network->refused)
            return hpct_fail(HPCT_ERR_CONFIG, "%s", heard.text);
        if (heard.type == HPCT_NET_FRAME_ABORT)
            return hpct_fail(HPCT_ERR_CONFIG, "no block of ports is free on all nodes of the step");
        if (heard.type == HPCT_NET_FRAME_LOST)
            return hpct_fail(HPCT_ERR_PEER,
                             "srun has waited %s seconds for %s, which has not prepared its tasks",
                             heard.text,
                             heard.rank < (uint32_t) ask->num_nodes ? ask->names[heard.rank] : "?");
        if (heard.type != HPCT_NET_FRAME_READY || heard.rank > 63 ||
            (ask->free >> heard.rank & 1) == 0)
            return fail_invalid(ask);
        *speaks = true;
        *choice = (int) heard.rank;
        said = (hpct_net_frame){.type = HPCT_NET_FRAME_ARRIVED,
                                .status = ask->hold(ask->context, *choice) ? 1 : 0};
    }
}

hpct_status hpct_agree_ports(const hpct_agree_ports_ask *ask, int *choice, bool *speaks)
{
    const int64_t until_ms = hpct_now_ms() + (int64_t) ask->seconds * 1000;
    const hpct_auth auth = {.key = ask->key, .run = RUN};
    hpct_net_session session;
    hpct_net_link link;
    *speaks = true;
    HPCT_TRY(join(ask, &auth, until_ms, &session));
    hpct_net_link_init(&link, &session);
    hpct_status status = talk(ask, &link, until_ms, choice, speaks);
    hpct_net_link_close(&link);
    return status;
}
