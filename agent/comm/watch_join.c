/* How the ranks come together under the watch: rank 0 takes connections until all have come, the
 * others try until rank 0 answers. Every wait here has a deadline. */
#include "agent/comm/watch_state.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_MS 2000
#define HELLO_MS 5000         /* a connection must have said hello, or welcome, by then */
#define FOREIGN_MS 10000      /* how long rank 0's port may be answered by somebody else */
#define FIRST_NOTICE_MS 10000 /* when to say for whom we wait, and how often after that */
#define NOTICE_MS 60000

const char *hpct_watch_node_of(const hpct_watch *watch, int rank)
{
    return watch->options.rank_nodes == NULL ? "its node" : watch->options.rank_nodes[rank];
}

/* ---- rank 0 ---- */

void hpct_watch_accept(hpct_watch *watch, int64_t now)
{
    for (int i = 0; i < watch->num_members; i++) {
        hpct_member *member = &watch->members[i];
        if (member->link.fd >= 0)
            continue;
        int fd = accept4(watch->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        hpct_link_init(&member->link, fd);
        member->rank = -1;
        member->left = false;
        member->heard_ms = now;
    }
}

static bool has_come(const hpct_watch *watch, int rank)
{
    for (int i = 0; i < watch->num_members; i++) {
        if (watch->members[i].link.fd >= 0 && watch->members[i].rank == rank)
            return true;
    }
    return false;
}

void hpct_watch_hello(hpct_watch *watch, hpct_member *member, const hpct_frame *frame)
{
    hpct_frame welcome = {.type = HPCT_FRAME_WELCOME};
    if (frame->type != HPCT_FRAME_HELLO || frame->rank == 0 ||
        frame->rank >= (uint32_t) watch->options.size || has_come(watch, (int) frame->rank)) {
        hpct_link_close(&member->link);
        return;
    }
    member->rank = (int) frame->rank;
    memcpy(member->node, frame->node, sizeof member->node);
    watch->here++;
    memcpy(welcome.node, watch->node, sizeof welcome.node);
    hpct_link_send(&member->link, &welcome, watch->options.token);
}

static void say_who_is_missing(const hpct_watch *watch)
{
    char line[400];
    int length = snprintf(line, sizeof line, "hpc-train: waiting for %d of %d ranks:",
                          watch->options.size - 1 - watch->here, watch->options.size);
    int named = 0;
    for (int rank = 1; rank < watch->options.size && named < 4; rank++) {
        if (has_come(watch, rank))
            continue;
        length += snprintf(line + length, sizeof line - (size_t) length, "%s rank %d (%.60s)",
                           named++ > 0 ? "," : "", rank, hpct_watch_node_of(watch, rank));
    }
    fprintf(stderr, "%s%s\n", line, named < watch->options.size - 1 - watch->here ? ", …" : "");
}

bool hpct_watch_still_joining(hpct_watch *watch, int64_t now, hpct_frame *missing)
{
    if (now - watch->join_began_ms >= (int64_t) watch->options.join_seconds * 1000) {
        int rank = 1;
        while (has_come(watch, rank))
            rank++;
        *missing = (hpct_frame){.type = HPCT_FRAME_LOST, .rank = (uint32_t) rank};
        hpct_frame_set(missing->node, sizeof missing->node, hpct_watch_node_of(watch, rank));
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
        say_who_is_missing(watch);
        watch->notice_ms = now + NOTICE_MS;
    }
    return true;
}

/* ---- the others ---- */

/* Says hello on a fresh connection and waits for the answer. */
static bool greet(hpct_watch *watch, int fd)
{
    hpct_member *zero = &watch->members[0];
    hpct_frame hello = {.type = HPCT_FRAME_HELLO, .rank = (uint32_t) watch->options.rank}, answer;
    int64_t deadline = hpct_link_now_ms() + HELLO_MS;
    memcpy(hello.node, watch->node, sizeof hello.node);
    hpct_link_init(&zero->link, fd);
    hpct_link_send(&zero->link, &hello, watch->options.token);
    for (int64_t now = hpct_link_now_ms(); now < deadline; now = hpct_link_now_ms()) {
        struct pollfd poller = {.fd = fd, .events = POLLIN};
        hpct_link_flush(&zero->link);
        poll(&poller, 1, (int) (deadline - now));
        hpct_link_result result = hpct_link_receive(&zero->link, &answer, watch->options.token);
        if (result == HPCT_LINK_FRAME && answer.type == HPCT_FRAME_WELCOME) {
            zero->rank = 0;
            zero->heard_ms = hpct_link_now_ms();
            memcpy(zero->node, answer.node, sizeof zero->node);
            return true;
        }
        if (result != HPCT_LINK_NOTHING)
            break;
    }
    hpct_link_close(&zero->link);
    return false;
}

hpct_status hpct_watch_reach(hpct_watch *watch)
{
    const hpct_watch_options *options = &watch->options;
    int64_t began = hpct_link_now_ms(), foreign_since = 0, now = began;
    bool said = false;
    for (int wait_ms = 20;; wait_ms = wait_ms < 500 ? 2 * wait_ms : 500) {
        const char *foreign = NULL;
        for (int i = 0; i < options->num_addresses; i++) {
            int fd;
            hpct_status status = hpct_link_connect(&fd, options->addresses[i], CONNECT_MS);
            if (status == HPCT_ERR_CONFIG)
                return status;
            if (status != HPCT_OK)
                continue;
            if (greet(watch, fd))
                return HPCT_OK;
            foreign = options->addresses[i];
        }
        now = hpct_link_now_ms();
        if (foreign == NULL)
            foreign_since = 0;
        else if (foreign_since == 0)
            foreign_since = now;
        else if (now - foreign_since > FOREIGN_MS)
            return hpct_fail(HPCT_ERR_CONFIG,
                             "%s is answered by another program, not by rank 0 of this run: choose "
                             "another port with --hpc-train-port=PORT or --hpc-train-port=LO-HI",
                             foreign);
        if (now - began >= (int64_t) options->join_seconds * 1000)
            return hpct_fail(
                HPCT_ERR_PEER, "rank 0 on %s was lost: it did not come within %d s (tried %s)",
                hpct_watch_node_of(watch, 0), options->join_seconds, options->addresses[0]);
        if (!said && now - began >= FIRST_NOTICE_MS && options->rank == 1) {
            fprintf(stderr, "hpc-train: waiting for rank 0 (%s) at %s\n",
                    hpct_watch_node_of(watch, 0), options->addresses[0]);
            said = true;
        }
        usleep((useconds_t) wait_ms * 1000);
    }
}
