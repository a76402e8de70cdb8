/* Messages and floats through a non-blocking socket. */
#include "agent/ps/channel.h"

#include "base/net/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define LINGER_MS 1000
#define CHUNK ((size_t) 128 << 10) /* bytes per call, sealed while they are in the cache */

void hpct_ps_channel_init(hpct_ps_channel *channel, const hpct_net_session *session)
{
    *channel = (hpct_ps_channel){
        .session = *session,
        .heard_ms = hpct_now_ms(),
        .silence_ms = hpct_net_link_silence_ms(session->fd, HPCT_NET_LINK_OUTAGE_MS)};
}

void hpct_ps_channel_close(hpct_ps_channel *channel)
{
    hpct_net_session_close(&channel->session);
}

bool hpct_ps_channel_sending(const hpct_ps_channel *channel)
{
    return channel->out_filled > 0 || channel->from[0].iov_len > 0 || channel->from[1].iov_len > 0;
}

struct pollfd hpct_ps_channel_poll(const hpct_ps_channel *channel)
{
    bool sending = hpct_ps_channel_sending(channel);
    return (struct pollfd){channel->session.fd, sending ? POLLIN | POLLOUT : POLLIN, 0};
}

/* Advances iov by the first `sent` bytes and adds them to the seal: as they were sent, in case the
 * caller changes them later. */
static void advance(hpct_auth_seal *seal, struct iovec *iov, size_t *sent)
{
    size_t part = *sent < iov->iov_len ? *sent : iov->iov_len;
    hpct_auth_seal_add(seal, iov->iov_base, part);
    iov->iov_base = (char *) iov->iov_base + part;
    iov->iov_len -= part;
    *sent -= part;
}

