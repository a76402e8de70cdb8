/* stranger WAY HOST PORT [ARGUMENT...]: somebody on the cluster's network who talks to a port of a
 * step. Each way ends by itself.
 *   attack SECONDS             all that follows without a key, side by side and again and again
 *   flood SECONDS              the same, as often as the cores can do it
 *   idle NUMBER SECONDS        so many connections that say nothing
 *   hello KEY RUN PURPOSE FROM TO   the whole handshake, with the key in that file ("-": one of his
 * own); prints how far it came: refused, answered, accepted
 */
#include "base/net/link.h"
#include "base/net/session.h"
#include "base/status.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 3000
#define MOST 4096

static char address[300];
static int64_t until;
static int pause_ms = 10; /* between two attempts */

static bool goes_on(void)
{
    return hpct_now_ms() < until;
}

static void nap(int milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000L}, NULL);
}

/* -1 where nobody listens, or not any more. */
static int reach(void)
{
    int fd;
    if (hpct_net_link_connect(&fd, address, 1000) == HPCT_OK)
        return fd;
    nap(20);
    return -1;
}

static void put(int fd, const void *data, size_t size)
{
    hpct_net_link_pass(fd, (void *) (uintptr_t) data, size, true, hpct_now_ms() + PATIENCE_MS);
}

/* Bytes that came until the other end closed, or said no more. */
static size_t listen_to(int fd, uint8_t *into, size_t size, int milliseconds)
{
    size_t filled = 0;
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    while (filled < size && poll(&waits, 1, milliseconds) > 0) {
        ssize_t got = recv(fd, into + filled, size - filled, MSG_DONTWAIT);
        if (got <= 0)
            break;
        filled += (size_t) got;
    }
    return filled;
}

static void make_hello(uint8_t hello[HPCT_AUTH_PROOF_HELLO], hpct_auth_purpose purpose,
                       uint32_t from)
{
    hpct_auth_key key;
    hpct_auth_proof proof;
    const hpct_auth auth = {.key = &key, .run = "1.0"};
    if (hpct_auth_key_draw(&key) != HPCT_OK ||
        hpct_auth_proof_begin(&proof, &auth, purpose, from, 0) != HPCT_OK)
        exit(70);
    memcpy(hello, proof.hello, HPCT_AUTH_PROOF_HELLO);
}

/* ---- without a key ---- */

static void idle(int number)
{
    static int fds[MOST];
    for (int i = 0; i < number && goes_on(); i++)
        fds[i] = reach();
    while (goes_on())
        nap(100);
    for (int i = 0; i < number; i++) {
        if (fds[i] > 0)
            close(fds[i]);
    }
}

static void be_idle(void)
{
    idle(1000);
}

static void come_and_go(void)
{
    while (goes_on()) {
        int fd = reach();
        if (fd >= 0)
            close(fd);
        nap(pause_ms);
    }
}

static void make_noise(void)
{
    static uint8_t noise[1 << 16];
    while (goes_on()) {
        int fd = reach();
        if (getrandom(noise, 256, 0) < 0)
            exit(70);
        for (int i = 0; i < 16 && fd >= 0; i++)
            put(fd, noise, sizeof noise);
        if (fd >= 0)
            close(fd);
        nap(50);
    }
}

/* The largest numbers wherever a length may be. */
static void claim_much(void)
{
    uint8_t hello[HPCT_AUTH_PROOF_HELLO];
    while (goes_on()) {
        int fd = reach();
        make_hello(hello, HPCT_AUTH_FOR_WATCH, 1);
        memset(hello + 8, 0xff, sizeof hello - 8);
        if (fd >= 0) {
            put(fd, hello, sizeof hello);
            close(fd);
        }
        nap(20);
    }
}

/* As tasks of the step, each in each role. */
static void pretend(void)
{
    uint8_t hello[HPCT_AUTH_PROOF_HELLO], answer[HPCT_AUTH_PROOF_ANSWER];
    for (uint32_t i = 0; goes_on(); i++) {
        int fd = reach();
        make_hello(hello, (hpct_auth_purpose) (1 + i % (HPCT_AUTH_PURPOSES - 1)),
                   i / HPCT_AUTH_PURPOSES % 8);
        if (fd >= 0) {
            put(fd, hello, sizeof hello);
            if (listen_to(fd, answer, sizeof answer, 200) > 0)
                printf("a hello without the key was answered\n");
            close(fd);
        }
        nap(pause_ms);
    }
}

