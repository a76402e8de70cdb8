/* Checks ports by one bind per address family, and whether other steps have reserved them. */
#include "spank/ports_check.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "spank/ports_holder.h"

#define HOLD_TRIES 10
#define HOLD_MS 100 /* of a try */

/* 0, or the errno of bind. 0 if the address family is not supported. */
static int try_bind(int family, const void *address, socklen_t size)
{
    const int yes = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    /* Connections of an earlier step in TIME_WAIT are not a conflict. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    int error = bind(fd, address, size) == 0 ? 0 : errno;
    close(fd);
    return error == EADDRNOTAVAIL || error == EAFNOSUPPORT ? 0 : error;
}

static int try_port(int port)
{
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port)};
    int error = try_bind(AF_INET, &any4, sizeof any4);
    return error != 0 ? error : try_bind(AF_INET6, &any6, sizeof any6);
}

static hpct_status fail_taken(int port, const char *node, int error)
{
    char holder[HPCT_SPANK_PORT_HOLDER] = "";
    if (error == EADDRINUSE)
        hpct_spank_port_holder(port, holder);
    return hpct_fail(HPCT_ERR_CONFIG,
                     "port %d on %s cannot be used: %s%s%s; choose others with "
                     "--hpc-train-port=PORT or LO-HI",
                     port, node, strerror(error), holder[0] == '\0' ? "" : " by ", holder);
}

hpct_status hpct_spank_port_check(int port, const char *node)
{
    int error = try_port(port);
    return error == 0 ? HPCT_OK : fail_taken(port, node, error);
}

/* ---- reservations ---------------------------------------------------------------------------- */

static hpct_status fail_reserved(int port, const char *node, const hpct_spank_ports_owner *owner)
{
    char user[HPCT_SPANK_PORT_HOLDER], step[HPCT_SPANK_PORT_HOLDER + 48] = "";
    hpct_spank_port_name_user(owner->uid, user);
    if (owner->process != 0)
        snprintf(step, sizeof step, " (%u.%u of %s)", owner->job, owner->step, user);
    return hpct_fail(
        HPCT_ERR_CONFIG,
        "port %d on %s is held by another step that runs there%s: give each of them "
        "ports of its own with --hpc-train-port=PORT or LO-HI, or leave the option out",
        port, node, step);
}

/* The number of ports from `ports` on that follow each other. */
static int count_run(const int *ports, int count)
{
    int run = 1;
    while (run < count && ports[run] == ports[run - 1] + 1)
        run++;
    return run;
}

/* Waits up to a second for another step to end. */
static hpct_status hold_run(const hpct_spank_ports_keeper *keeper, int low, int high,
                            const char *node)
{
    for (int i = 0;; i++) {
        int taken = 0;
        hpct_spank_ports_owner owner;
        HPCT_TRY(
            hpct_spank_ports_ask_keeper(keeper, HPCT_SPANK_PORTS_HOLD, low, high, &taken, &owner));
        if (taken == 0)
            return HPCT_OK;
        if (i == HOLD_TRIES)
            return fail_reserved(taken, node, &owner);
        hpct_pause_ms(HOLD_MS);
    }
}

hpct_status hpct_spank_ports_hold(const hpct_spank_ports_keeper *keeper, const int *ports,
                                  int count, const char *node)
{
    int none = 0;
    hpct_spank_ports_owner owner;
    HPCT_TRY(hpct_spank_ports_ask_keeper(keeper, HPCT_SPANK_PORTS_RELEASE, ports[0], ports[0],
                                         &none, &owner));
    for (int i = 0, run; i < count; i += run) {
        run = count_run(ports + i, count - i);
        HPCT_TRY(hold_run(keeper, ports[i], ports[i] + run - 1, node));
    }
    return HPCT_OK;
}

/* The first port in use, and why; 0: none. */
typedef struct in_use {
    int port, error;
    bool reserved;
    hpct_spank_ports_owner owner;
} in_use;

/* Whether another step has reserved one of them; a keeper that does not answer says so when the
 * ports are to be held. */
static bool find_reserved(const hpct_spank_ports_keeper *keeper, const int *ports, int count,
                          in_use *found)
{
    for (int i = 0, run; i < count && found->port == 0; i += run) {
        run = count_run(ports + i, count - i);
        if (hpct_spank_ports_ask_keeper(keeper, HPCT_SPANK_PORTS_TEST, ports[i], ports[i] + run - 1,
                                        &found->port, &found->owner) != HPCT_OK)
            return false;
    }
    return found->reserved = found->port != 0;
}

static bool is_free(const hpct_spank_ports_keeper *keeper, const int *ports, int each,
                    in_use *found)
{
    *found = (in_use){0};
    if (keeper != NULL && find_reserved(keeper, ports, each, found))
        return false;
    for (int i = 0; i < each && found->error == 0; i++)
        *found = (in_use){.port = ports[i], .error = try_port(ports[i])};
    return found->error == 0;
}

uint64_t hpct_spank_ports_free(const hpct_spank_ports_keeper *keeper,
                               const hpct_spank_port_blocks *blocks, const char *node)
{
    for (int i = 0;; i++) {
        in_use first = {0}, found;
        bool reserved = false;
        uint64_t bits = 0;
        for (int block = 0; block < blocks->count; block++) {
            const int *ports = blocks->ports + (size_t) block * (size_t) blocks->each;
            if (is_free(keeper, ports, blocks->each, &found))
                bits |= UINT64_C(1) << block;
            else if (first.port == 0)
                first = found;
            reserved = reserved || found.reserved;
        }
        if (first.reserved)
            fail_reserved(first.port, node, &first.owner);
        else if (first.port != 0)
            fail_taken(first.port, node, first.error);
        if (bits != 0 || !reserved || i == HOLD_TRIES)
            return bits;
        hpct_pause_ms(HOLD_MS);
    }
}
