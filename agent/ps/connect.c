/* Requests to all servers at once, and their answers. */
#include "agent/ps/connect.h"

#include "agent/comm/gone.h"
#include "agent/rank/stop.h"
#include "base/net/link.h"
#include "base/status.h"
#include "nn/run/state.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_MS 2000
#define FOREIGN_MS 10000 /* timeout while another program answers at a server's port */
#define NOTICE_MS 10000
#define TOLD_MS 2000 /* after the plugin's signal that rank 0 ended: messages may still arrive */

static hpct_status lost(const hpct_ps_servers *servers, int server, const char *how)
{
    return hpct_ps_run_lost(servers->run, server, how);
}

static hpct_status send_to(hpct_ps_servers *servers, int server, const hpct_ps_message *message,
                           const struct iovec *floats)
{
    return hpct_ps_channel_send(&servers->channels[server], message, floats)
               ? HPCT_OK
               : lost(servers, server, "it takes nothing any more");
}

/* Sends heartbeats to the servers connected so far, while waiting for the next or for answers. */
static void beat(hpct_ps_servers *servers, int reached)
{
    for (int i = servers->first; i < reached; i++) {
        hpct_ps_channel_flush(&servers->channels[i]);
        hpct_ps_channel_beat(&servers->channels[i], hpct_now_ms());
    }
    if (servers->meanwhile != NULL)
        servers->meanwhile(servers->argument);
}

/* ---- waiting for answers ---- */

static hpct_status take_answer(hpct_ps_servers *servers, int server, const hpct_ps_message *message)
{
    if (message->type == HPCT_PS_LOST)
        return hpct_fail(HPCT_ERR_PEER, "%s: %s", servers->run->name, message->text);
    if (message->type == HPCT_PS_BEAT)
        return HPCT_OK;
    if (message->type == HPCT_PS_ITEM && server == 0 && !servers->has_item) {
        servers->has_item = true;
        servers->item = *message;
        return HPCT_OK;
    }
    if (message->type != servers->wanted)
        return lost(servers, server, "it sent what was not asked for");
    servers->answered++;
    servers->stale |= (int64_t) message->version != servers->version;
    return HPCT_OK;
}

static hpct_status receive(hpct_ps_servers *servers, int server)
{
    hpct_ps_message message;
    hpct_ps_received received;
    while ((received = hpct_ps_channel_receive(&servers->channels[server], &message)) ==
           HPCT_PS_GOT)
        HPCT_TRY(take_answer(servers, server, &message));
    if (received == HPCT_PS_NOTHING)
        return HPCT_OK;
    return lost(servers, server,
                received == HPCT_PS_CLOSED
                    ? "its connection closed (the process was killed or ended early)"
                    : "it sent what no server of this run sends");
}

/* One iteration: sends, polls, receives. A server's silence counts from `began`, as nothing was
 * read before. */
static hpct_status turn(hpct_ps_servers *servers, int64_t began)
{
    hpct_status status = HPCT_OK;
    int count = servers->run->servers;
    for (int i = servers->first; i < count; i++) {
        hpct_ps_channel *channel = &servers->channels[i];
        hpct_ps_channel_flush(channel);
        servers->polls[i] = hpct_ps_channel_poll(channel);
    }
    poll(servers->polls + servers->first, (nfds_t) (count - servers->first), HPCT_NET_LINK_BEAT_MS);
    if (servers->run->serves) /* workers have a thread for that */
        beat(servers, count);
    for (int i = servers->first; i < count && status == HPCT_OK; i++)
        status = receive(servers, i);
    int64_t now = hpct_now_ms();
    for (int i = servers->first; i < count && status == HPCT_OK; i++) {
        int64_t heard = servers->channels[i].heard_ms;
        if (now - (heard > began ? heard : began) > servers->channels[i].silence_ms)
            status = lost(servers, i, HPCT_NET_LINK_SILENCE);
    }
    return status;
}

static bool sending(const hpct_ps_servers *servers)
{
    for (int i = servers->first; i < servers->run->servers; i++) {
        if (hpct_ps_channel_sending(&servers->channels[i]))
            return true;
    }
    return false;
}

/* Waits until every server has answered with `wanted`, and everything has been sent. */
static hpct_status await_answers(hpct_ps_servers *servers)
{
    int64_t began = hpct_now_ms();
    hpct_status status = HPCT_OK;
    int all = servers->run->servers - servers->first;
    while (status == HPCT_OK && (servers->answered < all || sending(servers)))
        status = turn(servers, began);
    return status;
}

