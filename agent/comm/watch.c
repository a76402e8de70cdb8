/* The watch's thread: waits in poll, sends and receives heartbeats, and ends the process when the
 * run cannot continue. */
#include "agent/comm/watch.h"

#include "agent/comm/watch_state.h"
#include "base/status.h"
#include "base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINGER_MS 1000     /* time for others to read our last frames */
#define JUMP_MS 500        /* poll returned so late: this process was not running */
#define FRAMES_PER_TURN 16 /* per connection, so that none starves the others */

static bool is_zero(const hpct_comm_watch *watch)
{
    return watch->options.rank == 0;
}

/* Sends to every connected member except `except`. */
static void tell_all(hpct_comm_watch *watch, const hpct_net_frame *frame,
                     const hpct_comm_member *except)
{
    for (int i = 0; i < watch->num_members; i++) {
        hpct_comm_member *member = &watch->members[i];
        if (member != except && member->link.session.fd >= 0)
            hpct_net_link_send(&member->link, frame);
    }
}

/* Makes sure that the last frames arrive: closing a socket with unread input would reset the
 * connection and discard them. Returns early when all peers have closed. */
static void linger(hpct_comm_watch *watch)
{
    int64_t deadline = hpct_now_ms() + LINGER_MS;
    char discarded[1024];
    for (int i = 0; i < watch->num_members; i++) {
        hpct_net_link *link = &watch->members[i].link;
        hpct_net_link_flush(link);
        if (link->session.fd >= 0)
            shutdown(link->session.fd, SHUT_WR);
    }
    for (int64_t now = hpct_now_ms(); now < deadline; now = hpct_now_ms()) {
        nfds_t open = 0;
        for (int i = 0; i < watch->num_members; i++) {
            hpct_net_link *link = &watch->members[i].link;
            if (link->session.fd < 0)
                continue;
            ssize_t got;
            while ((got = recv(link->session.fd, discarded, sizeof discarded, MSG_DONTWAIT)) > 0)
                ;
            if (got == 0 || (errno != EAGAIN && errno != EINTR))
                hpct_net_link_close(link);
            else
                watch->polls[open++] = (struct pollfd){.fd = link->session.fd, .events = POLLIN};
        }
        if (open == 0)
            return;
        poll(watch->polls, open, (int) (deadline - now));
    }
}

static void *print_line(void *line)
{
    dprintf(STDERR_FILENO, "%s%s\n", isatty(STDERR_FILENO) ? "\n" : "", (char *) line);
    free(line);
    return NULL;
}

void hpct_comm_watch_say(const char *line, int patience_ms)
{
    pthread_t thread;
    char *copy = strdup(line);
    if (copy == NULL)
        return;
    if (hpct_thread_start(&thread, print_line, copy) != 0) {
        free(copy);
        return;
    }
    const int64_t until = hpct_now_ms() + patience_ms;
    int error = patience_ms == 0 ? EBUSY : pthread_tryjoin_np(thread, NULL);
    for (; error == EBUSY && hpct_now_ms() < until; error = pthread_tryjoin_np(thread, NULL))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (error != 0)
        pthread_detach(thread);
}

/* The run cannot continue. While connecting, hpct_comm_watch_start returns the error; later the
 * process exits, as the main thread may be blocked in a collective. */
static void give_up(hpct_comm_watch *watch, hpct_status status, const char *text)
{
    if (watch->phase == HPCT_COMM_WATCH_JOINING) {
        linger(watch);
        pthread_mutex_lock(&watch->mutex);
        watch->failure = status;
        snprintf(watch->failure_text, sizeof watch->failure_text, "%s", text);
        pthread_cond_signal(&watch->changed);
        pthread_mutex_unlock(&watch->mutex);
        watch->phase = HPCT_COMM_WATCH_DONE;
        return;
    }
    char line[700];
    snprintf(line, sizeof line, "hpc-train: rank %d (%s): %s; ending with exit code %d",
             watch->options.rank, watch->node, text, (int) status);
    hpct_comm_watch_say(line, LINGER_MS);
    linger(watch);
    /* NCCL's communicators are not aborted: kernels that wait for a peer would then end without a
     * sum, and the step would continue. The driver ends them with the process. */
    if (watch->end_step && watch->options.end_step != NULL)
        watch->options.end_step((int) status);
    _exit((int) status);
}

