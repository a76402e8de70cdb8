/* Checks ports by one bind per address family. A reservation is the name of an abstract socket,
 * which belongs to a network namespace, as ports do, and disappears with the last process that has
 * it open: "hpc-train/port/LOW-HIGH/PID/STEP", followed by "/block" for those of hpct_ports_hold,
 * and by "/try" while that checks for others. The name contains the task's pid because processes
 * that a task leaves behind inherit the socket. */
#include "spank/ports_check.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/ports_holder.h"

#define PROMISE "hpc-train/port/"
#define BLOCK "/block"
#define TRY "/try"
#define HOLD_TRIES 10 /* of 0.1 s each */
#define OUT_OF_THE_WAY 100

/* 0, or the errno of bind. 0 if the address family is not supported. */
static int try_bind(int family, const void *address, socklen_t size)
{
    const int yes = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    /* Connections of an earlier step in TIME_WAIT are no conflict. */
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
    char holder[HPCT_PORT_HOLDER] = "";
    if (error == EADDRINUSE)
        hpct_port_holder(port, holder);
    return hpct_fail(HPCT_ERR_CONFIG,
                     "port %d on %s cannot be used: %s%s%s; choose others with "
                     "--hpc-train-port=PORT or LO-HI",
                     port, node, strerror(error), holder[0] == '\0' ? "" : " by ", holder);
}

hpct_status hpct_port_check(int port, const char *node)
{
    int error = try_port(port);
    return error == 0 ? HPCT_OK : fail_taken(port, node, error);
}

/* ---- reservations ---------------------------------------------------------------------------- */

typedef struct promise {
    int low, high;
    pid_t pid;
    bool tries; /* "/try": a block it may not get */
} promise;

/* Reservations of living processes of other steps. Returns their number; the caller frees *all. */
static size_t read_promises(const char *step, bool with_tries, promise **all)
{
    char *line = NULL;
    size_t room = 0, count = 0;
    FILE *sockets = fopen("/proc/net/unix", "re");
    *all = NULL;
    while (sockets != NULL && getline(&line, &room, sockets) > 0) {
        const char *name = strstr(line, " @" PROMISE);
        char whose[64] = "", kind[8] = "";
        int pid = 0;
        promise p = {0};
        if (name == NULL || sscanf(name, " @" PROMISE "%d-%d/%d/%63[0-9.]%7s", &p.low, &p.high,
                                   &pid, whose, kind) < 4)
            continue;
        p.pid = (pid_t) pid;
        p.tries = strcmp(kind, TRY) == 0;
        if (pid <= 0 || strcmp(whose, step) == 0 || (kill(p.pid, 0) != 0 && errno != EPERM) ||
            (p.tries && !with_tries))
            continue;
        promise *more = realloc(*all, (count + 1) * sizeof *more);
        if (more == NULL)
            break;
        *all = more;
        more[count++] = p;
    }
    free(line);
    if (sockets != NULL)
        fclose(sockets);
    return count;
}

/* The first reservation that overlaps low..high, or NULL. */
static const promise *find_promise(const promise *all, size_t count, int low, int high)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].low <= high && low <= all[i].high)
            return &all[i];
    }
    return NULL;
}

static hpct_status fail_promised(int port, const char *node, pid_t pid)
{
    char path[32], user[HPCT_PORT_HOLDER] = "a user whom the kernel does not tell";
    struct stat process;
    snprintf(path, sizeof path, "/proc/%d", (int) pid);
    if (stat(path, &process) == 0)
        hpct_port_name_user(process.st_uid, user);
    return hpct_fail(
        HPCT_ERR_CONFIG,
        "port %d on %s is held by another step that runs there (process %d of %s): give each of "
        "them ports of its own with --hpc-train-port=PORT or LO-HI, or leave the option out",
        port, node, (int) pid, user);
}

static void pause_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

static hpct_status promise_ports(int low, int high, const char *step, const char *kind, int *fd)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, PROMISE "%d-%d/%d/%s%s", low,
                          high, (int) getpid(), step, kind);
    socklen_t size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) length);
    *fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*fd >= 0 && bind(*fd, (const struct sockaddr *) &name, size) == 0)
        return HPCT_OK;
    int error = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return hpct_fail(HPCT_ERR_INTERNAL, "no socket to hold port %d with: %s", low, strerror(error));
}

/* Waits up to a second for other steps to release the ports. */
static hpct_status await_others(int low, int high, const char *node, const char *step,
                                bool with_tries)
{
    for (int i = 0;; i++) {
        promise *all;
        size_t count = read_promises(step, with_tries, &all);
        const promise *other = find_promise(all, count, low, high);
        hpct_status status = HPCT_OK;
        if (other != NULL)
            status = fail_promised(other->low > low ? other->low : low, node, other->pid);
        free(all);
        if (status == HPCT_OK || i == HOLD_TRIES)
            return status;
        pause_a_little();
    }
}

/* The name is bound before others are looked for, so that of two steps that start together at least
 * one sees the other; both may, and then both fail. An attempt (TRY) is therefore no conflict for
 * the tasks of the step that holds the block. */
hpct_status hpct_ports_hold(int low, int high, const char *node, const char *step, int *fd)
{
    int trial = -1;
    HPCT_TRY(promise_ports(low, high, step, TRY, &trial));
    hpct_status status = await_others(low, high, node, step, true);
    if (status == HPCT_OK)
        status = promise_ports(low, high, step, BLOCK, fd);
    close(trial);
    return status;
}

hpct_status hpct_port_hold(int port, const char *node, const char *step)
{
    int fd = -1;
    HPCT_TRY(promise_ports(port, port, step, "", &fd));
    hpct_status status = await_others(port, port, node, step, false);
    /* The descriptor stays open; moved up, as scripts like to use low numbers themselves. */
    if (status != HPCT_OK || fcntl(fd, F_DUPFD, OUT_OF_THE_WAY) >= 0)
        close(fd);
    else
        fcntl(fd, F_SETFD, 0);
    return status;
}

/* The first port in use, and why; 0: none. */
typedef struct taken {
    int port, error;
    pid_t pid; /* process that reserved it; 0: the port is bound */
} taken;

static bool is_free(const int *ports, int each, const promise *all, size_t count, taken *first)
{
    for (int i = 0; i < each; i++) {
        const promise *other = find_promise(all, count, ports[i], ports[i]);
        int error = other == NULL ? try_port(ports[i]) : 0;
        if (other == NULL && error == 0)
            continue;
        if (first->port == 0)
            *first =
                (taken){.port = ports[i], .error = error, .pid = other == NULL ? 0 : other->pid};
        return false;
    }
    return true;
}

uint64_t hpct_ports_free(const hpct_port_blocks *blocks, const char *node, const char *step)
{
    for (int i = 0;; i++) {
        promise *all;
        taken first = {0};
        uint64_t bits = 0;
        size_t count = read_promises(step, true, &all);
        for (int block = 0; block < blocks->count; block++) {
            if (is_free(blocks->ports + (size_t) block * (size_t) blocks->each, blocks->each, all,
                        count, &first))
                bits |= UINT64_C(1) << block;
        }
        free(all);
        if (first.pid != 0)
            fail_promised(first.port, node, first.pid);
        else if (first.port != 0)
            fail_taken(first.port, node, first.error);
        if (bits != 0 || count == 0 || i == HOLD_TRIES)
            return bits;
        pause_a_little();
    }
}
