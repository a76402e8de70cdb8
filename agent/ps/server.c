/* Main loop of a parameter server. */
#include "agent/ps/leader.h"

#include "agent/ps/connect.h"
#include "agent/ps/holder.h"
#include "agent/rank/stop.h"
#include "base/net/acceptor.h"
#include "base/net/link.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/run/state.h"
#include "nn/run/step.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SPARE_MEMBERS 16     /* connections that have not sent HELLO yet */
#define HELLO_MS 5000        /* timeout for HELLO */
#define JUMP_MS 500          /* poll returned so late: this process was not running */
#define MESSAGES_PER_TURN 16 /* per connection, so that none starves the others */
#define NOTICE_MS 10000

/* A connection and its peer. */
typedef struct member {
    hpct_ps_channel channel;
    bool known;        /* HELLO received */
    hpct_ps_from from; /* from and index are authenticated */
    int index;         /* index of the worker */
    bool waits;        /* a worker without an item */
    char node[HPCT_NET_FRAME_NODE];
    float *floats; /* buffer for a worker's pushes */
} member;

typedef struct server {
    hpct_ps_run *run;
    hpct_ps_leader *leader;  /* server 0; else NULL */
    hpct_ps_servers servers; /* server 0: connections to the other servers */
    hpct_ps_holder holder;
    hpct_net_acceptor *acceptor;
    member *members;
    struct pollfd *polls; /* [1 + num_members + servers] */
    int num_members;
    bool *came; /* [workers] have connected at least once */
    int num_came, here;
    int restored;                /* arenas that server 0 has sent */
    int64_t opened_ms, alone_ms; /* alone: since when there is no worker */
    bool said, led;              /* led: server 0 has connected */
    int64_t turn_ms;
    bool over;
    int signal;
    char last_lost[400];
} server;

static void drop(member *m)
{
    hpct_ps_channel_close(&m->channel);
    free(m->floats);
    m->floats = NULL;
    m->known = false;
}

static member *find(server *s, hpct_ps_from from, int index)
{
    for (int i = 0; i < s->num_members; i++) {
        member *m = &s->members[i];
        if (m->channel.session.fd >= 0 && m->known && m->from == from && m->index == index)
            return m;
    }
    return NULL;
}

/* A worker has left, in order or lost; the run continues without it. */
static void lose(server *s, member *m, const char *how)
{
    hpct_ps_message lost = {.type = HPCT_PS_LOST};
    member *pulse = find(s, HPCT_PS_FROM_PULSE, m->index);
    if (--s->here == 0)
        s->alone_ms = hpct_now_ms();
    if (s->leader != NULL)
        hpct_ps_leader_left(s->leader, m->index, how != NULL);
    if (s->leader != NULL && how != NULL) {
        snprintf(s->last_lost, sizeof s->last_lost, "worker %d on %s was lost: %s", m->index,
                 m->node, how);
        fprintf(stderr, "%shpc-train: %s; %d of %d workers are here\n",
                isatty(STDERR_FILENO) ? "\n" : "", s->last_lost, s->here, s->run->workers);
        snprintf(lost.text, sizeof lost.text, "parameter server 0 gave this worker up: %.150s",
                 how);
        hpct_ps_channel_send(&m->channel, &lost, NULL);
        if (pulse != NULL)
            hpct_ps_channel_send(&pulse->channel, &lost, NULL);
    }
    if (pulse != NULL)
        drop(pulse);
    drop(m);
}

/* Drops a connection; a worker counts as lost, a lost server 0 is an error. */
static hpct_status part(server *s, member *m, const char *how)
{
    if (m->known && m->from == HPCT_PS_FROM_LEADER && !s->over)
        return hpct_ps_run_lost(s->run, 0, how);
    if (m->known && m->from == HPCT_PS_FROM_WORKER)
        lose(s, m, how);
    else
        drop(m);
    return HPCT_OK;
}

/* ---- hello ---- */