/* A silent rank may be stopped, not dead: it would keep the step and its node allocated. One rank
 * makes the launcher kill it, after the others have exited with their own exit codes. */
static bool is_silent_ones_judge(const hpct_comm_watch *watch, uint32_t silent)
{
    return watch->options.rank == (silent == 0 ? 1 : 0);
}

static void give_up_lost(hpct_comm_watch *watch, const hpct_net_frame *lost)
{
    char text[512];
    watch->end_step = lost->status != 0 && is_silent_ones_judge(watch, lost->rank);
    if (lost->rank == (uint32_t) watch->options.rank)
        snprintf(text, sizeof text, "the other ranks have given up this one: %s", lost->text);
    else
        snprintf(text, sizeof text, "rank %u on %s was lost: %s", lost->rank, lost->node,
                 lost->text);
    give_up(watch, HPCT_ERR_PEER, text);
}

static void give_up_aborted(hpct_comm_watch *watch, const hpct_net_frame *frame)
{
    char text[512];
    if (frame->status == 0) { /* no rank is to blame */
        give_up(watch, HPCT_ERR_PEER, frame->text);
        return;
    }
    snprintf(text, sizeof text, "rank %u on %s ended: %s", frame->rank, frame->node, frame->text);
    give_up(watch, (hpct_status) frame->status, text);
}

static void lose(hpct_comm_watch *watch, hpct_comm_member *member, const char *how, bool silent)
{
    hpct_net_frame lost = {
        .type = HPCT_NET_FRAME_LOST, .rank = (uint32_t) member->rank, .status = silent ? 1 : 0};
    memcpy(lost.node, member->node, sizeof lost.node);
    hpct_net_frame_set(lost.text, sizeof lost.text, how);
    if (is_zero(watch))
        tell_all(watch, &lost, NULL); /* also to the silent one: it may resume */
    give_up_lost(watch, &lost);
}

static void set_joined(hpct_comm_watch *watch)
{
    watch->phase = HPCT_COMM_WATCH_RUNNING;
    pthread_mutex_lock(&watch->mutex);
    watch->joined = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
}

static void set_met(hpct_comm_watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    watch->meeting = false;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
}

/* ---- received frames ---- */

static void heard_by_zero(hpct_comm_watch *watch, hpct_comm_member *member, hpct_net_frame *frame)
{
    if (frame->type == HPCT_NET_FRAME_HELLO) {
        memcpy(member->node, frame->node, sizeof member->node);
    } else if (frame->type == HPCT_NET_FRAME_BEAT) {
        hpct_comm_watch_gained(&member->gain, (hpct_waits) frame->status, frame->rank,
                               member->heard_ms);
    } else if (frame->type == HPCT_NET_FRAME_ARRIVED) {
        watch->arrived++;
    } else if (frame->type == HPCT_NET_FRAME_BYE && !member->left) {
        member->left = true;
        watch->left++;
    } else if (frame->type == HPCT_NET_FRAME_ABORT) {
        frame->rank = (uint32_t) member->rank;
        memcpy(frame->node, member->node, sizeof frame->node);
        tell_all(watch, frame, member);
        give_up_aborted(watch, frame);
    }
}

static void heard_from_zero(hpct_comm_watch *watch, const hpct_net_frame *frame)
{
    if (frame->type == HPCT_NET_FRAME_HELLO)
        memcpy(watch->members[0].node, frame->node, sizeof frame->node);
    else if (frame->type == HPCT_NET_FRAME_READY && watch->phase == HPCT_COMM_WATCH_JOINING)
        set_joined(watch);
    else if (frame->type == HPCT_NET_FRAME_ARRIVED && watch->arrival_told) {
        watch->arrival_told = false;
        set_met(watch);
    } else if (frame->type == HPCT_NET_FRAME_LOST)
        give_up_lost(watch, frame);
    else if (frame->type == HPCT_NET_FRAME_ABORT)
        give_up_aborted(watch, frame);
    else if (frame->type == HPCT_NET_FRAME_BYE && watch->phase == HPCT_COMM_WATCH_CLOSING)
        watch->phase = HPCT_COMM_WATCH_DONE;
}