static void expect(hpct_ps_servers *servers, hpct_ps_message_type wanted, int64_t version)
{
    servers->wanted = wanted;
    servers->version = version;
    servers->answered = 0;
    servers->stale = false;
}

/* ---- requests ---- */

static hpct_status pull_arena(hpct_ps_servers *servers, int64_t version, int arena)
{
    const hpct_ps_message request = {
        .type = HPCT_PS_PULL, .version = (uint64_t) version, .slice = (uint32_t) arena};
    expect(servers, HPCT_PS_PARAMS, version);
    for (int i = servers->first; i < servers->run->servers; i++) {
        hpct_ps_run_arena(servers->run, i, arena, servers->channels[i].into);
        HPCT_TRY(send_to(servers, i, &request, NULL));
    }
    return await_answers(servers);
}

hpct_status hpct_ps_servers_pull(hpct_ps_servers *servers, int64_t version, bool *exact)
{
    hpct_status status = pull_arena(servers, version, 0);
    *exact = !servers->stale;
    return status;
}

hpct_status hpct_ps_servers_gather(hpct_ps_servers *servers, int64_t version, bool slots)
{
    struct iovec pieces[HPCT_PS_PIECES];
    int most = slots ? INT_MAX : 1;
    for (int arena = 0; arena < most && hpct_ps_run_arena(servers->run, 0, arena, pieces) >= 0;
         arena++)
        HPCT_TRY(pull_arena(servers, version, arena));
    return HPCT_OK;
}

hpct_status hpct_ps_servers_restore(hpct_ps_servers *servers)
{
    struct iovec floats[HPCT_PS_PIECES];
    double numbers[HPCT_RUN_STATE_NUMBERS];
    HPCT_TRY(hpct_run_state_get_numbers(servers->run->model, numbers));
    for (int arena = 0; hpct_ps_run_arena(servers->run, 0, arena, floats) >= 0; arena++) {
        hpct_ps_message part = {.type = HPCT_PS_PUSH,
                                .step = (uint64_t) numbers[0],
                                .slice = (uint32_t) arena,
                                .version = (uint64_t) servers->run->schedule.first_step};
        expect(servers, HPCT_PS_PUSHED, 0);
        for (int i = servers->first; i < servers->run->servers; i++) {
            part.bytes = (uint64_t) hpct_ps_run_arena(servers->run, i, arena, floats);
            HPCT_TRY(send_to(servers, i, &part, floats));
        }
        HPCT_TRY(await_answers(servers));
    }
    return HPCT_OK;
}

hpct_status hpct_ps_servers_push(hpct_ps_servers *servers, const hpct_ps_message *item,
                                 float *states)
{
    hpct_ps_message request = {.type = HPCT_PS_PUSH,
                               .step = item->step,
                               .slice = item->slice,
                               .version = item->version,
                               .rate = item->rate};
    struct iovec floats[HPCT_PS_PIECES];
    expect(servers, HPCT_PS_PUSHED, 0);
    for (int i = servers->first; i < servers->run->servers; i++) {
        request.bytes = hpct_ps_run_gradients(servers->run, i, states, floats);
        HPCT_TRY(send_to(servers, i, &request, floats));
    }
    return await_answers(servers);
}

hpct_status hpct_ps_servers_answer(hpct_ps_servers *servers, const hpct_ps_message *message)
{
    return send_to(servers, 0, message, NULL);
}

hpct_status hpct_ps_servers_item(hpct_ps_servers *servers, hpct_ps_message *item)
{
    int64_t began = hpct_now_ms();
    hpct_status status = HPCT_OK;
    expect(servers, HPCT_PS_ITEM, 0);
    while (status == HPCT_OK && !servers->has_item)
        status = turn(servers, began);
    *item = servers->item;
    servers->has_item = false;
    return status;
}

hpct_status hpct_ps_servers_watch(hpct_ps_servers *servers)
{
    hpct_status status = HPCT_OK;
    int64_t now = hpct_now_ms();
    expect(servers, HPCT_PS_BEAT, 0);
    for (int i = servers->first; i < servers->run->servers && status == HPCT_OK; i++) {
        hpct_ps_channel *channel = &servers->channels[i];
        hpct_ps_channel_flush(channel);
        hpct_ps_channel_beat(channel, now);
        status = receive(servers, i);
        if (status == HPCT_OK && now - channel->heard_ms > channel->silence_ms)
            status = lost(servers, i, HPCT_NET_LINK_SILENCE);
    }
    return status;
}