static const char *refuse(server *s, const member *m, const hpct_ps_message *hello)
{
    bool worker = m->from != HPCT_PS_FROM_LEADER;
    if (hello->from != m->from || hello->index != (uint32_t) m->index)
        return "it says that it is another one than it has proved to be";
    if (hello->plan != s->run->plan)
        return "another model, data set, options or version of hpc-train";
    if (worker && hello->index >= (uint32_t) s->run->workers)
        return "there is no such worker";
    if (hello->from == HPCT_PS_FROM_WORKER && find(s, hello->from, (int) hello->index) != NULL)
        return "this worker is here already";
    if (hello->from == HPCT_PS_FROM_PULSE &&
        (s->leader == NULL || find(s, HPCT_PS_FROM_WORKER, (int) hello->index) == NULL ||
         find(s, hello->from, (int) hello->index) != NULL))
        return "there is no such worker";
    if (!worker && (s->leader != NULL || s->led))
        return "there is a server 0 already";
    return NULL;
}

/* Of another run: which key of its identity differs. */
static void name_key(const hpct_ps_run *run, const hpct_ps_message *hello, hpct_ps_message *answer)
{
    char value[HPCT_TRAIN_IDENTITY_VALUE];
    int key = hpct_train_identity_compare_briefs(run->brief, hello->text);
    if (key < 0)
        return;
    answer->slice = (uint32_t) key + 1;
    hpct_net_frame_set(answer->text, sizeof answer->text,
                       hpct_train_identity_print(run->identity, key, value));
}

/* Of parameters and states. */
static size_t part_bytes(const server *s)
{
    return (s->holder.count + s->holder.state_count) * sizeof(float);
}

static void admit(server *s, member *m, const hpct_ps_message *hello)
{
    m->known = true;
    memcpy(m->node, hello->node, sizeof m->node);
    if (m->from == HPCT_PS_FROM_LEADER) {
        s->led = true;
        hpct_ps_run_arena(s->run, s->run->index, 0, m->channel.into);
    }
    if (m->from != HPCT_PS_FROM_WORKER)
        return;
    m->channel.into[0] = (struct iovec){m->floats, part_bytes(s)};
    m->waits = s->leader != NULL;
    s->here++;
    s->num_came += !s->came[m->index];
    s->came[m->index] = true;
    if (s->leader != NULL)
        hpct_ps_leader_joined(s->leader, m->index, m->node);
}

static void hear_hello(server *s, member *m, const hpct_ps_message *hello)
{
    hpct_ps_message answer = {.type = HPCT_PS_WELCOME};
    if (hello->type != HPCT_PS_HELLO) {
        drop(m);
        return;
    }
    const char *why = refuse(s, m, hello);
    if (why == NULL && hello->from == HPCT_PS_FROM_WORKER &&
        (m->floats = malloc(part_bytes(s) + 1)) == NULL)
        why = "there is no memory for one more worker";
    if (why != NULL) {
        answer.type = HPCT_PS_REFUSED;
        hpct_net_frame_set(answer.text, sizeof answer.text, why);
        if (hello->plan != s->run->plan)
            name_key(s->run, hello, &answer);
        hpct_ps_channel_send(&m->channel, &answer, NULL);
        drop(m);
        return;
    }
    admit(s, m, hello);
    answer.bytes = part_bytes(s);
    answer.step = (uint64_t) s->run->options.initial_epoch;
    hpct_ps_channel_send(&m->channel, &answer, NULL);
}

/* ---- requests ---- */

/* A peer that accepts no more messages is lost. */
static hpct_status send_to(server *s, member *m, const hpct_ps_message *message,
                           const struct iovec *floats)
{
    return hpct_ps_channel_send(&m->channel, message, floats)
               ? HPCT_OK
               : part(s, m, "it takes nothing any more");
}

static hpct_status acknowledge_push(server *s, member *m)
{
    const hpct_ps_message answer = {.type = HPCT_PS_PUSHED};
    return send_to(s, m, &answer, NULL);
}

/* Non-finite gradients are rejected: one NaN would spread to all parameters and all workers. */
static hpct_status serve_push(server *s, member *m, const hpct_ps_message *message)
{
    if (message->slice >= (uint32_t) s->run->schedule.slices)
        return part(s, m, "it sent what no worker of this run sends");
    if (!hpct_run_are_finite(m->floats, s->holder.count + s->holder.state_count))
        return part(s, m,
                    "its gradients are not finite, NaN or infinity: the training diverges "
                    "(is the learning rate too high?)");
    HPCT_TRY(hpct_ps_holder_push(&s->holder, (int64_t) message->step, (int) message->slice,
                                 message->rate, m->floats));
    return acknowledge_push(s, m);
}

