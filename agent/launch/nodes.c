/* Slurm's view of the job's nodes, and whether their slurmd can be reached. */
#include "agent/launch/nodes.h"

#include "agent/rank/squeue.h"
#include "base/ask.h"
#include "base/cluster/nodelist.h"
#include "base/net/resolve.h"
#include "base/process.h"
#include "base/status.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ASK_SECONDS 10
#define RESOLVE_SECONDS 5 /* for all nodes */
#define CONNECT_SECONDS 2
#define BYTES_PER_NODE 2048 /* of sinfo's output, in several partitions */

hpct_status hpct_launch_job_nodes_open(hpct_launch_job_nodes *out, const char *list)
{
    char **names = NULL;
    int count = 0;
    *out = (hpct_launch_job_nodes){.count = 0};
    HPCT_TRY(hpct_cluster_nodelist_expand(list, &names, &count));
    out->nodes = calloc((size_t) count, sizeof *out->nodes);
    if (out->nodes == NULL) {
        hpct_cluster_names_free(names, count);
        return hpct_fail_memory((size_t) count * sizeof *out->nodes);
    }
    for (int i = 0; i < count; i++)
        out->nodes[i] = (hpct_launch_job_node){.name = names[i], .is_there = true};
    out->count = count;
    free(names);
    return HPCT_OK;
}

void hpct_launch_job_nodes_close(hpct_launch_job_nodes *nodes)
{
    for (int i = 0; i < nodes->count; i++)
        free(nodes->nodes[i].name);
    free(nodes->nodes);
    *nodes = (hpct_launch_job_nodes){.count = 0};
}

hpct_launch_job_node *hpct_launch_job_nodes_find(hpct_launch_job_nodes *nodes, const char *name)
{
    for (int i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->nodes[i].name, name) == 0)
            return &nodes->nodes[i];
    }
    return NULL;
}

/* ---- what Slurm says ---- */

bool hpct_launch_sinfo_line_parse(const char *line, hpct_launch_sinfo_line *out)
{
    char port[16], end;
    *out = (hpct_launch_sinfo_line){.port = 0};
    if (sscanf(line, " %255s %63s %255s %15s %c", out->name, out->state, out->address, port,
               &end) != 4)
        return false;
    char *rest;
    long number = strtol(port, &rest, 10);
    out->port = (int) number;
    return *rest == '\0' && number > 0 && number < 65536;
}

/* "*": not responding. Drained nodes finish the jobs that they have. */
bool hpct_launch_sinfo_state_runs(const char *state)
{
    static const char *const out[] = {"down",   "fail", "unk",  "boot",
                                      "reboot", "pow",  "futr", "inval"};
    if (strpbrk(state, "*~#!%^") != NULL)
        return false;
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        if (strncmp(state, out[i], strlen(out[i])) == 0)
            return false;
    }
    return true;
}

/* The nodes that the job still has: a failed one is taken from it. */
static hpct_status ask_job(hpct_launch_job_nodes *nodes, const char *job, bool *has)
{
    char *list, **names = NULL;
    int count = 0;
    const hpct_rank_squeue question = {.job = job, .format = "%N", .seconds = ASK_SECONDS};
    HPCT_TRY(hpct_rank_squeue_ask(&list, &question));
    hpct_status status = hpct_cluster_nodelist_expand(list, &names, &count);
    for (int i = 0; i < count; i++) {
        hpct_launch_job_node *node = hpct_launch_job_nodes_find(nodes, names[i]);
        if (node != NULL)
            has[node - nodes->nodes] = true;
    }
    hpct_cluster_names_free(names, count);
    free(list);
    return status;
}

static char *join_names(const hpct_launch_job_nodes *nodes)
{
    size_t size = 1;
    for (int i = 0; i < nodes->count; i++)
        size += strlen(nodes->nodes[i].name) + 1;
    char *list = malloc(size), *at = list;
    for (int i = 0; list != NULL && i < nodes->count; i++)
        at += sprintf(at, "%s%s", i > 0 ? "," : "", nodes->nodes[i].name);
    return list;
}

static hpct_status ask_states(hpct_launch_job_nodes *nodes, hpct_launch_sinfo_line *lines)
{
    size_t size = (size_t) nodes->count * BYTES_PER_NODE + 64;
    char *text = malloc(size), *list = join_names(nodes), *rest = NULL;
    char *const arguments[] = {
        "sinfo",   "--all", "--noheader", "--Node",
        "--nodes", list,    "--Format",   "NodeList:256,StateCompact:64,NodeAddr:256,Port:16",
        NULL};
    const hpct_ask ask = {.arguments = arguments, .seconds = ASK_SECONDS};
    hpct_status status =
        text != NULL && list != NULL ? hpct_ask_run(&ask, text, size) : hpct_fail_memory(size);
    for (char *line = status == HPCT_OK ? strtok_r(text, "\n", &rest) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        hpct_launch_sinfo_line one;
        hpct_launch_job_node *node = hpct_launch_sinfo_line_parse(line, &one)
                                         ? hpct_launch_job_nodes_find(nodes, one.name)
                                         : NULL;
        if (node != NULL)
            lines[node - nodes->nodes] = one;
    }
    free(list);
    free(text);
    return status;
}

/* ---- connections ---- */

#define ADDRESSES 4 /* of a node, that are tried */

