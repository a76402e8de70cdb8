/* A header is 32 bytes, big-endian: magic, version, type, 0, 0, size, checksum of the header,
 * sequence, hash of the data. */
#include <config.h>

#include "spank/stage/net/broadcast_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/net/link.h"
#include "base/status.h"
#include "spank/stage/tree/hash.h"

/* ---- frames ---- */

enum {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_TYPE = 5,
    AT_SIZE = 8,
    AT_CHECK = 12,
    AT_SEQUENCE = 16,
    AT_HASH = 24
};

static const uint8_t magic[4] = {'H', 'P', 'C', 'B'};
#define FRAME_VERSION 1

/* Checksum of the header without the checksum field. */
static uint32_t check_of(const uint8_t *header)
{
    uint8_t rest[HPCT_STAGE_WIRE_HEADER];
    memcpy(rest, header, sizeof rest);
    memset(rest + AT_CHECK, 0, 4);
    return (uint32_t) hpct_stage_hash(rest, sizeof rest);
}

/* The most data of each type; others have none. */
static const uint32_t most_data[HPCT_STAGE_WIRE_BYE + 1] = {
    [HPCT_STAGE_WIRE_CHALLENGE] = HPCT_STAGE_GREETING_BYTES,
    [HPCT_STAGE_WIRE_HELLO] = HPCT_STAGE_GREETING_BYTES,
    [HPCT_STAGE_WIRE_WELCOME] = HPCT_STAGE_GREETING_BYTES,
    [HPCT_STAGE_WIRE_BLOCK] = HPCT_STAGE_BLOCK_BYTES,
    [HPCT_STAGE_WIRE_LETTER] = HPCT_STAGE_LETTER_BYTES,
    [HPCT_STAGE_WIRE_GATHER] = HPCT_STAGE_LETTER_BYTES,
    [HPCT_STAGE_WIRE_FAIL] = HPCT_STAGE_WIRE_FAILURE_MAX,
};

void hpct_stage_wire_encode_again(uint8_t out[HPCT_STAGE_WIRE_HEADER],
                                  const hpct_stage_wire_header *header)
{
    memset(out, 0, HPCT_STAGE_WIRE_HEADER);
    memcpy(out + AT_MAGIC, magic, sizeof magic);
    out[AT_VERSION] = FRAME_VERSION;
    out[AT_TYPE] = (uint8_t) header->type;
    hpct_put(out + AT_SIZE, header->size, 4);
    hpct_put(out + AT_SEQUENCE, header->sequence, 8);
    hpct_put(out + AT_HASH, header->hash, 8);
    hpct_put(out + AT_CHECK, check_of(out), 4);
}

void hpct_stage_wire_encode(uint8_t out[HPCT_STAGE_WIRE_HEADER], hpct_stage_wire_header *header,
                            const void *data)
{
    header->hash = hpct_stage_hash(data, header->size);
    hpct_stage_wire_encode_again(out, header);
}

bool hpct_stage_wire_decode(hpct_stage_wire_header *out, const uint8_t in[HPCT_STAGE_WIRE_HEADER])
{
    if (memcmp(in + AT_MAGIC, magic, sizeof magic) != 0 || in[AT_VERSION] != FRAME_VERSION ||
        in[AT_TYPE] < HPCT_STAGE_WIRE_CHALLENGE || in[AT_TYPE] > HPCT_STAGE_WIRE_BYE ||
        in[AT_TYPE + 1] != 0 || in[AT_TYPE + 2] != 0 ||
        (uint32_t) hpct_get(in + AT_CHECK, 4) != check_of(in))
        return false;
    out->type = (hpct_stage_wire_type) in[AT_TYPE];
    out->size = (uint32_t) hpct_get(in + AT_SIZE, 4);
    out->sequence = hpct_get(in + AT_SEQUENCE, 8);
    out->hash = hpct_get(in + AT_HASH, 8);
    return out->size <= most_data[out->type];
}

bool hpct_stage_wire_check(const hpct_stage_wire_header *header, const void *data)
{
    return hpct_stage_hash(data, header->size) == header->hash;
}

size_t hpct_stage_wire_put_failure(uint8_t out[HPCT_STAGE_WIRE_FAILURE_MAX],
                                   const hpct_stage_wire_failure *failure)
{
    size_t length = strnlen(failure->text, sizeof failure->text - 1);
    hpct_put(out, failure->node, 4);
    out[4] = failure->status;
    memcpy(out + 5, failure->text, length);
    return 5 + length;
}

bool hpct_stage_wire_get_failure(hpct_stage_wire_failure *out, const uint8_t *in, size_t size)
{
    size_t length = size - 5;
    if (size < 5 || length >= sizeof out->text)
        return false;
    out->node = (uint32_t) hpct_get(in, 4);
    out->status = in[4];
    memcpy(out->text, in + 5, length);
    out->text[length] = '\0';
    for (size_t i = 0; i < length; i++) { /* the text is printed on a terminal */
        if ((unsigned char) out->text[i] < 0x20 || out->text[i] == 0x7f)
            out->text[i] = '?';
    }
    return out->status != 0;
}

/* ---- connections ---- */

#define MAX_QUEUE (4u << 20) /* bytes of letters that the peer has not read */

void hpct_stage_link_open(hpct_stage_link *link, int fd)
{
    *link = (hpct_stage_link){.fd = fd,
                              .silence = hpct_net_link_silence_ms(fd, HPCT_STAGE_OUTAGE_MS),
                              .received_at = hpct_now_ms(),
                              .sent_at = hpct_now_ms()};
}

