/* A thread that sleeps in poll. */
#include "agent/ps/pulse.h"

#include "agent/comm/link.h"
#include "agent/ps/channel.h"
#include "base/status.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define JUMP_MS 500 /* a turn this much late: it was us who did not run */

struct hpct_ps_pulse {
    const hpct_ps_run *run;
    hpct_ps_channel channel;
    int wake_fd;
    pthread_t thread;
};

static void give_up(const hpct_ps_pulse *pulse, const char *what, const char *how)
{
    dprintf(STDERR_FILENO, "%shpc-train: %s: %s%s; ending with exit code %d\n",
            isatty(STDERR_FILENO) ? "\n" : "", pulse->run->name, what, how, HPCT_ERR_PEER);
    _exit(HPCT_ERR_PEER);
}

static void hear(hpct_ps_pulse *pulse)
{
    char server[160];
    hpct_ps_message message;
    hpct_ps_received received;
    hpct_ps_run_server(pulse->run, 0, server);
    while ((received = hpct_ps_channel_receive(&pulse->channel, &message)) == HPCT_PS_GOT) {
        if (message.type == HPCT_PS_LOST)
            give_up(pulse, message.text, "");
    }
    if (received == HPCT_PS_CLOSED)
        give_up(pulse, server,
                " was lost: its connection closed (the process was killed or ended early)");
    if (received == HPCT_PS_GARBAGE)
        give_up(pulse, server, " was lost: it sent what no server of this run sends");
}

static void *pulse_main(void *argument)
{
    hpct_ps_pulse *pulse = argument;
    hpct_ps_channel *channel = &pulse->channel;
    char server[160];
    int64_t turn = hpct_link_now_ms();
    for (;;) {
        struct pollfd polls[2] = {{pulse->wake_fd, POLLIN, 0}, {channel->session.fd, POLLIN, 0}};
        poll(polls, 2, HPCT_PS_BEAT_MS);
        int64_t now = hpct_link_now_ms();
        if (now - turn > HPCT_PS_BEAT_MS + JUMP_MS)
            channel->heard_ms += now - turn;
        turn = now;
        if (polls[0].revents != 0)
            return NULL;
        hear(pulse);
        if (now - channel->heard_ms > HPCT_PS_SILENCE_MS)
            give_up(pulse, hpct_ps_run_server(pulse->run, 0, server),
                    " was lost: no sign of life for 6 s (stopped, or its node is gone)");
        hpct_ps_channel_flush(channel);
        hpct_ps_channel_beat(channel, now);
    }
}

hpct_status hpct_ps_pulse_start(hpct_ps_pulse **out, const hpct_ps_run *run, hpct_session *session)
{
    sigset_t all, before;
    hpct_ps_pulse *pulse = calloc(1, sizeof *pulse);
    if (pulse == NULL) {
        hpct_session_close(session);
        return hpct_fail_memory(sizeof *pulse);
    }
    pulse->run = run;
    pulse->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    hpct_ps_channel_init(&pulse->channel, session);
    hpct_ps_message hello = {.type = HPCT_PS_HELLO,
                             .from = HPCT_PS_FROM_PULSE,
                             .index = (uint32_t) run->index,
                             .plan = run->plan};
    hpct_ps_channel_send(&pulse->channel, &hello, NULL);
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error =
        pulse->wake_fd < 0 ? errno : pthread_create(&pulse->thread, NULL, pulse_main, pulse);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        if (pulse->wake_fd >= 0)
            close(pulse->wake_fd);
        hpct_ps_channel_close(&pulse->channel);
        free(pulse);
        return hpct_fail(HPCT_ERR_INTERNAL, "cannot start a thread: %s", strerror(error));
    }
    *out = pulse;
    return HPCT_OK;
}

void hpct_ps_pulse_stop(hpct_ps_pulse *pulse)
{
    uint64_t one = 1;
    if (pulse == NULL)
        return;
    while (write(pulse->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
    pthread_join(pulse->thread, NULL);
    hpct_ps_channel_close(&pulse->channel);
    close(pulse->wake_fd);
    free(pulse);
}
