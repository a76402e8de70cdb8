/* One bind per address family. A promise is the name of a socket: names of the abstract kind go with
 * the last process that has it open, and belong to a network namespace, as ports do. */
#include "spank/ports_check.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

#define HOLD_TRIES 30 /* ten a second */
#define OUT_OF_THE_WAY 100

/* 0, or the errno of bind. No family, no trouble. */
static int try_bind(int family, const void *address, socklen_t size)
{
    const int yes = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    /* Connections of an earlier step may still wait for their end (TIME_WAIT); they are no clash.
     */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    int error = bind(fd, address, size) == 0 ? 0 : errno;
    close(fd);
    return error == EADDRNOTAVAIL || error == EAFNOSUPPORT ? 0 : error;
}

hpct_status hpct_port_check(int port, const char *node)
{
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port)};
    int error = try_bind(AF_INET, &any4, sizeof any4);
    if (error == 0)
        error = try_bind(AF_INET6, &any6, sizeof any6);
    if (error == 0)
        return HPCT_OK;
    return hpct_fail(
        HPCT_ERR_CONFIG,
        "port %d on %s cannot be used: %s; choose others with --hpc-train-port=PORT or "
        "LO-HI",
        port, node, strerror(error));
}

hpct_status hpct_port_hold(int port, const char *node)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "hpc-train/port/%d", port);
    socklen_t size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) length);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), error = fd < 0 ? errno : 0;
    for (int i = 0; fd >= 0; i++) {
        error = bind(fd, (const struct sockaddr *) &name, size) == 0 ? 0 : errno;
        if (error != EADDRINUSE || i == HOLD_TRIES)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    if (error == 0) {
        /* scripts like to use the first numbers for files of their own */
        int away = fcntl(fd, F_DUPFD, OUT_OF_THE_WAY);
        if (away >= 0)
            close(fd);
        return HPCT_OK; /* it stays open */
    }
    if (fd >= 0)
        close(fd);
    if (error != EADDRINUSE)
        return hpct_fail(HPCT_ERR_INTERNAL, "no socket to hold port %d with: %s", port,
                         strerror(error));
    return hpct_fail(HPCT_ERR_CONFIG,
                     "port %d on %s is held by another step that runs there: give each of them "
                     "ports of its own with --hpc-train-port=PORT or LO-HI, or leave the option out",
                     port, node);
}
