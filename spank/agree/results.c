/* Each connection carries one heartbeat frame (base/net/frame.h), HELLO or BYE (rank: number of
 * nodes, status and text: result), and BYE in reply. Handled one after the other, as they are
 * short. */
#include "spank/agree/results.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/auth/forget.h"
#include "base/net/acceptor.h"
#include "base/net/link.h"
#include "base/status.h"
#include "base/thread.h"
#include "spank/agree/ports_agree.h"

#define RUN "results"   /* only the key identifies the step */
#define MAX_NODES 65536 /* Slurm's own limit */
#define HEAR_MS 2000
#define CONNECT_MS 2000
#define AGAIN_MS 50

_Static_assert(HPCT_SPEC_OUT_ENTRIES < HPCT_NET_FRAME_TEXT, "a frame has a letter for each entry");

enum { SILENT, BEGUN, ENDED };

struct hpct_agree_results_host {
    hpct_auth_key *key; /* not in core dumps */
    hpct_auth auth;
    hpct_net_acceptor *acceptor;
    int stop; /* eventfd */
    pthread_t thread;
    hpct_agree_results_sum sum;
    uint32_t begun;           /* nodes that have reported */
    uint8_t state[MAX_NODES]; /* index: node */
};

static hpct_net_link_result receive(hpct_net_link *link, int64_t until_ms, hpct_net_frame *frame)
{
    for (;;) {
        hpct_net_link_flush(link);
        hpct_net_link_result result = hpct_net_link_receive(link, frame);
        int64_t left = until_ms - hpct_now_ms();
        if (result != HPCT_NET_LINK_NOTHING || left <= 0)
            return result;
        struct pollfd waits = {.fd = link->session.fd, .events = POLLIN};
        poll(&waits, 1, (int) left);
    }
}

/* ---- srun's side ----------------------------------------------------------------------------- */

static void count_result(hpct_agree_results_host *h, uint32_t node, const hpct_net_frame *frame)
{
    hpct_agree_results_sum *sum = &h->sum;
    if (frame->rank > sum->nodes && frame->rank <= MAX_NODES)
        sum->nodes = frame->rank;
    if (h->state[node] == SILENT) {
        h->state[node] = BEGUN;
        if (++h->begun == sum->nodes) /* all nodes have the key */
            hpct_auth_key_forget(h->key);
    }
    if (frame->type != HPCT_NET_FRAME_BYE || h->state[node] == ENDED)
        return;
    h->state[node] = ENDED;
    sum->ended++;
    if (sum->status == HPCT_OK)
        sum->status = (hpct_status) frame->status;
    for (int i = 0; i < HPCT_SPEC_OUT_ENTRIES && frame->text[i] != '\0'; i++) {
        if (frame->text[i] == '1' && sum->have[i]++ == 0)
            hpct_net_frame_set(sum->where[i], sizeof sum->where[i], frame->node);
    }
}

static void receive_result(hpct_agree_results_host *h, const hpct_net_guest *guest,
                           hpct_net_session *session)
{
    hpct_net_link link;
    hpct_net_frame frame;
    hpct_net_link_init(&link, session);
    if (receive(&link, hpct_now_ms() + HEAR_MS, &frame) == HPCT_NET_LINK_FRAME) {
        count_result(h, guest->from, &frame);
        hpct_net_link_send(&link, &(hpct_net_frame){.type = HPCT_NET_FRAME_BYE});
        hpct_net_link_flush(&link);
    }
    hpct_net_link_close(&link);
}

static void *serve(void *context)
{
    hpct_agree_results_host *h = context;
    struct pollfd polls[2] = {{.fd = h->stop, .events = POLLIN},
                              {.fd = hpct_net_acceptor_fd(h->acceptor), .events = POLLIN}};
    pthread_setname_np(pthread_self(), "hpc-train");
    while (polls[0].revents == 0) {
        hpct_net_guest guest;
        hpct_net_session session;
        poll(polls, 2, 1000);
        while (hpct_net_acceptor_next(h->acceptor, &guest)) {
            if (guest.purpose != HPCT_AUTH_FOR_RESULTS || guest.from >= MAX_NODES)
                hpct_net_guest_refuse(&guest);
            else if (hpct_net_guest_accept(&guest, &session))
                receive_result(h, &guest, &session);
        }
    }
    return NULL;
}

