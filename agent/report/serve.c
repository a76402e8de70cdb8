/* A server of one page on the loopback interface. Few connections at a time, each with a limit of
 * time; a connection is for one request. */
#include "agent/report/report.h"
#include "agent/report/request.h"
#include "base/clock.h"
#include "base/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_CLIENTS 16
#define MOST_MS 10000 /* of a connection */
#define DRAIN_MS 1000 /* that its last bytes are waited for */
#define BACKLOG 16

typedef struct client {
    int fd; /* 0: none */
    char request[HPCT_REPORT_REQUEST_BYTES];
    size_t got;
    char *answer; /* NULL: the request is not complete */
    size_t size, sent;
    int64_t ends; /* of hpct_now_ms */
} client;

typedef struct server {
    const hpct_report_options *options;
    int listener, signals, port;
    client clients[MOST_CLIENTS];
} server;

/* ---- answers ---- */

static const char *reason(int code)
{
    switch (code) {
    case 200:
        return "OK";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Bad Request";
    }
}

static void write_answer(FILE *out, int code, const char *type, const char *body, size_t size)
{
    fprintf(out,
            "HTTP/1.1 %d %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n"
            "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
            "X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
            "Cross-Origin-Resource-Policy: same-origin\r\n%s\r\n",
            code, reason(code), type, size, code == 405 ? "Allow: GET\r\n" : "");
    fwrite(body, 1, size, out);
}

/* The page, or why there is none now. */
static void write_page(FILE *out, const hpct_report_options *options)
{
    char *page = NULL;
    size_t size;
    if (hpct_report_make_html(&page, &size, options, false) == HPCT_OK) {
        write_answer(out, 200, "text/html", page, size);
    } else {
        const char *why = hpct_last_error();
        write_answer(out, 503, "text/plain", why, strlen(why));
    }
    free(page);
}

static void answer(const server *s, client *c, int code)
{
    FILE *out = open_memstream(&c->answer, &c->size);
    if (out == NULL)
        return;
    if (code == 200)
        write_page(out, s->options);
    else
        write_answer(out, code, "text/plain", reason(code), strlen(reason(code)));
    if (fclose(out) != 0)
        c->size = 0;
    c->ends = hpct_now_ms() + MOST_MS;
}

/* ---- connections ---- */

static void end(client *c)
{
    if (c->fd != 0)
        close(c->fd);
    free(c->answer);
    c->fd = 0;
    c->got = c->size = c->sent = 0;
    c->answer = NULL;
}

static void accept_client(server *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (int i = 0; i < MOST_CLIENTS && fd > 0; i++) {
        client *c = &s->clients[i];
        if (c->fd != 0)
            continue;
        c->fd = fd;
        c->ends = hpct_now_ms() + MOST_MS;
        return;
    }
    if (fd >= 0)
        close(fd);
}

static void receive(const server *s, client *c)
{
    ssize_t got = recv(c->fd, c->request + c->got, sizeof c->request - c->got, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        end(c);
        return;
    }
    c->got += (size_t) got;
    int code = hpct_report_request(c->request, c->got, s->port);
    if (code != 0)
        answer(s, c, code);
    if (code != 0 && c->answer == NULL)
        end(c);
}

/* What the client still sends is read: else the kernel would drop the answer's end. */
static void drain(client *c)
{
    ssize_t got = recv(c->fd, c->request, sizeof c->request, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        end(c);
}

static void transmit(client *c)
{
    ssize_t sent = send(c->fd, c->answer + c->sent, c->size - c->sent, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (sent < 0) {
        end(c);
        return;
    }
    c->sent += (size_t) sent;
    if (c->sent == c->size) {
        shutdown(c->fd, SHUT_WR);
        c->ends = hpct_now_ms() + DRAIN_MS;
    }
}

static bool is_sending(const client *c)
{
    return c->answer != NULL && c->sent < c->size;
}

static void serve_client(const server *s, client *c, short events)
{
    if (events == 0)
        return;
    if (c->answer == NULL)
        receive(s, c);
    else if (is_sending(c))
        transmit(c);
    else
        drain(c);
}

/* ---- the server ---- */

/* Fills fds[2 + MOST_CLIENTS]; returns how long to wait at most. Ends what is too late. */
static int prepare(server *s, struct pollfd *fds)
{
    int64_t now = hpct_now_ms(), wait = -1;
    bool full = true;
    for (int i = 0; i < MOST_CLIENTS; i++) {
        client *c = &s->clients[i];
        if (c->fd != 0 && c->ends <= now)
            end(c);
        full &= c->fd != 0;
        fds[2 + i] = (struct pollfd){.fd = c->fd != 0 ? c->fd : -1,
                                     .events = is_sending(c) ? POLLOUT : POLLIN};
        if (c->fd != 0 && (wait < 0 || c->ends - now < wait))
            wait = c->ends - now;
    }
    fds[0] = (struct pollfd){.fd = s->signals, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = full ? -1 : s->listener, .events = POLLIN};
    return (int) wait;
}

static hpct_status loop(server *s)
{
    struct pollfd fds[2 + MOST_CLIENTS];
    for (;;) {
        int wait = prepare(s, fds);
        if (poll(fds, 2 + MOST_CLIENTS, wait) < 0 && errno != EINTR)
            return hpct_fail(HPCT_ERR_INTERNAL, "poll failed: %s", strerror(errno));
        if (fds[0].revents != 0)
            return HPCT_OK;
        for (int i = 0; i < MOST_CLIENTS; i++)
            serve_client(s, &s->clients[i], fds[2 + i].fd >= 0 ? fds[2 + i].revents : (short) 0);
        if (fds[1].revents != 0)
            accept_client(s);
    }
}

static hpct_status bind_to(server *s, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t) port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener < 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "no socket: %s", strerror(errno));
    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(s->listener, (struct sockaddr *) &address, sizeof address) != 0 ||
        listen(s->listener, BACKLOG) != 0 ||
        getsockname(s->listener, (struct sockaddr *) &address, &length) != 0)
        return hpct_fail(HPCT_ERR_CONFIG, "--watch: port %d of 127.0.0.1 cannot be used: %s", port,
                         strerror(errno));
    s->port = ntohs(address.sin_port);
    return HPCT_OK;
}

static hpct_status catch_signals(server *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals >= 0 ? HPCT_OK
                           : hpct_fail(HPCT_ERR_INTERNAL, "no signalfd: %s", strerror(errno));
}

hpct_status hpct_report_serve(const hpct_report_options *options, int port)
{
    char *page = NULL;
    size_t size;
    HPCT_TRY(hpct_report_make_html(&page, &size, options, true));
    free(page);
    server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return hpct_fail_memory(sizeof *s);
    s->options = options;
    s->listener = s->signals = -1;
    hpct_status status = bind_to(s, port);
    if (status == HPCT_OK)
        status = catch_signals(s);
    if (status == HPCT_OK) {
        printf("http://127.0.0.1:%d/ (Ctrl-C ends it)\n", s->port);
        fflush(stdout);
        status = loop(s);
    }
    for (int i = 0; i < MOST_CLIENTS; i++)
        end(&s->clients[i]);
    if (s->signals >= 0)
        close(s->signals);
    if (s->listener >= 0)
        close(s->listener);
    free(s);
    return status;
}
