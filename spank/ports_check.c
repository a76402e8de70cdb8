/* One bind per address family. A promise is the name of a socket of the abstract kind, which
 * belongs to a network namespace, as ports do, and goes with the last process that has it open. It
 * has the task's process id in it, as what a task leaves behind when it ends inherits the socket.
 */
#include "spank/ports_check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

#define PROMISE "hpc-train/port/"
#define HOLD_TRIES 10 /* a tenth of a second each */
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

/* Whether a living process other than this one was promised the port. */
static bool is_promised(int port)
{
    char prefix[64], *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *sockets = fopen("/proc/net/unix", "re");
    snprintf(prefix, sizeof prefix, " @" PROMISE "%d/", port);
    while (sockets != NULL && !found && getline(&line, &room, sockets) > 0) {
        const char *at = strstr(line, prefix);
        long pid = at == NULL ? 0 : strtol(at + strlen(prefix), NULL, 10);
        found = pid > 0 && pid != (long) getpid() && pid <= INT_MAX &&
                (kill((pid_t) pid, 0) == 0 || errno == EPERM);
    }
    free(line);
    if (sockets != NULL)
        fclose(sockets);
    return found;
}

hpct_status hpct_port_hold(int port, const char *node)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, PROMISE "%d/%ld", port,
                          (long) getpid());
    socklen_t size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) length);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *) &name, size) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return hpct_fail(HPCT_ERR_INTERNAL, "no socket to hold port %d with: %s", port,
                         strerror(error));
    }
    /* It was bound first and is looked for only now, so of two that come at once at least one sees
     * the other. */
    for (int i = 0; is_promised(port); i++) {
        if (i == HOLD_TRIES) {
            close(fd);
            return hpct_fail(
                HPCT_ERR_CONFIG,
                "port %d on %s is held by another step that runs there: give each of them ports of "
                "its own with --hpc-train-port=PORT or LO-HI, or leave the option out",
                port, node);
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    /* It stays open, but scripts like to use the first numbers for files of their own. */
    if (fcntl(fd, F_DUPFD, OUT_OF_THE_WAY) >= 0)
        close(fd);
    return HPCT_OK;
}
