/* intruder: what may come to a port where hpc-train-stage awaits other nodes, for the tests.
 *
 *     intruder garbage HOST PORT            random bytes, and goes on until it is thrown out
 *     intruder silent HOST PORT             80 connections that say nothing, for ten seconds
 *     intruder slow HOST PORT               a header, a byte at a time, for ten seconds
 *     intruder hello HOST PORT JOB FROM TO  all that a node would say, but with the caller's own
 *                                           credential: is it welcome?
 *     intruder proxy PORT HOST PORT flip|cut AFTER    passes everything on, and after so many bytes
 *                                           towards the caller changes a byte, or ends
 *     intruder replay PORT HOST PORT        passes everything on, and says each hello once more
 *
 * Ends with 0 when it was not let in (hello: 1 when it was). */
#include <config.h>

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/net/link.h"
#include "spank/stage/net/broadcast_auth.h"
#include "spank/stage/net/broadcast_link.h"

static int reach(const char *host, const char *port)
{
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    for (int i = 0; i < 100; i++) {
        int fd = -1;
        if (getaddrinfo(host, port, &hints, &found) != 0)
            exit(2);
        fd = socket(found->ai_family, SOCK_STREAM, 0);
        int error = connect(fd, found->ai_addr, found->ai_addrlen);
        freeaddrinfo(found);
        if (error == 0)
            return fd;
        close(fd);
        usleep(100000);
    }
    fprintf(stderr, "intruder: nobody listens on %s:%s\n", host, port);
    exit(2);
}

static void put(int fd, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        ssize_t sent = send(fd, p, size, MSG_NOSIGNAL);
        if (sent < 0)
            return;
        p += sent;
        size -= (size_t) sent;
    }
}

static bool get(int fd, void *data, size_t size)
{
    char *p = data;
    while (size > 0) {
        ssize_t got = recv(fd, p, size, 0);
        if (got <= 0)
            return false;
        p += got;
        size -= (size_t) got;
    }
    return true;
}

/* True when the other end closed within the time. */
static bool thrown_out(int fd, int milliseconds)
{
    char bytes[4096];
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (poll(&wait, 1, milliseconds) > 0) {
        if (recv(fd, bytes, sizeof bytes, 0) <= 0)
            return true;
    }
    return false;
}

static int garbage(char **argv)
{
    char bytes[8192];
    for (int i = 0; i < 20; i++) {
        int fd = reach(argv[2], argv[3]);
        if (getrandom(bytes, sizeof bytes, 0) < 0)
            return 2;
        put(fd, bytes, i % 2 == 0 ? sizeof bytes : 40);
        if (!thrown_out(fd, 5000))
            return 1;
        close(fd);
    }
    return 0;
}

static int silent(char **argv)
{
    for (int i = 0; i < 80; i++)
        reach(argv[2], argv[3]);
    sleep(10);
    return 0;
}

static int slow(char **argv)
{
    uint8_t head[HPCT_STAGE_WIRE_HEADER];
    hpct_stage_wire_header header = {.type = HPCT_STAGE_WIRE_HELLO, .size = 4000};
    int fd = reach(argv[2], argv[3]);
    hpct_stage_wire_encode_again(head, &header);
    put(fd, head, sizeof head);
    for (int i = 0; i < 200; i++) {
        put(fd, "x", 1);
        if (thrown_out(fd, 100))
            return 0;
    }
    return 1;
}

/* A frame whole, or false. */
static bool get_frame(int fd, hpct_stage_wire_header *header, uint8_t *data)
{
    uint8_t head[HPCT_STAGE_WIRE_HEADER];
    return get(fd, head, sizeof head) && hpct_stage_wire_decode(header, head) &&
           header->size <= HPCT_STAGE_GREETING_BYTES && get(fd, data, header->size);
}