void hpct_ps_servers_leave(hpct_ps_servers *servers, const hpct_ps_message *last)
{
    for (int i = servers->first; servers->channels != NULL && i < servers->run->servers; i++) {
        hpct_ps_channel *channel = &servers->channels[i];
        if (last != NULL) {
            hpct_ps_channel_send(channel, last, NULL);
            hpct_ps_channel_linger(&channel, 1);
        }
        hpct_ps_channel_close(channel);
    }
    free(servers->channels);
    free(servers->polls);
    servers->channels = NULL;
    servers->polls = NULL;
}

/* ---- connecting ---- */

/* Authenticates both ends. Server 0 may answer late, as it first connects to the other servers
 * while its socket is listening already. */
static hpct_net_handshake prove(hpct_ps_servers *servers, int server, int fd, hpct_ps_from from,
                                int64_t deadline)
{
    const hpct_ps_run *run = servers->run;
    hpct_net_connecting connecting;
    hpct_net_session session;
    hpct_net_handshake how = HPCT_NET_HANDSHAKE_WAIT;
    if (hpct_net_connecting_begin(&connecting, fd, hpct_context_auth(run->context),
                                  from == HPCT_PS_FROM_LEADER ? HPCT_AUTH_FOR_PS_LEADER
                                                              : HPCT_AUTH_FOR_PS_WORKER,
                                  (uint32_t) run->index, (uint32_t) server) != HPCT_OK)
        return HPCT_NET_HANDSHAKE_WAIT;
    for (int64_t now = hpct_now_ms(); now < deadline && hpct_rank_stop_signal() == 0;
         now = hpct_now_ms()) {
        how = hpct_net_connecting_step(&connecting, &session);
        if (how == HPCT_NET_HANDSHAKE_DONE)
            hpct_ps_channel_init(&servers->channels[server], &session);
        if (how != HPCT_NET_HANDSHAKE_WAIT)
            return how;
        struct pollfd poller = {connecting.fd, POLLIN, 0};
        beat(servers, server);
        poll(&poller, 1, deadline - now < 1000 ? (int) (deadline - now) : 1000);
    }
    hpct_net_connecting_give_up(&connecting);
    return how;
}

/* 1: WELCOME, 0: no answer (yet), -1: REFUSED. */
static int greet(hpct_ps_servers *servers, int server, const hpct_ps_message *hello,
                 int64_t deadline, hpct_ps_message *answer)
{
    hpct_ps_channel *channel = &servers->channels[server];
    hpct_ps_channel_send(channel, hello, NULL);
    for (int64_t now = hpct_now_ms(); now < deadline && hpct_rank_stop_signal() == 0;
         now = hpct_now_ms()) {
        struct pollfd poller = {channel->session.fd, POLLIN, 0};
        hpct_ps_channel_flush(channel);
        beat(servers, server);
        poll(&poller, 1, deadline - now < 1000 ? (int) (deadline - now) : 1000);
        hpct_ps_received received = hpct_ps_channel_receive(channel, answer);
        if (received == HPCT_PS_GOT && answer->type == HPCT_PS_WELCOME)
            return 1;
        if (received == HPCT_PS_GOT && answer->type == HPCT_PS_REFUSED)
            return -1;
        if (received == HPCT_PS_CLOSED || received == HPCT_PS_GARBAGE)
            break;
    }
    hpct_ps_channel_close(channel);
    return 0;
}

static hpct_status refused(const hpct_ps_servers *servers, int server,
                           const hpct_ps_message *answer)
{
    char who[160];
    const hpct_ps_run *run = servers->run;
    hpct_ps_run_server(run, server, who);
    if (answer->slice > 0)
        return hpct_train_identity_fail(run->identity, (int) answer->slice - 1, answer->text,
                                        run->name, who);
    return hpct_fail(HPCT_ERR_CONFIG, "%s: %s refuses it: %s", run->name, who, answer->text);
}

/* The plugin signals the end of rank 0, which may be a worker: then this says nothing about server
 * 0. */
static bool leader_is_gone(const hpct_ps_run *run)
{
    const hpct_cluster_config *config = hpct_context_config(run->context);
    return hpct_comm_gone_is_zero() && strcmp(run->addresses[0], config->addresses[0]) == 0;
}

