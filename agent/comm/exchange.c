/* A star around rank 0: it takes a record from each rank, and gives all of them to each. */
#include "agent/comm/exchange.h"

#include "agent/comm/link.h"
#include "agent/comm/rendezvous.h"
#include "base/status.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024
#define HELLO_MS 2000 /* for a stranger to say who he is */
#define CONNECT_MS 2000
#define RETRY_MICROSECONDS 20000

/* What is said first; the record follows. */
typedef struct hello {
    uint8_t token[HPCT_TOKEN_BYTES];
    int32_t rank, bytes;
} hello;

typedef struct exchange {
    const hpct_config *config;
    hello own;
    char *all;
    size_t bytes;
    int64_t until_ms;
    int seconds;
} exchange;

static hpct_status missing(const exchange *x, int rank)
{
    return hpct_fail(HPCT_ERR_PEER, "rank %d at %s did not come within %d s to agree on NCCL", rank,
                     x->config->addresses[rank], x->seconds);
}

/* ---- rank 0 ---- */

static bool admit(const exchange *x, int *fds, int fd)
{
    hello other;
    int64_t until_ms = hpct_link_now_ms() + HELLO_MS;
    return hpct_link_pass(fd, &other, sizeof other, false, until_ms) &&
           hpct_frame_same_token(other.token, x->own.token) && other.bytes == x->own.bytes &&
           other.rank > 0 && other.rank < x->config->size && fds[other.rank] < 0 &&
           hpct_link_pass(fd, x->all + (size_t) other.rank * x->bytes, x->bytes, false, until_ms) &&
           (fds[other.rank] = fd) >= 0;
}

static int first_missing(const exchange *x, const int *fds)
{
    int rank = 1;
    while (rank < x->config->size && fds[rank] >= 0)
        rank++;
    return rank;
}

static hpct_status collect(const exchange *x, int *fds, int listen_fd)
{
    int rank;
    while ((rank = first_missing(x, fds)) < x->config->size) {
        int64_t left = x->until_ms - hpct_link_now_ms();
        if (left <= 0)
            return missing(x, rank);
        struct pollfd waits = {.fd = listen_fd, .events = POLLIN};
        int fd =
            poll(&waits, 1, (int) left) > 0 ? accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (fd >= 0 && !admit(x, fds, fd))
            close(fd);
    }
    return HPCT_OK;
}

static hpct_status serve(const exchange *x)
{
    char host[256] = "";
    int port = 0, listen_fd = -1;
    size_t size = (size_t) x->config->size;
    int *fds = malloc(size * sizeof *fds);
    if (fds == NULL)
        return hpct_fail_memory(size * sizeof *fds);
    for (size_t rank = 0; rank < size; rank++)
        fds[rank] = -1;
    hpct_status status = HPCT_OK;
    if (!hpct_link_split_address(x->config->addresses[0], host, sizeof host, &port))
        status = hpct_fail(HPCT_ERR_CONFIG, "the address of rank 0, '%s', is not host:port",
                           x->config->addresses[0]);
    if (status == HPCT_OK)
        status = hpct_link_listen(&listen_fd, &port, host, BACKLOG);
    if (status == HPCT_OK)
        status = collect(x, fds, listen_fd);
    for (int rank = 1; rank < x->config->size && status == HPCT_OK; rank++) {
        if (!hpct_link_pass(fds[rank], x->all, size * x->bytes, true, x->until_ms))
            status = missing(x, rank);
    }
    for (size_t rank = 0; rank < size; rank++) {
        if (fds[rank] >= 0)
            close(fds[rank]);
    }
    if (listen_fd >= 0)
        close(listen_fd);
    free(fds);
    return status;
}

/* ---- the others ---- */

static bool ask(exchange *x, int fd)
{
    size_t size = (size_t) x->config->size;
    return hpct_link_pass(fd, &x->own, sizeof x->own, true, x->until_ms) &&
           hpct_link_pass(fd, x->all + (size_t) x->config->rank * x->bytes, x->bytes, true,
                          x->until_ms) &&
           hpct_link_pass(fd, x->all, size * x->bytes, false, x->until_ms);
}

/* Rank 0 may not listen yet. */
static hpct_status reach(exchange *x)
{
    do {
        int fd = -1;
        hpct_status status = hpct_link_connect(&fd, x->config->addresses[0], CONNECT_MS);
        if (status == HPCT_ERR_CONFIG)
            return status;
        bool told = status == HPCT_OK && ask(x, fd);
        if (status == HPCT_OK)
            close(fd);
        if (told)
            return HPCT_OK;
        usleep(RETRY_MICROSECONDS);
    } while (hpct_link_now_ms() < x->until_ms);
    return missing(x, 0);
}

hpct_status hpct_exchange(const hpct_config *config, const void *mine, void *all, size_t bytes,
                          int seconds)
{
    exchange x = {.config = config,
                  .own = {.rank = config->rank, .bytes = (int32_t) bytes},
                  .all = all,
                  .bytes = bytes,
                  .until_ms = hpct_link_now_ms() + 1000 * (int64_t) seconds,
                  .seconds = seconds};
    hpct_rendezvous_token(x.own.token, config);
    memcpy(x.all + (size_t) config->rank * bytes, mine, bytes);
    return config->rank == 0 ? serve(&x) : reach(&x);
}