/* Server 0 continues a checkpoint: the content of arena 0 has come, 1, ...; the next one is
 * expected. */
static hpct_status take_part(server *s, member *m, const hpct_ps_message *message)
{
    double numbers[HPCT_RUN_STATE_NUMBERS];
    size_t count;
    if (message->slice != (uint32_t) s->restored || s->num_came > 0 || message->version > INT64_MAX)
        return part(s, m, "it sent what nobody of this run sends");
    hpct_model_parameters(s->run->model, &count); /* has changed */
    HPCT_TRY(hpct_run_state_get_numbers(s->run->model, numbers));
    s->holder.version = (int64_t) message->version;
    numbers[0] = (double) message->step;
    HPCT_TRY(hpct_run_state_put_numbers(s->run->model, numbers));
    s->restored++;
    if (hpct_ps_run_arena(s->run, s->run->index, s->restored, m->channel.into) < 0)
        memset(m->channel.into, 0, sizeof m->channel.into);
    return acknowledge_push(s, m);
}

static hpct_status serve_pull(server *s, member *m, const hpct_ps_message *message)
{
    struct iovec floats[HPCT_PS_PIECES];
    hpct_ps_message answer = {.type = HPCT_PS_PARAMS};
    bool possible;
    HPCT_TRY(hpct_ps_holder_reach(&s->holder, (int64_t) message->version, &possible));
    int arena = m->from == HPCT_PS_FROM_LEADER ? (int) message->slice : 0;
    int64_t bytes = possible ? hpct_ps_run_arena(s->run, s->run->index, arena, floats) : -1;
    if (bytes < 0)
        return part(s, m, "it asked for parameters that there are not");
    answer.version = s->run->schedule.synchronous ? (uint64_t) s->holder.version : message->version;
    answer.bytes = (uint64_t) bytes;
    return send_to(s, m, &answer, floats);
}

static hpct_status serve_worker(server *s, member *m, const hpct_ps_message *message)
{
    switch (message->type) {
    case HPCT_PS_PUSH:
        return serve_push(s, m, message);
    case HPCT_PS_PULL:
        return serve_pull(s, m, message);
    case HPCT_PS_BYE:
    case HPCT_PS_LOST:
        lose(s, m, message->type == HPCT_PS_LOST ? message->text : NULL);
        return HPCT_OK;
    case HPCT_PS_DONE:
    case HPCT_PS_SKIPPED:
        if (s->leader == NULL || m->waits)
            break;
        m->waits = true;
        if (message->type == HPCT_PS_DONE)
            return hpct_ps_leader_done(s->leader, m->index, message);
        hpct_ps_schedule_give_back(hpct_ps_leader_schedule(s->leader), m->index);
        return HPCT_OK;
    default:
        break;
    }
    return part(s, m, "it sent what no worker of this run sends");
}

static hpct_status handle_message(server *s, member *m, const hpct_ps_message *message)
{
    if (!m->known) {
        hear_hello(s, m, message);
        return HPCT_OK;
    }
    if (message->type == HPCT_PS_BEAT)
        return HPCT_OK;
    if (m->from == HPCT_PS_FROM_WORKER)
        return serve_worker(s, m, message);
    if (m->from == HPCT_PS_FROM_LEADER && message->type == HPCT_PS_PULL)
        return serve_pull(s, m, message);
    if (m->from == HPCT_PS_FROM_LEADER && message->type == HPCT_PS_PUSH)
        return take_part(s, m, message);
    if (m->from == HPCT_PS_FROM_LEADER && message->type == HPCT_PS_ITEM) {
        s->over = true;
        s->signal = message->signal;
        s->run->saved = message->step > 0;
        return HPCT_OK;
    }
    if (m->from == HPCT_PS_FROM_LEADER && message->type == HPCT_PS_LOST)
        return hpct_fail(HPCT_ERR_PEER, "%s: %s", s->run->name, message->text);
    return part(s, m, "it sent what nobody of this run sends");
}