static void receive(hpct_comm_watch *watch, hpct_comm_member *member, int64_t now)
{
    for (int i = 0; i < FRAMES_PER_TURN && member->link.session.fd >= 0; i++) {
        hpct_net_frame frame;
        hpct_net_link_result result = hpct_net_link_receive(&member->link, &frame);
        if (result == HPCT_NET_LINK_NOTHING || watch->phase == HPCT_COMM_WATCH_DONE)
            return;
        if (result == HPCT_NET_LINK_FRAME) {
            member->heard_ms = now;
            if (is_zero(watch))
                heard_by_zero(watch, member, &frame);
            else
                heard_from_zero(watch, &frame);
        } else {
            hpct_net_link_close(&member->link);
            if (!member->left)
                lose(watch, member,
                     result == HPCT_NET_LINK_CLOSED
                         ? "its connection closed (the process was killed or ended early)"
                         : "it sent what no rank of this run sends",
                     false);
        }
    }
}

/* ---- once per poll ---- */

static void join_turn(hpct_comm_watch *watch, int64_t now)
{
    hpct_net_frame missing, ready = {.type = HPCT_NET_FRAME_READY};
    if (watch->here == watch->options.size - 1) {
        hpct_net_acceptor_free(watch->acceptor);
        watch->acceptor = NULL;
        tell_all(watch, &ready, NULL);
        set_joined(watch);
    } else if (!hpct_comm_watch_still_joining(watch, now, &missing)) {
        tell_all(watch, &missing, NULL);
        give_up_lost(watch, &missing);
    }
}

/* This rank is at the barrier. */
static void attend(hpct_comm_watch *watch)
{
    hpct_net_frame arrived = {.type = HPCT_NET_FRAME_ARRIVED};
    if (is_zero(watch) && watch->arrived == watch->here) {
        watch->arrived = 0;
        tell_all(watch, &arrived, NULL);
        set_met(watch);
    } else if (!is_zero(watch) && !watch->arrival_told) {
        watch->arrival_told = true;
        tell_all(watch, &arrived, NULL);
    }
}

static void serve_requests(hpct_comm_watch *watch)
{
    hpct_net_frame bye = {.type = HPCT_NET_FRAME_BYE};
    pthread_mutex_lock(&watch->mutex);
    bool meeting = watch->meeting;
    bool stop = watch->stop_requested, abort = watch->abort_requested;
    pthread_mutex_unlock(&watch->mutex);
    if (meeting)
        attend(watch);
    if (abort) {
        tell_all(watch, &watch->abort_frame, NULL);
        linger(watch);
        watch->phase = HPCT_COMM_WATCH_DONE;
    } else if (stop && watch->phase == HPCT_COMM_WATCH_RUNNING) {
        watch->phase = HPCT_COMM_WATCH_CLOSING;
        if (!is_zero(watch))
            tell_all(watch, &bye, NULL);
    }
    if (watch->phase == HPCT_COMM_WATCH_CLOSING && is_zero(watch) && watch->left == watch->here) {
        tell_all(watch, &bye, NULL);
        linger(watch);
        watch->phase = HPCT_COMM_WATCH_DONE;
    }
}

/* Whether no rank of another node is heard, of several: then it is this node that is cut off. */
static bool is_cut_off(const hpct_comm_watch *watch, int64_t now)
{
    int others = 0;
    for (int i = 0; i < watch->num_members; i++) {
        const hpct_comm_member *member = &watch->members[i];
        if (member->left || strcmp(member->node, watch->node) == 0)
            continue;
        if (now - member->heard_ms < member->silence_ms / 2)
            return false;
        others++;
    }
    return others > 1;
}

static void judge_silence(hpct_comm_watch *watch, int64_t now)
{
    char how[HPCT_NET_FRAME_TEXT];
    for (int i = 0; i < watch->num_members && watch->phase != HPCT_COMM_WATCH_DONE; i++) {
        hpct_comm_member *member = &watch->members[i];
        if (member->link.session.fd < 0 || member->left ||
            now - member->heard_ms <= member->silence_ms)
            continue;
        if (is_cut_off(watch, now))
            snprintf(
                how, sizeof how,
                "no heartbeat for more than 6 s, nor from any other node: the network of %.40s "
                "may be down",
                watch->node);
        else
            snprintf(how, sizeof how, HPCT_NET_LINK_SILENCE);
        lose(watch, member, how, true);
    }
}