static void free_host(hpct_agree_results_host *h)
{
    hpct_net_acceptor_free(h->acceptor);
    if (h->stop >= 0)
        close(h->stop);
    hpct_auth_key_free(h->key);
    free(h);
}

hpct_status hpct_agree_results_serve(hpct_agree_results_host **out, const hpct_auth_key *key,
                                     int low, int high, int *port)
{
    int fd = -1;
    hpct_agree_results_host *h = calloc(1, sizeof *h);
    if (h == NULL)
        return hpct_fail_memory(sizeof *h);
    h->stop = -1;
    if (hpct_auth_key_new(&h->key) != HPCT_OK) {
        free_host(h);
        return HPCT_ERR_INTERNAL;
    }
    *h->key = *key;
    h->auth = (hpct_auth){.key = h->key, .run = RUN};
    h->stop = eventfd(0, EFD_CLOEXEC);
    hpct_status status =
        h->stop < 0 ? hpct_fail_memory(0) : hpct_agree_ports_listen(low, high, &fd, port);
    if (status == HPCT_OK)
        status = hpct_net_acceptor_new(&h->acceptor, fd, &h->auth, 0);
    int error = status == HPCT_OK ? hpct_thread_start(&h->thread, serve, h) : 0;
    if (error != 0)
        status = hpct_fail(HPCT_ERR_INTERNAL, "no thread can be started: %s", strerror(error));
    if (status != HPCT_OK)
        free_host(h);
    else
        *out = h;
    return status;
}

void hpct_agree_results_end(hpct_agree_results_host *host, hpct_agree_results_sum *sum)
{
    eventfd_write(host->stop, 1);
    pthread_join(host->thread, NULL);
    *sum = host->sum;
    free_host(host);
}

/* ---- a node's side --------------------------------------------------------------------------- */

/* *gone: connection refused, so srun has stopped listening; a busy srun lets connections wait, and
 * the network may be down for a moment. */
static bool tell_once(const hpct_agree_results_way *way, const hpct_auth *auth,
                      const hpct_net_frame *said, int64_t until_ms, bool *gone)
{
    int fd = -1;
    hpct_net_connecting connecting;
    hpct_net_session session;
    hpct_net_link link;
    hpct_net_frame heard;
    if (hpct_net_link_connect(&fd, way->address, CONNECT_MS) != HPCT_OK) {
        *gone = errno == ECONNREFUSED;
        return false;
    }
    if (hpct_net_connecting_begin(&connecting, fd, auth, HPCT_AUTH_FOR_RESULTS, way->node, 0) !=
            HPCT_OK ||
        hpct_net_connecting_wait(&connecting, CONNECT_MS, until_ms, &session) !=
            HPCT_NET_HANDSHAKE_DONE)
        return false;
    hpct_net_link_init(&link, &session);
    hpct_net_link_send(&link, said);
    bool answered =
        receive(&link, until_ms, &heard) == HPCT_NET_LINK_FRAME && heard.type == HPCT_NET_FRAME_BYE;
    hpct_net_link_close(&link);
    return answered;
}

bool hpct_agree_results_tell(const hpct_agree_results_way *way, hpct_status status,
                             const char *there, double seconds)
{
    const int64_t until_ms = hpct_now_ms() + (int64_t) (seconds * 1000);
    const hpct_auth auth = {.key = way->key, .run = RUN};
    hpct_net_frame said = {.type = there == NULL ? HPCT_NET_FRAME_HELLO : HPCT_NET_FRAME_BYE,
                           .rank = way->nodes,
                           .status = (uint8_t) status};
    hpct_net_frame_set(said.text, sizeof said.text, there == NULL ? "" : there);
    hpct_net_frame_set(said.node, sizeof said.node, way->name);
    bool gone = false;
    do {
        if (tell_once(way, &auth, &said, until_ms, &gone))
            return true;
        if (gone)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000L}, NULL);
    } while (hpct_now_ms() < until_ms);
    return false;
}
