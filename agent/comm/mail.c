/* Letters over connections: per connection a queue of outgoing letters, each preceded by a header,
 * and one incoming letter at a time. */
#include "agent/comm/mail.h"

#include "agent/comm/peers.h"
#include "base/status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define EVENTS 64

typedef struct header {
    uint32_t tag;
    uint32_t zero;
    uint64_t bytes;
} header;

/* Connection to one rank. */
typedef struct line {
    int rank, fd; /* fd -1: none */
    hpct_comm_letter *first, *last;
    header out, in;
    size_t out_filled, in_filled; /* bytes of the headers sent and received */
    hpct_comm_letter *arriving;   /* whose header is in `in`; NULL: none, or not registered yet */
    bool held;                    /* `arriving` is not registered, or its buffer is not free yet */
    bool ended;                   /* the peer has closed the connection, and nothing is missing */
    bool full;                    /* the socket's send buffer is full */
    uint32_t interest;            /* current events of epoll */
    hpct_comm_letter **expected;
    int num_expected, room;
} line;

struct hpct_comm_mail {
    hpct_comm_peers *peers;
    int epoll, size;
    line *lines; /* [size] */
};

/* ---- opening ---- */

static hpct_status failed(const char *what)
{
    return hpct_fail(HPCT_ERR_INTERNAL, "%s: %s", what, strerror(errno));
}

/* Sets the events to wait for. */
static hpct_status set_interest(hpct_comm_mail *mail, line *l)
{
    uint32_t interest = (l->held || l->ended ? 0U : EPOLLIN) | (l->full ? EPOLLOUT : 0U);
    struct epoll_event event = {.events = interest, .data = {.ptr = l}};
    if (interest == l->interest)
        return HPCT_OK;
    l->interest = interest;
    return epoll_ctl(mail->epoll, EPOLL_CTL_MOD, l->fd, &event) == 0 ? HPCT_OK
                                                                     : failed("epoll_ctl");
}

static hpct_status add_lines(hpct_comm_mail *mail, const bool *wanted)
{
    for (int rank = 0; rank < mail->size; rank++) {
        line *l = &mail->lines[rank];
        struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = l}};
        *l = (line){.rank = rank, .fd = -1, .interest = EPOLLIN};
        if (!wanted[rank])
            continue;
        l->fd = hpct_comm_peers_fd(mail->peers, rank);
        if (epoll_ctl(mail->epoll, EPOLL_CTL_ADD, l->fd, &event) != 0)
            return failed("epoll_ctl");
    }
    return HPCT_OK;
}

hpct_status hpct_comm_mail_open(hpct_comm_mail **out, hpct_comm *comm, const bool *wanted,
                                int seconds)
{
    hpct_comm_mail *mail = calloc(1, sizeof *mail);
    if (mail != NULL) {
        mail->size = comm->size;
        mail->lines = calloc((size_t) comm->size, sizeof *mail->lines);
        mail->epoll = epoll_create1(EPOLL_CLOEXEC);
    }
    float missing = mail == NULL || mail->lines == NULL || mail->epoll < 0;
    hpct_status status = comm->ops->allreduce_sum(comm, &missing, 1);
    if (status == HPCT_OK && missing > 0)
        status = hpct_fail(HPCT_ERR_INTERNAL, "%.0f ranks have no memory or no epoll for messages",
                           (double) missing);
    if (status == HPCT_OK)
        status = hpct_comm_peers_open(&mail->peers, comm, wanted, seconds);
    if (status == HPCT_OK)
        status = add_lines(mail, wanted);
    if (status != HPCT_OK) {
        hpct_comm_mail_close(mail);
        return status;
    }
    *out = mail;
    return HPCT_OK;
}

void hpct_comm_mail_close(hpct_comm_mail *mail)
{
    if (mail == NULL)
        return;
    for (int rank = 0; mail->lines != NULL && rank < mail->size; rank++)
        free(mail->lines[rank].expected);
    if (mail->epoll >= 0)
        close(mail->epoll);
    hpct_comm_peers_close(mail->peers);
    free(mail->lines);
    free(mail);
}