/* Whether slurmd of a node accepts a connection. */
typedef enum answer { UNKNOWN, ANSWERS, SILENT } answer;

typedef struct attempt {
    int node, fd;
} attempt;

/* The node's addresses; none if its slurmd has no port, or the name service no answer in time,
 * which is said; of names that it was not asked for *late is the number. */
static void find_addresses(const hpct_launch_sinfo_line *to, double until, hpct_net_addresses *out,
                           int *late)
{
    double left = until - hpct_process_clock();
    int left_ms = left > 0 ? (int) (left * 1000) : 0;
    *out = (hpct_net_addresses){0};
    if (to->port == 0 || hpct_net_resolve(out, to->address, to->port, left_ms) == HPCT_OK)
        return;
    if (left_ms == 0)
        ++*late;
    else
        fprintf(stderr, "hpc-train launch: whether its slurmd runs is not known: %s\n",
                hpct_last_error());
    out->num = 0;
}

/* Begins to connect to all addresses of a node; how many. */
static int begin_connecting(const hpct_net_addresses *to, int node, attempt *attempts, answer *out)
{
    int count = 0;
    *out = UNKNOWN;
    for (int i = 0; i < to->num && count < ADDRESSES; i++) {
        int fd = socket(to->at[i].ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
            continue;
        *out = SILENT; /* until one is connected */
        if (connect(fd, (const struct sockaddr *) &to->at[i], to->size[i]) != 0 &&
            errno != EINPROGRESS)
            close(fd);
        else
            attempts[count++] = (attempt){node, fd};
    }
    return count;
}

static bool is_connected(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

/* Until all are decided, or time is over. */
static void await(const attempt *attempts, struct pollfd *fds, int count, answer *answers)
{
    double until = hpct_process_clock() + CONNECT_SECONDS;
    int pending = count;
    for (double left; pending > 0 && (left = until - hpct_process_clock()) > 0;) {
        if (poll(fds, (nfds_t) count, (int) (left * 1000) + 1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < count; i++) {
            if (fds[i].fd < 0 || fds[i].revents == 0)
                continue;
            if (is_connected(fds[i].fd))
                answers[attempts[i].node] = ANSWERS;
            fds[i].fd = -1;
            pending--;
        }
    }
}

static hpct_status connect_all(const hpct_launch_sinfo_line *lines, int count, answer *answers)
{
    size_t most = (size_t) count * ADDRESSES;
    attempt *attempts = calloc(most, sizeof *attempts);
    struct pollfd *fds = calloc(most, sizeof *fds);
    int begun = 0, late = 0;
    double until = hpct_process_clock() + RESOLVE_SECONDS;
    hpct_status status =
        attempts != NULL && fds != NULL ? HPCT_OK : hpct_fail_memory(most * sizeof *fds);
    for (int i = 0; i < count && status == HPCT_OK; i++) {
        hpct_net_addresses addresses;
        find_addresses(&lines[i], until, &addresses, &late);
        begun += begin_connecting(&addresses, i, attempts + begun, &answers[i]);
    }
    if (late > 0)
        fprintf(
            stderr,
            "hpc-train launch: whether slurmd runs on %d more nodes is not known: the %d seconds "
            "for their addresses were over\n",
            late, RESOLVE_SECONDS);
    for (int i = 0; i < begun; i++)
        fds[i] = (struct pollfd){.fd = attempts[i].fd, .events = POLLOUT};
    if (status == HPCT_OK)
        await(attempts, fds, begun, answers);
    for (int i = 0; i < begun; i++)
        close(attempts[i].fd);
    free(fds);
    free(attempts);
    return status;
}

/* ---- both ---- */

static void set_state(hpct_launch_job_node *node, bool has, const hpct_launch_sinfo_line *line,
                      bool is_silent)
{
    node->is_there = false;
    if (!has)
        snprintf(node->why, sizeof node->why, "it is no longer part of the job");
    else if (!hpct_launch_sinfo_state_runs(line->state))
        snprintf(node->why, sizeof node->why, "state %s", line->state);
    else if (is_silent)
        snprintf(node->why, sizeof node->why, "its slurmd does not answer");
    else
        node->is_there = true;
}

hpct_status hpct_launch_job_nodes_look(hpct_launch_job_nodes *nodes, const char *job)
{
    size_t count = (size_t) nodes->count;
    bool *has = calloc(count, sizeof *has), any = false;
    answer *answers = calloc(count, sizeof *answers);
    hpct_launch_sinfo_line *lines = calloc(count, sizeof *lines);
    hpct_status status = HPCT_OK;
    if (has == NULL || answers == NULL || lines == NULL)
        status = hpct_fail_memory(count * sizeof *lines);
    if (status == HPCT_OK)
        status = ask_job(nodes, job, has);
    if (status == HPCT_OK)
        status = ask_states(nodes, lines);
    if (status == HPCT_OK)
        status = connect_all(lines, nodes->count, answers);
    for (size_t i = 0; i < count && status == HPCT_OK; i++)
        any |= answers[i] == ANSWERS;
    for (size_t i = 0; i < count && status == HPCT_OK; i++)
        set_state(&nodes->nodes[i], has[i], &lines[i], any && answers[i] == SILENT);
    free(lines);
    free(answers);
    free(has);
    return status;
}