/* Errors that the communicator reports itself. */
static void check_communicator(hpct_comm_watch *watch)
{
    hpct_status status = watch->options.check();
    if (status == HPCT_OK)
        return;
    hpct_net_frame frame = {.type = HPCT_NET_FRAME_ABORT,
                            .status = (uint8_t) status,
                            .rank = (uint32_t) watch->options.rank};
    memcpy(frame.node, watch->node, sizeof watch->node);
    hpct_net_frame_set(frame.text, sizeof frame.text, hpct_last_error());
    tell_all(watch, &frame, NULL);
    give_up(watch, status, hpct_last_error());
}

static void judge_standstill(hpct_comm_watch *watch, int64_t now)
{
    hpct_net_frame frame;
    if (hpct_comm_watch_still_gains(watch, now, &frame))
        return;
    tell_all(watch, &frame, NULL);
    if (frame.type == HPCT_NET_FRAME_LOST)
        give_up_lost(watch, &frame);
    else
        give_up_aborted(watch, &frame);
}

static void send_beats(hpct_comm_watch *watch, int64_t now)
{
    hpct_net_frame beat = {.type = HPCT_NET_FRAME_BEAT};
    hpct_waits waits;
    if (now < watch->beat_ms)
        return;
    beat.rank = hpct_read_progress(&waits);
    beat.status = (uint8_t) waits;
    tell_all(watch, &beat, NULL);
    hpct_comm_watch_gained(&watch->gain, waits, beat.rank, now);
    watch->beat_ms = now + HPCT_NET_LINK_BEAT_MS;
    if (watch->options.check != NULL && watch->phase == HPCT_COMM_WATCH_RUNNING)
        check_communicator(watch);
    if (is_zero(watch) && watch->phase == HPCT_COMM_WATCH_RUNNING)
        judge_standstill(watch, now);
}

/* This process did not run for a while (it was stopped, or the system slept): frames that arrived
 * meanwhile are still to be read, and the others may have been stopped, too. Extends their
 * timeouts. */
static void forgive_own_absence(hpct_comm_watch *watch, int64_t now, int64_t expected_ms)
{
    int64_t absent = now - watch->turn_ms - expected_ms;
    watch->turn_ms = now;
    if (absent < JUMP_MS)
        return;
    for (int i = 0; i < watch->num_members; i++) {
        watch->members[i].heard_ms += absent;
        watch->members[i].gain.since_ms += absent;
    }
    watch->gain.since_ms += absent;
    watch->join_began_ms += absent;
}

static void *watch_main(void *argument)
{
    hpct_comm_watch *watch = argument;
    watch->turn_ms = hpct_now_ms();
    while (watch->phase != HPCT_COMM_WATCH_DONE) {
        nfds_t count = 0;
        watch->polls[count++] = (struct pollfd){.fd = watch->wake_fd, .events = POLLIN};
        watch->polls[count++] = (struct pollfd){
            .fd = watch->acceptor == NULL ? -1 : hpct_net_acceptor_fd(watch->acceptor),
            .events = POLLIN};
        for (int i = 0; i < watch->num_members; i++) {
            const hpct_net_link *link = &watch->members[i].link;
            short events = link->out_filled > 0 ? POLLIN | POLLOUT : POLLIN;
            watch->polls[count++] = (struct pollfd){.fd = link->session.fd, .events = events};
        }
        int64_t now = hpct_now_ms();
        int64_t timeout = watch->beat_ms > now ? watch->beat_ms - now : 0;
        poll(watch->polls, count, (int) timeout);
        now = hpct_now_ms();
        forgive_own_absence(watch, now, timeout);

        uint64_t wakes;
        if (watch->polls[0].revents != 0 && read(watch->wake_fd, &wakes, sizeof wakes) < 0)
            wakes = 0;
        for (int i = 0; i < watch->num_members && watch->phase != HPCT_COMM_WATCH_DONE; i++) {
            hpct_net_link_flush(&watch->members[i].link);
            if (watch->members[i].link.session.fd >= 0 && watch->polls[2 + i].revents != 0)
                receive(watch, &watch->members[i], now);
        }
        if (watch->phase != HPCT_COMM_WATCH_DONE && watch->acceptor != NULL) {
            hpct_comm_watch_accept(watch);
            join_turn(watch, now);
        }
        if (watch->phase != HPCT_COMM_WATCH_DONE)
            judge_silence(watch, now);
        if (watch->phase != HPCT_COMM_WATCH_DONE)
            send_beats(watch, now);
        if (watch->phase != HPCT_COMM_WATCH_DONE)
            serve_requests(watch);
    }
    return NULL;
}

/* ---- the caller's side ---- */

