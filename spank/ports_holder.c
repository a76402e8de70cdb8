/* Reads /proc/net/tcp and tcp6 of this process's network namespace. Sockets that are only bound are
 * not listed there: netlink (sock_diag(7)) reports them. */
#include "spank/ports_holder.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* TCP states as the kernel numbers them. */
#define TIME_WAIT 6
#define LISTEN 10
#define BOUND_INACTIVE 13

#define ANSWER_SECONDS 2

static bool find_in_table(const char *table, int port, unsigned *uid)
{
    char *line = NULL;
    size_t room = 0;
    unsigned at = 0, state = 0, owner = 0;
    bool found = false, listens = false;
    FILE *sockets = fopen(table, "re");
    while (sockets != NULL && !listens && getline(&line, &room, sockets) > 0) {
        if (sscanf(line, " %*d: %*[0-9A-F]:%4x %*[0-9A-F]:%*4x %2x %*s %*s %*s %u", &at, &state,
                   &owner) != 3 ||
            at != (unsigned) port || state == TIME_WAIT)
            continue;
        found = true;
        listens = state == LISTEN;
        *uid = owner;
    }
    free(line);
    if (sockets != NULL)
        fclose(sockets);
    return found;
}

static bool ask_for_bound(int fd, int family)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } ask = {
        .header = {.nlmsg_len = sizeof ask,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .request = {.sdiag_family = (uint8_t) family,
                    .sdiag_protocol = IPPROTO_TCP,
                    .idiag_states = 1U << BOUND_INACTIVE},
    };
    return send(fd, &ask, sizeof ask, 0) == (ssize_t) sizeof ask;
}

/* Parses one message of the answer; false after the last one, or on error. */
static bool take_answer(const char *at, size_t left, size_t *bytes, int port, unsigned *uid,
                        bool *found)
{
    struct nlmsghdr header;
    struct inet_diag_msg socket;
    if (left < sizeof header + sizeof socket)
        return false;
    memcpy(&header, at, sizeof header);
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        header.nlmsg_len < sizeof header + sizeof socket)
        return false;
    memcpy(&socket, at + sizeof header, sizeof socket);
    if (ntohs(socket.id.idiag_sport) == port) {
        *uid = socket.idiag_uid;
        *found = true;
    }
    *bytes = NLMSG_ALIGN((size_t) header.nlmsg_len);
    return true;
}

static bool find_in_answers(int fd, int port, unsigned *uid)
{
    char in[32768];
    bool found = false;
    for (;;) {
        ssize_t got = recv(fd, in, sizeof in, 0);
        size_t bytes = 0;
        if (got <= 0)
            return found;
        for (size_t at = 0; at < (size_t) got; at += bytes) {
            if (!take_answer(in + at, (size_t) got - at, &bytes, port, uid, &found))
                return found;
        }
    }
}

static bool find_bound(int family, int port, unsigned *uid)
{
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    bool found = ask_for_bound(fd, family) && find_in_answers(fd, port, uid);
    close(fd);
    return found;
}

void hpct_spank_port_name_user(unsigned uid, char text[HPCT_SPANK_PORT_HOLDER])
{
    const struct passwd *user = getpwuid((uid_t) uid);
    if (user == NULL)
        snprintf(text, HPCT_SPANK_PORT_HOLDER, "uid %u", uid);
    else
        snprintf(text, HPCT_SPANK_PORT_HOLDER, "uid %u, %.64s", uid, user->pw_name);
}

void hpct_spank_port_holder(int port, char text[HPCT_SPANK_PORT_HOLDER])
{
    unsigned uid = 0;
    if (find_in_table("/proc/net/tcp", port, &uid) || find_in_table("/proc/net/tcp6", port, &uid) ||
        find_bound(AF_INET, port, &uid) || find_bound(AF_INET6, port, &uid))
        hpct_spank_port_name_user(uid, text);
    else
        snprintf(text, HPCT_SPANK_PORT_HOLDER,
                 "a socket that does not listen, whose user this kernel does not tell");
}
