/* Connecting the watches: rank 0 accepts connections until all ranks are connected, the others
 * retry until rank 0 answers. All waits have a timeout. A rank counts as connected once it is
 * authenticated; a connection that breaks before does not count. */
#include "agent/comm/gone.h"
#include "agent/comm/watch_state.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 2000
#define ANSWER_MS 5000         /* for rank 0 to authenticate */
#define GONE_MS 10000          /* rank 0 was seen, and its port has been closed since: it ended */
#define ENDED_MS 2000          /* after the plugin's signal: frames may still arrive */
#define OTHER_PROGRAM_MS 10000 /* another program answers at rank 0's port */
#define UNANSWERED_MS 20000    /* connections are accepted, not answered: rank 0 may be stopped */
#define FIRST_NOTICE_MS 10000  /* time until missing ranks are printed; then every NOTICE_MS */
#define NOTICE_MS 60000

/* A rank's node as far as known while connecting, such as "node1"; else "its node". */
static const char *node_of(const hpct_comm_watch *watch, int rank)
{
    return watch->options.rank_nodes == NULL ? "its node" : watch->options.rank_nodes[rank];
}

/* Each side first sends its node's name. */
static void begin(hpct_comm_watch *watch, hpct_comm_member *member, int rank,
                  const hpct_net_session *session)
{
    hpct_net_frame hello = {.type = HPCT_NET_FRAME_HELLO};
    memcpy(hello.node, watch->node, sizeof hello.node);
    hpct_net_link_init(&member->link, session);
    member->rank = rank;
    member->left = false;
    member->heard_ms = hpct_now_ms();
    member->silence_ms = watch->options.silence_ms > 0
                             ? watch->options.silence_ms
                             : hpct_net_link_silence_ms(session->fd, HPCT_NET_LINK_OUTAGE_MS);
    hpct_net_frame_set(member->node, sizeof member->node, node_of(watch, rank));
    hpct_net_link_send(&member->link, &hello);
}

/* ---- rank 0 ---- */

static bool is_connected(const hpct_comm_watch *watch, int rank)
{
    for (int i = 0; i < watch->num_members; i++) {
        if (watch->members[i].link.session.fd >= 0 && watch->members[i].rank == rank)
            return true;
    }
    return false;
}

void hpct_comm_watch_accept(hpct_comm_watch *watch)
{
    hpct_net_guest guest;
    while (hpct_net_acceptor_next(watch->acceptor, &guest)) {
        hpct_net_session session;
        if (guest.purpose != HPCT_AUTH_FOR_WATCH || guest.from == 0 ||
            guest.from >= (uint32_t) watch->options.size || is_connected(watch, (int) guest.from))
            hpct_net_guest_refuse(&guest);
        else if (hpct_net_guest_accept(&guest, &session))
            begin(watch, &watch->members[watch->here++], (int) guest.from, &session);
    }
}

static void print_missing(const hpct_comm_watch *watch)
{
    char line[400];
    int length = snprintf(line, sizeof line, "hpc-train: waiting for %d of %d ranks:",
                          watch->options.size - 1 - watch->here, watch->options.size);
    int named = 0;
    for (int rank = 1; rank < watch->options.size && named < 4; rank++) {
        if (is_connected(watch, rank))
            continue;
        length += snprintf(line + length, sizeof line - (size_t) length, "%s rank %d (%.60s)",
                           named++ > 0 ? "," : "", rank, node_of(watch, rank));
    }
    fprintf(stderr, "%s%s\n", line, named < watch->options.size - 1 - watch->here ? ", …" : "");
}

bool hpct_comm_watch_still_joining(hpct_comm_watch *watch, int64_t now, hpct_net_frame *missing)
{
    if (now - watch->join_began_ms >= (int64_t) watch->options.join_seconds * 1000) {
        int rank = 1;
        while (is_connected(watch, rank))
            rank++;
        *missing = (hpct_net_frame){.type = HPCT_NET_FRAME_LOST, .rank = (uint32_t) rank};
        hpct_net_frame_set(missing->node, sizeof missing->node, node_of(watch, rank));
        snprintf(missing->text, sizeof missing->text, "it did not come within %d s",
                 watch->options.join_seconds);
        int others = watch->options.size - 1 - watch->here - 1;
        if (others > 0)
            snprintf(missing->text, sizeof missing->text,
                     "it did not come within %d s, and %d more did not",
                     watch->options.join_seconds, others);
        return false;
    }
    if (watch->notice_ms == 0)
        watch->notice_ms = watch->join_began_ms + FIRST_NOTICE_MS;
    if (now >= watch->notice_ms) {
        print_missing(watch);
        watch->notice_ms = now + NOTICE_MS;
    }
    return true;
}

/* ---- other ranks ---- */

