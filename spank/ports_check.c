/* One bind per address family. */
#include "spank/ports_check.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"

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