int hpct_comm_mail_fd(const hpct_comm_mail *mail)
{
    return mail->epoll;
}

bool hpct_comm_mail_reaches(const hpct_comm_mail *mail, int rank)
{
    return mail != NULL && mail->lines[rank].fd >= 0;
}

/* ---- letters ---- */

hpct_status hpct_comm_mail_expect(hpct_comm_mail *mail, hpct_comm_letter *letter)
{
    line *l = &mail->lines[letter->rank];
    if (l->num_expected == l->room) {
        int room = l->room > 0 ? 2 * l->room : 16;
        hpct_comm_letter **expected =
            realloc(l->expected, (size_t) room * sizeof(hpct_comm_letter *));
        if (expected == NULL)
            return hpct_fail_memory((size_t) room * sizeof(hpct_comm_letter *));
        l->expected = expected;
        l->room = room;
    }
    l->expected[l->num_expected++] = letter;
    return HPCT_OK;
}

void hpct_comm_mail_forget(hpct_comm_mail *mail, hpct_comm_letter *letter)
{
    line *l = &mail->lines[letter->rank];
    if (l->arriving == letter)
        l->arriving = NULL;
    for (hpct_comm_letter **at = &l->first; *at != NULL; at = &(*at)->next) {
        if (*at == letter) {
            *at = letter->next;
            break;
        }
    }
    for (int i = 0; i < l->num_expected; i++) {
        if (l->expected[i] == letter)
            l->expected[i--] = l->expected[--l->num_expected];
    }
}

void hpct_comm_mail_renew(hpct_comm_letter *letter)
{
    letter->moved = 0;
    letter->asked = letter->through = false;
}

static hpct_status send_waiting(hpct_comm_mail *mail, line *l);

hpct_status hpct_comm_mail_start(hpct_comm_mail *mail, hpct_comm_letter *letter)
{
    line *l = &mail->lines[letter->rank];
    letter->asked = true;
    if (l->ended && !letter->through)
        return hpct_comm_peers_lost(l->rank, "the other end closed it");
    if (letter->receives)
        return HPCT_OK;
    letter->next = NULL;
    if (l->first == NULL)
        l->first = letter;
    else
        l->last->next = letter;
    l->last = letter;
    return l->full ? HPCT_OK : send_waiting(mail, l);
}

/* ---- progress ---- */

/* Whether this rank still has to send to or receive from the peer. */
static bool is_owed(const line *l)
{
    bool owed = l->first != NULL || l->in_filled > 0;
    for (int i = 0; i < l->num_expected; i++)
        owed = owed || (l->expected[i]->asked && !l->expected[i]->through);
    return owed;
}

/* Handles the result of send or recv. A peer that has finished may close its end while this rank
 * still waits for others. */
static hpct_status outcome(hpct_comm_mail *mail, line *l, ssize_t bytes)
{
    if (bytes > 0 || (bytes < 0 && (errno == EAGAIN || errno == EINTR)))
        return HPCT_OK;
    if (is_owed(l))
        return hpct_comm_peers_lost(l->rank,
                                    bytes == 0 ? "the other end closed it" : strerror(errno));
    l->ended = true;
    return epoll_ctl(mail->epoll, EPOLL_CTL_DEL, l->fd, NULL) == 0 ? HPCT_OK : failed("epoll_ctl");
}