static hpct_status receive(server *s, member *m)
{
    hpct_ps_message message;
    for (int i = 0; i < MESSAGES_PER_TURN && m->channel.session.fd >= 0; i++) {
        hpct_ps_received received = hpct_ps_channel_receive(&m->channel, &message);
        if (received == HPCT_PS_NOTHING)
            return HPCT_OK;
        if (received == HPCT_PS_CLOSED)
            return part(s, m, "its connection closed (the process was killed or ended early)");
        if (received == HPCT_PS_GARBAGE)
            return part(s, m, "it sent what nobody of this run sends");
        HPCT_TRY(handle_message(s, m, &message));
    }
    return HPCT_OK;
}

/* ---- once per iteration ---- */

/* HPCT_PS_FROMS: for something else. */
static hpct_ps_from find_from(hpct_auth_purpose purpose)
{
    return purpose == HPCT_AUTH_FOR_PS_WORKER   ? HPCT_PS_FROM_WORKER
           : purpose == HPCT_AUTH_FOR_PS_PULSE  ? HPCT_PS_FROM_PULSE
           : purpose == HPCT_AUTH_FOR_PS_LEADER ? HPCT_PS_FROM_LEADER
                                                : HPCT_PS_FROMS;
}

static void take_connections(server *s)
{
    hpct_net_guest guest;
    while (hpct_net_acceptor_next(s->acceptor, &guest)) {
        hpct_net_session session;
        hpct_ps_from from = find_from(guest.purpose);
        member *m = s->members;
        while (m < s->members + s->num_members && m->channel.session.fd >= 0)
            m++;
        if (m == s->members + s->num_members || from == HPCT_PS_FROMS || guest.from > INT_MAX) {
            hpct_net_guest_refuse(&guest);
        } else if (hpct_net_guest_accept(&guest, &session)) {
            *m = (member){.from = from, .index = (int) guest.from};
            hpct_ps_channel_init(&m->channel, &session);
        }
    }
}

/* Server 0 checks workers, whose heartbeats come by their pulse connection. The other servers check
 * only server 0, whose end is theirs. */
static hpct_status check_silence(server *s, int64_t now)
{
    for (int i = 0; i < s->num_members; i++) {
        member *m = &s->members[i];
        int64_t heard = m->channel.heard_ms;
        if (!m->known && now - heard > HELLO_MS)
            drop(m);
        if (m->channel.session.fd < 0 || !m->known)
            continue;
        const member *pulse = find(s, HPCT_PS_FROM_PULSE, m->index);
        if (m->from == HPCT_PS_FROM_WORKER && pulse != NULL && pulse->channel.heard_ms > heard)
            heard = pulse->channel.heard_ms;
        bool judged =
            m->from == HPCT_PS_FROM_LEADER || (m->from == HPCT_PS_FROM_WORKER && s->leader != NULL);
        if (judged && now - heard > m->channel.silence_ms)
            HPCT_TRY(part(s, m, HPCT_NET_LINK_SILENCE));
    }
    return HPCT_OK;
}

static void give_out(server *s)
{
    hpct_ps_schedule *schedule = hpct_ps_leader_schedule(s->leader);
    for (int i = 0; i < s->num_members; i++) {
        member *m = &s->members[i];
        if (m->channel.session.fd < 0 || !m->known || m->from != HPCT_PS_FROM_WORKER || !m->waits)
            continue;
        hpct_ps_item item = hpct_ps_schedule_next(schedule, m->index);
        hpct_ps_message message = {
            .type = HPCT_PS_ITEM,
            .task = (uint8_t) item.task,
            .signal = (uint8_t) s->signal,
            .step = item.task == HPCT_PS_END ? (uint64_t) s->run->saved : (uint64_t) item.step,
            .slice = (uint32_t) item.slice,
            .version = (uint64_t) item.version,
            .rate = item.task == HPCT_PS_TRAIN ? hpct_ps_leader_rate(s->leader) : 0};
        if (item.task == HPCT_PS_WAIT)
            continue;
        m->waits = false;
        send_to(s, m, &message, NULL); /* a worker's failure is not this server's */
    }
}

