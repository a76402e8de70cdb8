/* Messages and floats through a socket that never blocks. */
#include "agent/ps/channel.h"

#include "agent/comm/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define LINGER_MS 1000

void hpct_ps_channel_init(hpct_ps_channel *channel, int fd)
{
    hpct_link link;
    hpct_link_init(&link, fd); /* the socket's options */
    *channel = (hpct_ps_channel){.fd = fd, .heard_ms = hpct_link_now_ms()};
}

void hpct_ps_channel_close(hpct_ps_channel *channel)
{
    hpct_link link = {.fd = channel->fd};
    hpct_link_close(&link);
    channel->fd = -1;
}

bool hpct_ps_channel_sending(const hpct_ps_channel *channel)
{
    return channel->out_filled > 0 || channel->from[0].iov_len > 0 || channel->from[1].iov_len > 0;
}

/* What is left of iov behind the first `sent` bytes. */
static void advance(struct iovec *iov, size_t *sent)
{
    size_t part = *sent < iov->iov_len ? *sent : iov->iov_len;
    iov->iov_base = (char *) iov->iov_base + part;
    iov->iov_len -= part;
    *sent -= part;
}

void hpct_ps_channel_flush(hpct_ps_channel *channel)
{
    while (channel->fd >= 0 && hpct_ps_channel_sending(channel)) {
        struct iovec all[1 + HPCT_PS_PIECES] = {{channel->out, channel->out_filled}};
        for (int i = 0; i < HPCT_PS_PIECES; i++)
            all[1 + i] = channel->from[i];
        struct msghdr message = {.msg_iov = all, .msg_iovlen = 1 + HPCT_PS_PIECES};
        ssize_t count = sendmsg(channel->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return; /* full: later; broken: reading will tell */
        size_t sent = (size_t) count,
               header = sent < channel->out_filled ? sent : channel->out_filled;
        channel->out_filled -= header;
        memmove(channel->out, channel->out + header, channel->out_filled);
        sent -= header;
        for (int i = 0; i < HPCT_PS_PIECES; i++)
            advance(&channel->from[i], &sent);
    }
}

bool hpct_ps_channel_send(hpct_ps_channel *channel, const hpct_ps_message *message,
                          const uint8_t token[HPCT_TOKEN_BYTES], const struct iovec *floats)
{
    if (channel->fd < 0 || channel->from[0].iov_len > 0 || channel->from[1].iov_len > 0 ||
        channel->out_filled + HPCT_PS_MESSAGE_BYTES > sizeof channel->out)
        return false;
    hpct_ps_message_encode(channel->out + channel->out_filled, message, token);
    channel->out_filled += HPCT_PS_MESSAGE_BYTES;
    for (int i = 0; floats != NULL && i < HPCT_PS_PIECES; i++)
        channel->from[i] = floats[i];
    hpct_ps_channel_flush(channel);
    return true;
}

void hpct_ps_channel_beat(hpct_ps_channel *channel, int64_t now,
                          const uint8_t token[HPCT_TOKEN_BYTES])
{
    if (channel->fd < 0 || now < channel->beat_ms)
        return;
    channel->beat_ms = now + HPCT_PS_BEAT_MS;
    if (!hpct_ps_channel_sending(channel))
        hpct_ps_channel_send(channel, &(hpct_ps_message){.type = HPCT_PS_BEAT}, token, NULL);
}

/* Some bytes; 1, or 0 when there are none now, or -1. */
static int take(hpct_ps_channel *channel, void *into, size_t most, size_t *filled)
{
    ssize_t got;
    do
        got = recv(channel->fd, into, most, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (got <= 0)
        return -1;
    *filled += (size_t) got;
    channel->heard_ms = hpct_link_now_ms();
    return 1;
}

static size_t room(const hpct_ps_channel *channel)
{
    return channel->into[0].iov_len + channel->into[1].iov_len;
}

/* 1 when all floats have come; else as take. */
static int take_floats(hpct_ps_channel *channel)
{
    int result = 1;
    while (channel->into_filled < room(channel) && result == 1) {
        size_t first = channel->into[0].iov_len, at = channel->into_filled;
        const struct iovec *piece = &channel->into[at < first ? 0 : 1];
        size_t skip = at < first ? at : at - first;
        result = take(channel, (char *) piece->iov_base + skip, piece->iov_len - skip,
                      &channel->into_filled);
    }
    return result;
}

hpct_ps_received hpct_ps_channel_receive(hpct_ps_channel *channel, hpct_ps_message *message,
                                         const uint8_t token[HPCT_TOKEN_BYTES])
{
    int result = 1;
    while (channel->in_filled < HPCT_PS_MESSAGE_BYTES && result == 1) {
        result = take(channel, channel->in + channel->in_filled,
                      HPCT_PS_MESSAGE_BYTES - channel->in_filled, &channel->in_filled);
        if (result != 1)
            return result == 0 ? HPCT_PS_NOTHING : HPCT_PS_CLOSED;
        if (channel->in_filled < HPCT_PS_MESSAGE_BYTES)
            continue;
        if (!hpct_ps_message_decode(&channel->message, channel->in, token))
            return HPCT_PS_GARBAGE;
        channel->into_filled = 0;
    }
    const hpct_ps_message *got = &channel->message;
    if (got->type == HPCT_PS_PUSH || got->type == HPCT_PS_PARAMS) {
        if (got->bytes != room(channel))
            return HPCT_PS_GARBAGE;
        result = take_floats(channel);
        if (result != 1)
            return result == 0 ? HPCT_PS_NOTHING : HPCT_PS_CLOSED;
    }
    channel->in_filled = 0;
    *message = *got;
    return HPCT_PS_GOT;
}

void hpct_ps_channel_linger(hpct_ps_channel *const *channels, int count)
{
    int64_t deadline = hpct_link_now_ms() + LINGER_MS;
    char discarded[65536];
    for (int i = 0; i < count; i++) {
        hpct_ps_channel_flush(channels[i]);
        if (channels[i]->fd >= 0)
            shutdown(channels[i]->fd, SHUT_WR);
    }
    for (int open = 1; open > 0 && hpct_link_now_ms() < deadline;) {
        open = 0;
        for (int i = 0; i < count; i++) {
            ssize_t got = 1;
            while (channels[i]->fd >= 0 && got > 0)
                got = recv(channels[i]->fd, discarded, sizeof discarded, MSG_DONTWAIT);
            if (channels[i]->fd >= 0 && (got == 0 || (errno != EAGAIN && errno != EINTR)))
                hpct_ps_channel_close(channels[i]);
            open += channels[i]->fd >= 0;
        }
        if (open > 0)
            poll(NULL, 0, 10);
    }
    for (int i = 0; i < count; i++)
        hpct_ps_channel_close(channels[i]);
}