/* A hello cut at each byte. */
static void cut(void)
{
    uint8_t hello[HPCT_AUTH_PROOF_HELLO];
    for (size_t i = 0; goes_on(); i = (i + 1) % sizeof hello) {
        int fd = reach();
        make_hello(hello, HPCT_AUTH_FOR_WATCH, 1);
        if (fd >= 0) {
            put(fd, hello, i);
            close(fd);
        }
        nap(pause_ms);
    }
}

static void dribble(void)
{
    uint8_t hello[HPCT_AUTH_PROOF_HELLO];
    while (goes_on()) {
        int fd = reach();
        make_hello(hello, HPCT_AUTH_FOR_PS_WORKER, 1);
        for (size_t i = 0; fd >= 0 && i < sizeof hello && goes_on(); i++) {
            put(fd, hello + i, 1);
            nap(30);
        }
        if (fd >= 0)
            close(fd);
    }
}

/* What the watch and parameter servers spoke before they had a key. */
static void speak_frames(void)
{
    uint8_t frame[384] = {'H', 'P', 'C', 'W', 1, HPCT_NET_FRAME_ABORT, 70};
    for (int i = 0; goes_on(); i++) {
        int fd = reach();
        frame[3] = i % 2 ? 'W' : 'P';
        frame[5] = (uint8_t) (1 + i % 13);
        if (fd >= 0) {
            put(fd, frame, i % 2 ? 256 : 384);
            close(fd);
        }
        nap(pause_ms);
    }
}

/* Says back what he hears; closes with a reset. */
static void reflect(void)
{
    uint8_t heard[HPCT_AUTH_PROOF_HELLO];
    while (goes_on()) {
        int fd = reach();
        make_hello(heard, HPCT_AUTH_FOR_WATCH, 1);
        if (fd >= 0) {
            put(fd, heard, sizeof heard);
            put(fd, heard, listen_to(fd, heard, sizeof heard, 100));
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
            close(fd);
        }
        nap(pause_ms);
    }
}

static void attack(void)
{
    void (*const ways[])(void) = {be_idle, come_and_go, make_noise,   claim_much, pretend,
                                  cut,     dribble,     speak_frames, reflect};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (fork() == 0) {
            ways[i]();
            fflush(stdout);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}

/* ---- with one ---- */

static hpct_auth_purpose purpose_of(const char *name)
{
    static const char *const names[HPCT_AUTH_PURPOSES] = {"",       "watch", "peers",  "exchange",
                                                          "worker", "pulse", "leader", "ports"};
    for (int i = 1; i < HPCT_AUTH_PURPOSES; i++) {
        if (strcmp(names[i], name) == 0)
            return (hpct_auth_purpose) i;
    }
    exit(64);
}

static int shake_hands(char **argv)
{
    hpct_auth_key *key = NULL, own;
    hpct_net_connecting connecting;
    hpct_net_session session;
    if (strcmp(argv[0], "-") != 0 && hpct_auth_key_read(&key, argv[0]) != HPCT_OK) {
        fprintf(stderr, "%s\n", hpct_last_error());
        return 78;
    }
    hpct_auth auth = {.key = key};
    if (key == NULL && hpct_auth_key_draw(&own) == HPCT_OK)
        auth.key = &own;
    snprintf(auth.run, sizeof auth.run, "%s", argv[1]);
    int fd = -1;
    for (until = hpct_now_ms() + 20000; fd < 0 && goes_on();)
        fd = reach();
    if (fd < 0 ||
        hpct_net_connecting_begin(&connecting, fd, &auth, purpose_of(argv[2]),
                                  (uint32_t) atoi(argv[3]), (uint32_t) atoi(argv[4])) != HPCT_OK)
        return 69;
    hpct_net_handshake how =
        hpct_net_connecting_wait(&connecting, PATIENCE_MS, hpct_now_ms() + PATIENCE_MS, &session);
    puts(how == HPCT_NET_HANDSHAKE_DONE   ? "accepted"
         : how == HPCT_NET_HANDSHAKE_LEFT ? "answered"
                                          : "refused");
    return 0;
}

int main(int argc, char **argv)
{
    struct rlimit files = {MOST, MOST};
    if (argc < 5)
        return 64;
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0); /* it is killed when the step has ended */
    snprintf(address, sizeof address, "%s:%s", argv[2], argv[3]);
    until = hpct_now_ms() + 1000 * atoi(argv[argc - 1]);
    if (strcmp(argv[1], "flood") == 0)
        pause_ms = 0;
    if (strcmp(argv[1], "attack") == 0 || strcmp(argv[1], "flood") == 0)
        attack();
    else if (strcmp(argv[1], "idle") == 0 && argc == 6)
        idle(atoi(argv[4]));
    else if (strcmp(argv[1], "hello") == 0 && argc == 9)
        return shake_hands(argv + 4);
    else
        return 64;
    return 0;
}