/* Results of the attempts to reach rank 0. */
typedef struct search {
    int64_t answered_ms;            /* last time that rank 0 has answered; 0: never */
    int64_t ended_since_ms;         /* time of the plugin's signal that it has ended; 0: none */
    int64_t other_program_since_ms; /* since when another program answers; 0: none does */
    const char *other_program;      /* its address */
    int64_t unanswered_since_ms;    /* since when a port is open without an answer; 0: it is not */
    const char *unanswered;
} search;

/* One attempt at one address. */
static hpct_status try_address(hpct_comm_watch *watch, const char *address, int64_t until_ms,
                               search *found, bool *joined)
{
    hpct_net_connecting connecting;
    hpct_net_session session;
    int fd;
    hpct_status status = hpct_net_link_connect(&fd, address, CONNECT_MS);
    if (status == HPCT_OK)
        status = hpct_net_connecting_begin(&connecting, fd, watch->options.auth,
                                           HPCT_AUTH_FOR_WATCH, (uint32_t) watch->options.rank, 0);
    if (status != HPCT_OK)
        return status == HPCT_ERR_PEER ? HPCT_OK : status;
    switch (hpct_net_connecting_wait(&connecting, ANSWER_MS, until_ms, &session)) {
    case HPCT_NET_HANDSHAKE_DONE:
        begin(watch, &watch->members[0], 0, &session);
        *joined = true;
        break;
    case HPCT_NET_HANDSHAKE_LEFT:
        found->answered_ms = hpct_now_ms();
        break;
    case HPCT_NET_HANDSHAKE_FOREIGN:
        found->other_program = address;
        break;
    case HPCT_NET_HANDSHAKE_WAIT:
        found->unanswered = address;
        break;
    }
    return HPCT_OK;
}

static hpct_status lost_zero(const hpct_comm_watch *watch, const char *how)
{
    return hpct_fail(HPCT_ERR_PEER, "rank 0 on %s was lost: %s (tried %s)", node_of(watch, 0), how,
                     watch->options.addresses[0]);
}

/* Sets *since_ms to the time since when `so` is true; 0: false. */
static void count_from(int64_t *since_ms, bool so, int64_t now)
{
    if (!so)
        *since_ms = 0;
    else if (*since_ms == 0)
        *since_ms = now;
}

/* Whether to retry after all addresses have failed. */
static hpct_status check_search(const hpct_comm_watch *watch, search *found, int64_t now,
                                int64_t until_ms)
{
    char how[64];
    count_from(&found->ended_since_ms, hpct_comm_gone_is_zero(), now);
    count_from(&found->other_program_since_ms, found->other_program != NULL, now);
    count_from(&found->unanswered_since_ms, found->unanswered != NULL, now);
    if (found->unanswered != NULL && now - found->unanswered_since_ms > UNANSWERED_MS)
        return lost_zero(watch, "its port takes connections, and nobody answers there: it is "
                                "stopped, or another program has the port");
    if (found->other_program != NULL && now - found->other_program_since_ms > OTHER_PROGRAM_MS)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "%s is answered by another program, not by rank 0 of this run: choose "
                         "another port with --hpc-train-port=PORT or --hpc-train-port=LO-HI",
                         found->other_program);
    if ((found->answered_ms != 0 && now - found->answered_ms > GONE_MS) ||
        (found->ended_since_ms != 0 && now - found->ended_since_ms > ENDED_MS))
        return lost_zero(watch, "it ended before all ranks had come");
    snprintf(how, sizeof how, "it did not come within %d s", watch->options.join_seconds);
    return now >= until_ms ? lost_zero(watch, how) : HPCT_OK;
}

static hpct_status search_zero(hpct_comm_watch *watch)
{
    const hpct_comm_watch_options *options = &watch->options;
    int64_t began = hpct_now_ms();
    int64_t until_ms = began + (int64_t) options->join_seconds * 1000;
    search found = {0};
    bool said = false, joined = false;
    for (int wait_ms = 20;; wait_ms = wait_ms < 500 ? 2 * wait_ms : 500) {
        hpct_status status = HPCT_OK;
        found.other_program = found.unanswered = NULL;
        for (int i = 0; i < options->num_addresses && status == HPCT_OK && !joined; i++)
            status = try_address(watch, options->addresses[i], until_ms, &found, &joined);
        int64_t now = hpct_now_ms();
        if (status == HPCT_OK && !joined)
            status = check_search(watch, &found, now, until_ms);
        if (joined || status != HPCT_OK)
            return status;
        if (!said && now - began >= FIRST_NOTICE_MS && options->rank == 1) {
            fprintf(stderr, "hpc-train: waiting for rank 0 (%s) at %s\n", node_of(watch, 0),
                    options->addresses[0]);
            said = true;
        }
        usleep((useconds_t) wait_ms * 1000);
    }
}

hpct_status hpct_comm_watch_reach(hpct_comm_watch *watch)
{
    hpct_comm_gone_begin();
    hpct_status status = search_zero(watch);
    hpct_comm_gone_end();
    return status;
}