static hpct_status send_waiting(hpct_comm_mail *mail, line *l)
{
    hpct_status status = HPCT_OK;
    while (l->first != NULL && status == HPCT_OK) {
        hpct_comm_letter *letter = l->first;
        l->out = (header){.tag = letter->tag, .bytes = letter->bytes};
        struct iovec pieces[] = {{(char *) &l->out + l->out_filled, sizeof l->out - l->out_filled},
                                 {letter->data + letter->moved, letter->bytes - letter->moved}};
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
        ssize_t bytes = sendmsg(l->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        status = outcome(mail, l, bytes);
        size_t sent = bytes > 0 ? (size_t) bytes : 0,
               of_header = sent < pieces[0].iov_len ? sent : pieces[0].iov_len;
        l->out_filled += of_header;
        letter->moved += sent - of_header;
        if (letter->moved < letter->bytes)
            break;
        letter->through = true;
        l->first = letter->next;
        l->out_filled = 0;
    }
    l->full = l->first != NULL;
    return status == HPCT_OK ? set_interest(mail, l) : status;
}

/* Finds the letter of a completely received header. */
static hpct_status find_place(line *l)
{
    for (int i = 0; i < l->num_expected && l->arriving == NULL; i++) {
        if (l->expected[i]->tag == l->in.tag)
            l->arriving = l->expected[i];
    }
    const hpct_comm_letter *letter = l->arriving;
    if (letter == NULL || l->in.bytes == letter->bytes ||
        (letter->up_to && l->in.bytes > 0 && l->in.bytes < letter->bytes))
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_INTERNAL,
                     "rank %d sent message %u of %llu bytes, where %zu are expected", l->rank,
                     l->in.tag, (unsigned long long) l->in.bytes, letter->bytes);
}

static bool has_place(const line *l)
{
    const hpct_comm_letter *letter = l->arriving;
    return letter != NULL && !letter->through && (letter->early || letter->asked);
}

static hpct_status receive_waiting(hpct_comm_mail *mail, line *l)
{
    hpct_status status = HPCT_OK;
    l->held = false;
    for (ssize_t bytes = 1; bytes > 0 && status == HPCT_OK;) {
        if (l->in_filled < sizeof l->in) {
            bytes = recv(l->fd, (char *) &l->in + l->in_filled, sizeof l->in - l->in_filled,
                         MSG_DONTWAIT);
            status = outcome(mail, l, bytes);
            l->in_filled += bytes > 0 ? (size_t) bytes : 0;
            continue;
        }
        status = find_place(l);
        l->held = status == HPCT_OK && !has_place(l);
        if (status != HPCT_OK || l->held)
            break;
        hpct_comm_letter *letter = l->arriving;
        bytes =
            recv(l->fd, letter->data + letter->moved, l->in.bytes - letter->moved, MSG_DONTWAIT);
        status = outcome(mail, l, bytes);
        letter->moved += bytes > 0 ? (size_t) bytes : 0;
        if (letter->moved == l->in.bytes) {
            letter->through = true;
            l->arriving = NULL;
            l->in_filled = 0;
        }
    }
    return status == HPCT_OK && !l->ended ? set_interest(mail, l) : status;
}

/* Whether a held connection can continue. */
static bool is_released(line *l)
{
    return l->held && (find_place(l) != HPCT_OK || has_place(l));
}

bool hpct_comm_mail_can_move(hpct_comm_mail *mail)
{
    bool any = false;
    for (int rank = 0; rank < mail->size && !any; rank++)
        any = is_released(&mail->lines[rank]);
    return any;
}

hpct_status hpct_comm_mail_move(hpct_comm_mail *mail, int wait_ms)
{
    struct epoll_event events[EVENTS];
    hpct_status status = HPCT_OK;
    for (int rank = 0; rank < mail->size && status == HPCT_OK; rank++) {
        if (is_released(&mail->lines[rank])) {
            status = receive_waiting(mail, &mail->lines[rank]);
            wait_ms = 0;
        }
    }
    int num = status == HPCT_OK ? epoll_wait(mail->epoll, events, EVENTS, wait_ms) : 0;
    if (num < 0 && errno != EINTR)
        return failed("epoll_wait");
    for (int i = 0; i < num && status == HPCT_OK; i++) {
        line *l = events[i].data.ptr;
        if (events[i].events & ~(uint32_t) EPOLLOUT)
            status = l->held ? HPCT_OK : receive_waiting(mail, l);
        if (status == HPCT_OK && (events[i].events & EPOLLOUT))
            status = send_waiting(mail, l);
    }
    return status;
}