static hpct_status reach_one(hpct_ps_servers *servers, int server, const hpct_ps_message *hello,
                             int64_t deadline)
{
    const hpct_ps_run *run = servers->run;
    char who[160];
    int64_t began = hpct_now_ms(), foreign_since = 0, told_since = 0;
    bool said = false;
    struct iovec parts[HPCT_PS_PIECES];
    hpct_ps_run_server(run, server, who);
    for (int wait_ms = 20;; wait_ms = wait_ms < 500 ? 2 * wait_ms : 500) {
        int fd, greeted = 0;
        hpct_net_handshake how = HPCT_NET_HANDSHAKE_WAIT;
        hpct_ps_message answer;
        beat(servers, server);
        hpct_status status = hpct_net_link_connect(&fd, run->addresses[server], CONNECT_MS);
        if (status == HPCT_ERR_CONFIG)
            return status;
        if (status == HPCT_OK)
            how = prove(servers, server, fd, hello->from, deadline);
        if (how == HPCT_NET_HANDSHAKE_DONE)
            greeted = greet(servers, server, hello, deadline, &answer);
        if (greeted < 0)
            return refused(servers, server, &answer);
        if (greeted > 0 && answer.bytes != hpct_ps_run_parameters(run, server, parts))
            return hpct_fail(HPCT_ERR_CONFIG, "%s: %s divides the model in another way", run->name,
                             who);
        if (greeted > 0 && server == 0)
            servers->epochs_done = answer.step;
        if (greeted > 0)
            return HPCT_OK;
        if (hpct_rank_stop_signal() != 0)
            return hpct_fail(HPCT_ERR_STOPPED, "%s: told to stop while it waited for %s", run->name,
                             who);
        int64_t now = hpct_now_ms();
        if (how != HPCT_NET_HANDSHAKE_FOREIGN)
            foreign_since = 0;
        else if (foreign_since == 0)
            foreign_since = now;
        else if (now - foreign_since > FOREIGN_MS)
            return hpct_fail(HPCT_ERR_CONFIG,
                             "%s is answered by another program, not by parameter server %d of "
                             "this run: choose another port with --hpc-train-port=PORT",
                             run->addresses[server], server);
        if (told_since == 0 && leader_is_gone(run))
            told_since = now;
        if (told_since != 0 && now - told_since > TOLD_MS)
            return lost(servers, 0, "it has ended: the run is over, or failed");
        if (now >= deadline)
            return hpct_fail(HPCT_ERR_PEER, "%s: %s was lost: it did not come within %d s",
                             run->name, who, run->join_seconds);
        if (!said && now - began >= NOTICE_MS) {
            fprintf(stderr, "hpc-train: %s: waiting for %s\n", run->name, who);
            said = true;
        }
        usleep((useconds_t) wait_ms * 1000);
    }
}

hpct_status hpct_ps_servers_reach(hpct_ps_servers *out, const hpct_ps_run *run, hpct_ps_from from,
                                  void (*meanwhile)(void *), void *argument)
{
    hpct_ps_message hello = {
        .type = HPCT_PS_HELLO, .from = from, .index = (uint32_t) run->index, .plan = run->plan};
    size_t count = (size_t) run->servers;
    hpct_status status = HPCT_OK;
    hpct_net_frame_set(hello.node, sizeof hello.node, hpct_context_node(run->context));
    hpct_net_frame_set(hello.text, sizeof hello.text, run->brief);
    *out = (hpct_ps_servers){.run = run,
                             .first = from == HPCT_PS_FROM_LEADER ? 1 : 0,
                             .meanwhile = meanwhile,
                             .argument = argument};
    out->channels = calloc(count, sizeof *out->channels);
    out->polls = calloc(count, sizeof *out->polls);
    if (out->channels == NULL || out->polls == NULL) {
        free(out->channels);
        out->channels = NULL;
        return hpct_fail_memory(count * sizeof *out->channels);
    }
    for (size_t i = 0; i < count; i++)
        out->channels[i].session.fd = -1;
    int64_t deadline = hpct_now_ms() + (int64_t) run->join_seconds * 1000;
    hpct_comm_gone_begin();
    for (int i = out->first; i < run->servers && status == HPCT_OK; i++)
        status = reach_one(out, i, &hello, deadline);
    hpct_comm_gone_end();
    return status;
}

hpct_status hpct_ps_servers_again(const hpct_ps_servers *servers, hpct_net_session *session)
{
    const hpct_ps_run *run = servers->run;
    hpct_net_connecting connecting;
    int fd, patience_ms = 1000 * run->join_seconds;
    HPCT_TRY(hpct_net_link_connect(&fd, run->addresses[0], HPCT_NET_LINK_OUTAGE_MS + CONNECT_MS));
    HPCT_TRY(hpct_net_connecting_begin(&connecting, fd, hpct_context_auth(run->context),
                                       HPCT_AUTH_FOR_PS_PULSE, (uint32_t) run->index, 0));
    if (hpct_net_connecting_wait(&connecting, patience_ms, hpct_now_ms() + patience_ms, session) !=
        HPCT_NET_HANDSHAKE_DONE)
        return lost(servers, 0, "it takes no second connection");
    return HPCT_OK;
}