/* Whether the run can continue: there are workers, and server 0. */
static hpct_status judge_absence(server *s, int64_t now)
{
    char who[160];
    int64_t alone = now - s->alone_ms, limit = (int64_t) s->run->join_seconds * 1000;
    if (s->leader == NULL && !s->led && alone >= limit)
        return hpct_ps_run_lost(s->run, 0, "it did not come in time");
    if (s->leader == NULL || s->here > 0)
        return HPCT_OK;
    if (s->num_came == s->run->workers)
        return hpct_fail(HPCT_ERR_PEER, "no worker is left; the last: %s",
                         s->last_lost[0] != '\0' ? s->last_lost : "left in order");
    if (alone >= limit)
        return hpct_fail(HPCT_ERR_PEER, "%s: no worker has come for %d s",
                         hpct_ps_run_server(s->run, 0, who), s->run->join_seconds);
    if (!s->said && alone >= NOTICE_MS)
        fprintf(stderr, "hpc-train: waiting for %d workers\n", s->run->workers - s->num_came);
    s->said |= alone >= NOTICE_MS;
    return HPCT_OK;
}

static void beat(server *s, int64_t now)
{
    for (int i = 0; i < s->num_members; i++) {
        if (s->members[i].channel.session.fd >= 0 && s->members[i].known)
            hpct_ps_channel_beat(&s->members[i].channel, now);
    }
}

/* This process did not run for a while (see JUMP_MS): messages of that time are still to be read,
 * so extends the timeouts. */
static void forgive_own_absence(server *s, int64_t now)
{
    int64_t absent = now - s->turn_ms - HPCT_NET_LINK_BEAT_MS;
    s->turn_ms = now;
    if (absent < JUMP_MS)
        return;
    for (int i = 0; i < s->num_members; i++)
        s->members[i].channel.heard_ms += absent;
    for (int i = 1; s->leader != NULL && i < s->run->servers; i++)
        s->servers.channels[i].heard_ms += absent;
}

static void sleep_until_something(server *s)
{
    nfds_t count = 0;
    s->polls[count++] = (struct pollfd){hpct_net_acceptor_fd(s->acceptor), POLLIN, 0};
    for (int i = 0; i < s->num_members; i++)
        s->polls[count++] = hpct_ps_channel_poll(&s->members[i].channel);
    for (int i = 1; s->leader != NULL && i < s->run->servers; i++)
        s->polls[count++] = (struct pollfd){s->servers.channels[i].session.fd, POLLIN, 0};
    poll(s->polls, count, HPCT_NET_LINK_BEAT_MS);
}

/* Server 0, between steps, and after the last item: all parts into its model. */
static hpct_status gather(server *s, bool slots)
{
    bool possible;
    int64_t version = hpct_ps_schedule_statistics(hpct_ps_leader_schedule(s->leader))->version;
    HPCT_TRY(hpct_ps_holder_reach(&s->holder, version, &possible));
    return hpct_ps_servers_gather(&s->servers, version, slots);
}

static hpct_status lead(server *s, int64_t now)
{
    hpct_ps_schedule *schedule = hpct_ps_leader_schedule(s->leader);
    if (hpct_ps_leader_saves(s->leader)) {
        double began = hpct_process_clock();
        HPCT_TRY(gather(s, true));
        HPCT_TRY(hpct_ps_leader_save(s->leader, hpct_process_clock() - began));
    }
    if (s->signal == 0 && hpct_rank_stop_signal() != 0 && !hpct_ps_schedule_ended(schedule)) {
        s->signal = hpct_rank_stop_signal();
        hpct_ps_leader_stop(s->leader, s->signal);
    }
    if (s->signal != 0 && s->here == 0) /* they have got it, too */
        hpct_ps_schedule_end(schedule);
    give_out(s);
    /* A worker that is late, after a short run, is told that it is over. */
    bool told = s->signal != 0 || s->num_came == s->run->workers ||
                now - s->opened_ms >= (int64_t) s->run->join_seconds * 1000;
    s->over = hpct_ps_schedule_ended(schedule) && s->here == 0 && told;
    return s->over ? HPCT_OK : judge_absence(s, now);
}

static hpct_status turn(server *s)
{
    sleep_until_something(s);
    int64_t now = hpct_now_ms();
    forgive_own_absence(s, now);
    if (s->leader != NULL) /* before the workers, which leave when a server is lost */
        HPCT_TRY(hpct_ps_servers_watch(&s->servers));
    for (int i = 0; i < s->num_members && !s->over; i++) {
        hpct_ps_channel_flush(&s->members[i].channel);
        if (s->members[i].channel.session.fd >= 0 && s->polls[1 + i].revents != 0)
            HPCT_TRY(receive(s, &s->members[i]));
    }
    if (s->over)
        return HPCT_OK;
    take_connections(s);
    HPCT_TRY(check_silence(s, now));
    beat(s, now);
    return s->leader != NULL ? lead(s, now) : judge_absence(s, now);
}