void hpct_ps_channel_flush(hpct_ps_channel *channel)
{
    while (channel->session.fd >= 0 && hpct_ps_channel_sending(channel)) {
        struct iovec all[1 + HPCT_PS_PIECES] = {{channel->out, channel->out_filled}};
        size_t room = CHUNK;
        for (int i = 0; i < HPCT_PS_PIECES; i++) {
            all[1 + i] = channel->from[i];
            if (all[1 + i].iov_len > room)
                all[1 + i].iov_len = room;
            room -= all[1 + i].iov_len;
        }
        struct msghdr message = {.msg_iov = all, .msg_iovlen = 1 + HPCT_PS_PIECES};
        ssize_t count = sendmsg(channel->session.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return; /* buffer full: later; broken: receive reports it */
        size_t sent = (size_t) count,
               header = sent < channel->out_filled ? sent : channel->out_filled;
        channel->out_filled -= header;
        memmove(channel->out, channel->out + header, channel->out_filled);
        sent -= header;
        for (int i = 0; i < HPCT_PS_PIECES; i++)
            advance(channel->session.out, &channel->from[i], &sent);
        if (channel->sealing && channel->from[0].iov_len == 0 && channel->from[1].iov_len == 0) {
            hpct_auth_seal_end(channel->session.out, channel->out);
            channel->out_filled = HPCT_AUTH_SEAL_TAG;
            channel->sealing = false;
        }
    }
}

bool hpct_ps_channel_send(hpct_ps_channel *channel, const hpct_ps_message *message,
                          const struct iovec *floats)
{
    if (channel->session.fd < 0 || channel->from[0].iov_len > 0 || channel->from[1].iov_len > 0 ||
        channel->out_filled + HPCT_PS_MESSAGE_BYTES > sizeof channel->out ||
        !hpct_ps_message_encode(channel->out + channel->out_filled, message, channel->session.out))
        return false;
    channel->out_filled += HPCT_PS_MESSAGE_BYTES;
    for (int i = 0; floats != NULL && i < HPCT_PS_PIECES; i++)
        channel->from[i] = floats[i];
    channel->sealing = floats != NULL && message->bytes > 0;
    hpct_ps_channel_flush(channel);
    return true;
}

void hpct_ps_channel_beat(hpct_ps_channel *channel, int64_t now)
{
    if (channel->session.fd < 0 || now < channel->beat_ms)
        return;
    channel->beat_ms = now + HPCT_NET_LINK_BEAT_MS;
    if (!hpct_ps_channel_sending(channel))
        hpct_ps_channel_send(channel, &(hpct_ps_message){.type = HPCT_PS_BEAT}, NULL);
}

/* Receives some bytes: 1, 0 if there are none now, -1 if the connection ended. */
static int receive_some(hpct_ps_channel *channel, void *into, size_t most, size_t *filled)
{
    ssize_t got;
    do
        got = recv(channel->session.fd, into, most, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (got <= 0)
        return -1;
    *filled += (size_t) got;
    channel->heard_ms = hpct_now_ms();
    return 1;
}

static size_t room(const hpct_ps_channel *channel)
{
    return channel->into[0].iov_len + channel->into[1].iov_len;
}

/* 1 when all floats and their tag were received (not verified yet), else 0 or -1 like take. */
static int take_floats(hpct_ps_channel *channel)
{
    int result = 1;
    while (channel->into_filled < room(channel) && result == 1) {
        size_t first = channel->into[0].iov_len, at = channel->into_filled;
        const struct iovec *piece = &channel->into[at < first ? 0 : 1];
        size_t skip = at < first ? at : at - first;
        uint8_t *into = (uint8_t *) piece->iov_base + skip;
        size_t left = piece->iov_len - skip;
        result = receive_some(channel, into, left < CHUNK ? left : CHUNK, &channel->into_filled);
        hpct_auth_seal_add(channel->session.in, into, channel->into_filled - at);
    }
    while (channel->tag_filled < HPCT_AUTH_SEAL_TAG && result == 1)
        result = receive_some(channel, channel->tag + channel->tag_filled,
                              HPCT_AUTH_SEAL_TAG - channel->tag_filled, &channel->tag_filled);
    return result;
}

hpct_ps_received hpct_ps_channel_receive(hpct_ps_channel *channel, hpct_ps_message *message)
{
    hpct_ps_message *got = &channel->message;
    int result = 1;
    while (channel->in_filled < HPCT_PS_MESSAGE_BYTES && result == 1) {
        result = receive_some(channel, channel->in + channel->in_filled,
                              HPCT_PS_MESSAGE_BYTES - channel->in_filled, &channel->in_filled);
        if (result != 1)
            return result == 0 ? HPCT_PS_NOTHING : HPCT_PS_CLOSED;
        if (channel->in_filled < HPCT_PS_MESSAGE_BYTES)
            continue;
        if (!hpct_ps_message_decode(got, channel->in, channel->session.in))
            goto garbage;
        channel->into_filled = channel->tag_filled = 0;
    }
    bool floats = got->type == HPCT_PS_PUSH || got->type == HPCT_PS_PARAMS;
    if (floats && got->bytes != room(channel))
        goto garbage;
    if (floats && got->bytes > 0) {
        result = take_floats(channel);
        if (result != 1)
            return result == 0 ? HPCT_PS_NOTHING : HPCT_PS_CLOSED;
        if (!hpct_auth_seal_check(channel->session.in, channel->tag))
            goto garbage;
    }
    channel->in_filled = 0;
    *message = *got;
    return HPCT_PS_GOT;

garbage:
    channel->in_filled = 0;
    return HPCT_PS_GARBAGE;
}

void hpct_ps_channel_linger(hpct_ps_channel *const *channels, int count)
{
    int64_t deadline = hpct_now_ms() + LINGER_MS;
    char discarded[65536];
    for (int i = 0; i < count; i++) {
        hpct_ps_channel_flush(channels[i]);
        if (channels[i]->session.fd >= 0)
            shutdown(channels[i]->session.fd, SHUT_WR);
    }
    for (int open = 1; open > 0 && hpct_now_ms() < deadline;) {
        open = 0;
        for (int i = 0; i < count; i++) {
            ssize_t got = 1;
            while (channels[i]->session.fd >= 0 && got > 0)
                got = recv(channels[i]->session.fd, discarded, sizeof discarded, MSG_DONTWAIT);
            if (channels[i]->session.fd >= 0 && (got == 0 || (errno != EAGAIN && errno != EINTR)))
                hpct_ps_channel_close(channels[i]);
            open += channels[i]->session.fd >= 0;
        }
        if (open > 0)
            poll(NULL, 0, 10);
    }
    for (int i = 0; i < count; i++)
        hpct_ps_channel_close(channels[i]);
}