static void watch_free(hpct_comm_watch *watch)
{
    for (int i = 0; i < watch->num_members; i++)
        hpct_net_link_close(&watch->members[i].link);
    hpct_net_acceptor_free(watch->acceptor);
    if (watch->wake_fd >= 0)
        close(watch->wake_fd);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
    free(watch->members);
    free(watch->polls);
    free(watch);
}

/* Raises RLIMIT_NOFILE: one descriptor per rank. */
static void allow_descriptors(int wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < (rlim_t) wanted) {
        limit.rlim_cur = limit.rlim_max < (rlim_t) wanted ? limit.rlim_max : (rlim_t) wanted;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static hpct_comm_watch *watch_new(const hpct_comm_watch_options *options)
{
    hpct_comm_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return NULL;
    watch->options = *options;
    watch->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->changed, NULL);
    hpct_net_frame_set(watch->node, sizeof watch->node, options->node);
    watch->join_began_ms = hpct_now_ms();
    size_t count = options->rank == 0 ? (size_t) options->size - 1 : 1;
    watch->members = calloc(count, sizeof *watch->members);
    watch->polls = calloc(count + 2, sizeof *watch->polls);
    if (watch->members == NULL || watch->polls == NULL || watch->wake_fd < 0) {
        watch_free(watch);
        return NULL;
    }
    watch->num_members = (int) count;
    for (size_t i = 0; i < count; i++) {
        watch->members[i].link.session.fd = -1;
        watch->members[i].rank = -1;
    }
    return watch;
}

hpct_status hpct_comm_watch_start(hpct_comm_watch **out, const hpct_comm_watch_options *options)
{
    hpct_status status = HPCT_OK;
    if (options->rank == 0)
        allow_descriptors(options->size + HPCT_NET_ACCEPTOR_PENDING + 256);
    hpct_comm_watch *watch = watch_new(options);
    if (watch == NULL) {
        if (options->rank == 0)
            close(options->listen_fd);
        return hpct_fail_memory(0);
    }
    status = options->rank == 0
                 ? hpct_net_acceptor_new(&watch->acceptor, options->listen_fd, options->auth, 0)
                 : hpct_comm_watch_reach(watch);
    if (status != HPCT_OK)
        goto fail;
    int error = hpct_thread_start(&watch->thread, watch_main, watch);
    if (error != 0) {
        status = hpct_fail(HPCT_ERR_INTERNAL, "cannot start a thread: %s", strerror(error));
        goto fail;
    }
    pthread_mutex_lock(&watch->mutex);
    while (!watch->joined && watch->failure == HPCT_OK)
        pthread_cond_wait(&watch->changed, &watch->mutex);
    pthread_mutex_unlock(&watch->mutex);
    if (watch->failure != HPCT_OK) {
        pthread_join(watch->thread, NULL);
        status = hpct_fail(watch->failure, "%s", watch->failure_text);
        goto fail;
    }
    *out = watch;
    return HPCT_OK;

fail:
    watch_free(watch);
    return status;
}

static void request(hpct_comm_watch *watch, bool *flag)
{
    uint64_t one = 1;
    pthread_mutex_lock(&watch->mutex);
    *flag = true;
    pthread_mutex_unlock(&watch->mutex);
    while (write(watch->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void end(hpct_comm_watch *watch)
{
    pthread_join(watch->thread, NULL);
    watch_free(watch);
}

void hpct_comm_watch_meet(hpct_comm_watch *watch)
{
    request(watch, &watch->meeting);
    pthread_mutex_lock(&watch->mutex);
    while (watch->meeting)
        pthread_cond_wait(&watch->changed, &watch->mutex);
    pthread_mutex_unlock(&watch->mutex);
}

void hpct_comm_watch_stop(hpct_comm_watch *watch)
{
    request(watch, &watch->stop_requested);
    end(watch);
}

void hpct_comm_watch_abort(hpct_comm_watch *watch, hpct_status status, const char *text)
{
    watch->abort_frame = (hpct_net_frame){.type = HPCT_NET_FRAME_ABORT,
                                          .status = (uint8_t) status,
                                          .rank = (uint32_t) watch->options.rank};
    memcpy(watch->abort_frame.node, watch->node, sizeof watch->node);
    hpct_net_frame_set(watch->abort_frame.text, sizeof watch->abort_frame.text, text);
    request(watch, &watch->abort_requested);
    end(watch);
}