/* ---- opening and closing ---- */

/* While this server connects to the others, or waits for them: accepts connections, which else fill
 * the listen queue, and the kernel of a worker retries its SYN only after one second, then three;
 * and sends heartbeats. */
static void let_in(void *argument)
{
    server *s = argument;
    take_connections(s);
    beat(s, hpct_now_ms());
}

static hpct_status open_server(server *s)
{
    char host[256];
    int port, listen_fd;
    const hpct_ps_run *run = s->run;
    if (!hpct_net_link_split_address(run->addresses[run->index], host, sizeof host, &port))
        return hpct_fail(HPCT_ERR_CONFIG,
                         "the address of parameter server %d, '%s', is not host:port", run->index,
                         run->addresses[run->index]);
    s->num_members = 2 * run->workers + 1 + SPARE_MEMBERS;
    s->members = calloc((size_t) s->num_members, sizeof *s->members);
    s->polls = calloc((size_t) (1 + s->num_members + run->servers), sizeof *s->polls);
    s->came = calloc((size_t) run->workers, sizeof *s->came);
    if (s->members == NULL || s->polls == NULL || s->came == NULL)
        return hpct_fail_memory((size_t) s->num_members * sizeof *s->members);
    for (int i = 0; i < s->num_members; i++)
        s->members[i].channel.session.fd = -1;
    HPCT_TRY(hpct_ps_holder_init(&s->holder, run));
    HPCT_TRY(hpct_net_link_listen(&listen_fd, &port, host, SOMAXCONN));
    HPCT_TRY(hpct_net_acceptor_new(&s->acceptor, listen_fd, hpct_context_auth(run->context),
                                   (uint32_t) run->index));
    if (s->leader != NULL)
        HPCT_TRY(hpct_ps_servers_reach(&s->servers, run, HPCT_PS_FROM_LEADER, let_in, s));
    if (s->leader != NULL && hpct_ps_leader_continues(s->leader))
        HPCT_TRY(hpct_ps_servers_restore(&s->servers));
    s->opened_ms = s->alone_ms = s->turn_ms = hpct_now_ms();
    return HPCT_OK;
}

/* Sends to all connections. */
static void tell_all(server *s, const hpct_ps_message *message)
{
    hpct_ps_channel **channels = calloc((size_t) s->num_members, sizeof *channels);
    int count = 0;
    for (int i = 0; i < s->num_members && channels != NULL; i++) {
        if (s->members[i].channel.session.fd < 0)
            continue;
        hpct_ps_channel_send(&s->members[i].channel, message, NULL);
        channels[count++] = &s->members[i].channel;
    }
    if (channels != NULL)
        hpct_ps_channel_linger(channels, count);
    free(channels);
}

static void server_free(server *s)
{
    for (int i = 0; i < s->num_members && s->members != NULL; i++)
        drop(&s->members[i]);
    hpct_net_acceptor_free(s->acceptor);
    hpct_ps_holder_free(&s->holder);
    free(s->members);
    free(s->polls);
    free(s->came);
}

hpct_status hpct_ps_serve(hpct_ps_run *run, hpct_ps_leader *leader, int *signal)
{
    server s = {.run = run, .leader = leader};
    hpct_status status = open_server(&s);
    while (status == HPCT_OK && !s.over)
        status = turn(&s);
    if (status == HPCT_OK && leader != NULL)
        status = gather(&s, run->options.checkpoint_dir != NULL); /* then the others may end */
    hpct_ps_message end = {.type = HPCT_PS_ITEM,
                           .task = HPCT_PS_END,
                           .signal = (uint8_t) s.signal,
                           .step = run->saved};
    if (status != HPCT_OK)
        hpct_ps_run_reason(run, &end);
    if (status != HPCT_OK && s.members != NULL)
        tell_all(&s, &end);
    if (leader != NULL)
        hpct_ps_servers_leave(&s.servers, &end);
    *signal = s.signal;
    server_free(&s);
    return status;
}