void hpct_stage_link_close(hpct_stage_link *link, bool reset)
{
    const struct linger at_once = {.l_onoff = 1};
    if (link->fd >= 0) {
        if (reset)
            setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(link->fd);
    }
    free(link->letter);
    free(link->out);
    *link = (hpct_stage_link){.fd = -1};
}

void hpct_stage_link_next(hpct_stage_link *link)
{
    free(link->letter);
    link->letter = link->data = NULL;
    link->filled = 0;
}

static hpct_stage_link_result read_some(hpct_stage_link *link, uint8_t *to, size_t size)
{
    for (;;) {
        ssize_t got = recv(link->fd, to, size, MSG_DONTWAIT);
        if (got > 0) {
            link->filled += (size_t) got;
            link->received_at = hpct_now_ms();
            return HPCT_STAGE_LINK_FRAME;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return HPCT_STAGE_LINK_WAIT;
        return HPCT_STAGE_LINK_CLOSED;
    }
}

hpct_stage_link_result hpct_stage_link_read(hpct_stage_link *link, uint32_t most)
{
    while (link->filled < HPCT_STAGE_WIRE_HEADER) {
        hpct_stage_link_result result =
            read_some(link, link->head + link->filled, HPCT_STAGE_WIRE_HEADER - link->filled);
        if (result != HPCT_STAGE_LINK_FRAME)
            return result;
        if (link->filled < HPCT_STAGE_WIRE_HEADER)
            continue;
        if (!hpct_stage_wire_decode(&link->header, link->head) || link->header.size > most)
            return HPCT_STAGE_LINK_DAMAGED;
        return HPCT_STAGE_LINK_HEADER;
    }
    size_t whole = HPCT_STAGE_WIRE_HEADER + (size_t) link->header.size;
    if (link->data == NULL) {
        link->data = link->letter = malloc((size_t) link->header.size + 1);
        if (link->data == NULL)
            return HPCT_STAGE_LINK_DAMAGED;
    }
    while (link->filled < whole) {
        hpct_stage_link_result result = read_some(
            link, link->data + (link->filled - HPCT_STAGE_WIRE_HEADER), whole - link->filled);
        if (result != HPCT_STAGE_LINK_FRAME)
            return result;
    }
    return hpct_stage_wire_check(&link->header, link->data) ? HPCT_STAGE_LINK_FRAME
                                                            : HPCT_STAGE_LINK_DAMAGED;
}

static bool make_room(hpct_stage_link *link, size_t more)
{
    size_t need = link->out_size + more;
    if (need > MAX_QUEUE)
        return false;
    if (need > link->out_room) {
        uint8_t *out = realloc(link->out, need);
        if (out == NULL)
            return false;
        link->out = out;
        link->out_room = need;
    }
    return true;
}

bool hpct_stage_link_follow(hpct_stage_link *link, hpct_stage_link *other)
{
    bool done = other->out_size == 0 || make_room(link, other->out_size);
    if (done && other->out_size > 0) {
        memcpy(link->out + link->out_size, other->out, other->out_size);
        link->out_size += other->out_size;
    }
    hpct_stage_link_close(other, false);
    return done;
}

bool hpct_stage_link_queue(hpct_stage_link *link, hpct_stage_wire_type type, uint64_t sequence,
                           const void *data, uint32_t size)
{
    hpct_stage_wire_header header = {.type = type, .size = size, .sequence = sequence};
    if (!make_room(link, HPCT_STAGE_WIRE_HEADER + (size_t) size))
        return false;
    hpct_stage_wire_encode(link->out + link->out_size, &header, data == NULL ? "" : data);
    if (size > 0)
        memcpy(link->out + link->out_size + HPCT_STAGE_WIRE_HEADER, data, size);
    link->out_size += HPCT_STAGE_WIRE_HEADER + (size_t) size;
    link->sent_at = hpct_now_ms();
    return true;
}

bool hpct_stage_link_flushed(const hpct_stage_link *link)
{
    return link->out_sent == link->out_size;
}

bool hpct_stage_link_flush(hpct_stage_link *link)
{
    while (link->out_sent < link->out_size) {
        ssize_t put = send(link->fd, link->out + link->out_sent, link->out_size - link->out_sent,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        link->out_sent += (size_t) put;
    }
    link->out_sent = link->out_size = 0;
    return true;
}

bool hpct_stage_link_send(hpct_stage_link *link, const uint8_t head[HPCT_STAGE_WIRE_HEADER],
                          const uint8_t *data, size_t size, size_t *sent)
{
    size_t whole = HPCT_STAGE_WIRE_HEADER + size;
    while (*sent < whole) {
        size_t in_head = *sent < HPCT_STAGE_WIRE_HEADER ? HPCT_STAGE_WIRE_HEADER - *sent : 0;
        size_t in_data = *sent < HPCT_STAGE_WIRE_HEADER ? 0 : *sent - HPCT_STAGE_WIRE_HEADER;
        /* not const in struct iovec, but sendmsg only reads */
        struct iovec parts[2] = {
            {.iov_base = (void *) (uintptr_t) (head + HPCT_STAGE_WIRE_HEADER - in_head),
             .iov_len = in_head},
            {.iov_base = (void *) (uintptr_t) (data + in_data), .iov_len = size - in_data},
        };
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t put = sendmsg(link->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        *sent += (size_t) put;
    }
    return true;
}