static int hello(char **argv)
{
    uint8_t head[HPCT_STAGE_WIRE_HEADER], data[HPCT_STAGE_GREETING_BYTES];
    hpct_stage_wire_header header;
    char *credential = NULL;
    int fd = reach(argv[2], argv[3]);
    hpct_stage_auth_claim claim = {.run = argv[4],
                                   .channel = 0,
                                   .connector = (uint32_t) atoi(argv[5]),
                                   .listener = (uint32_t) atoi(argv[6])};
    if (!get_frame(fd, &header, data) || header.type != HPCT_STAGE_WIRE_CHALLENGE)
        return 2;
    memcpy(claim.challenge, data, HPCT_STAGE_NONCE_BYTES);
    if (hpct_stage_auth_make(&claim, &credential) != HPCT_OK)
        return 2;
    header = (hpct_stage_wire_header){.type = HPCT_STAGE_WIRE_HELLO,
                                      .size = (uint32_t) strlen(credential)};
    hpct_stage_wire_encode(head, &header, credential);
    put(fd, head, sizeof head);
    put(fd, credential, header.size);
    return get_frame(fd, &header, data) && header.type == HPCT_STAGE_WIRE_WELCOME;
}

/* ---- in the middle ---- */

/* Says a hello that was heard to the node it was for, on a connection of its own. */
static void say_again(char **argv, const uint8_t *hello_frame, size_t size)
{
    uint8_t data[HPCT_STAGE_GREETING_BYTES];
    hpct_stage_wire_header header;
    int fd = reach(argv[3], argv[4]);
    if (get_frame(fd, &header, data))
        put(fd, hello_frame, size);
    if (get_frame(fd, &header, data)) {
        fprintf(stderr, "intruder: a hello said again was welcome\n");
        _exit(1);
    }
    _exit(0);
}

static void pass_on(char **argv, int caller)
{
    const bool replay = strcmp(argv[1], "replay") == 0;
    long after = replay ? 0 : atol(argv[6]), passed = 0;
    static uint8_t bytes[65536];
    int node = reach(argv[3], argv[4]);
    bool first = true;
    struct pollfd wait[2] = {{.fd = caller, .events = POLLIN}, {.fd = node, .events = POLLIN}};
    for (;;) {
        if (poll(wait, 2, -1) < 0)
            _exit(2);
        if (wait[0].revents != 0) {
            ssize_t got = recv(caller, bytes, sizeof bytes, 0);
            if (got <= 0)
                _exit(0);
            if (replay && first && fork() == 0)
                say_again(argv, bytes, (size_t) got);
            first = false;
            put(node, bytes, (size_t) got);
        }
        if (wait[1].revents != 0) {
            ssize_t got = recv(node, bytes, sizeof bytes, 0);
            if (got <= 0)
                _exit(0);
            if (!replay && passed <= after && passed + got > after) {
                if (strcmp(argv[5], "cut") == 0)
                    _exit(0);
                bytes[after - passed] ^= 0x10;
            }
            passed += got;
            put(caller, bytes, (size_t) got);
        }
    }
}

static int proxy(char **argv)
{
    int fd = hpct_net_link_open(atoi(argv[2]), 128, HPCT_STAGE_REPEAT_MS);
    if (fd < 0) {
        perror("intruder: listen");
        return 2;
    }
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (poll(&wait, 1, 30000) > 0) {
        int caller = accept(fd, NULL, NULL);
        if (caller < 0)
            continue;
        if (fork() == 0)
            pass_on(argv, caller);
        close(caller);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "garbage") == 0)
        return garbage(argv);
    if (argc == 4 && strcmp(argv[1], "silent") == 0)
        return silent(argv);
    if (argc == 4 && strcmp(argv[1], "slow") == 0)
        return slow(argv);
    if (argc == 7 && strcmp(argv[1], "hello") == 0)
        return hello(argv);
    if ((argc == 7 && strcmp(argv[1], "proxy") == 0) ||
        (argc == 5 && strcmp(argv[1], "replay") == 0))
        return proxy(argv);
    fprintf(stderr, "usage: intruder garbage|silent|slow|hello|proxy|replay ...\n");
    return 64;
}
