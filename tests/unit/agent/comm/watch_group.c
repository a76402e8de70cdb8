#include "tests/unit/agent/comm/watch_group.h"
#include "base/net/link.h"
#include "base/status.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const hpct_auth_key key = {{1, 2, 3}};
const hpct_auth auth = {.key = &key, .run = "7.0"};

void sleep_ms(int ms)
{
    struct timespec wait = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&wait, NULL);
}

void run_rank(const group *g, int rank, rank_function *function)
{
    char address[32], node[16];
    const char *addresses[] = {address}, *nodes[RANKS] = {"node0", "node1", "node2", "node3"};
    hpct_comm_watch *watch = NULL;
    snprintf(address, sizeof address, "127.0.0.1:%d", g->port);
    snprintf(node, sizeof node, "node%d", rank);
    hpct_comm_watch_options options = {
        .rank = rank,
        .size = RANKS,
        .node = node,
        .auth = &auth,
        .listen_fd = rank == 0 ? g->listen_fd : -1,
        .addresses = addresses,
        .num_addresses = 1,
        .rank_nodes = nodes,
        .join_seconds = g->join_seconds,
        .silence_ms = SILENCE_MS,
        .notice_ms = 600,
        .standstill_ms = g->standstill_ms,
    };
    hpct_status status = hpct_comm_watch_start(&watch, &options);
    if (status != HPCT_OK) {
        dprintf(STDERR_FILENO, "%s\n", hpct_last_error());
        _exit((int) status);
    }
    atomic_fetch_add(g->joined, 1);
    function(watch, rank);
    _exit(0);
}

void start(group *g, rank_function *function, int absent)
{
    g->port = 0;
    g->joined =
        mmap(NULL, sizeof *g->joined, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(g->joined != MAP_FAILED);
    g->join_seconds = g->join_seconds > 0 ? g->join_seconds : 20;
    assert_int_equal(hpct_net_link_listen(&g->listen_fd, &g->port, "here", 1024), HPCT_OK);
    for (int rank = 0; rank < RANKS; rank++) {
        int pipes[2];
        g->pids[rank] = -1;
        if (rank == absent)
            continue;
        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        g->out[rank] = pipes[0];
        g->pids[rank] = fork();
        assert_true(g->pids[rank] >= 0);
        if (g->pids[rank] == 0) {
            alarm(60);
            dup2(pipes[1], STDERR_FILENO);
            if (rank != 0)
                close(g->listen_fd);
            run_rank(g, rank, function);
        }
        close(pipes[1]);
    }
    close(g->listen_fd);
}

void wait_for_all(const group *g)
{
    for (int i = 0; atomic_load(g->joined) < RANKS && i < 3000; i++)
        sleep_ms(10);
    assert_int_equal(atomic_load(g->joined), RANKS);
}

int finish(group *g, int rank, char *said, size_t size)
{
    int status;
    size_t length = 0;
    ssize_t got;
    while ((got = read(g->out[rank], said + length, size - 1 - length)) > 0)
        length += (size_t) got;
    said[length] = '\0';
    close(g->out[rank]);
    assert_int_equal(waitpid(g->pids[rank], &status, 0), g->pids[rank]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void leave_after_a_while(hpct_comm_watch *watch, int rank)
{
    sleep_ms(100 * rank);
    hpct_comm_watch_stop(watch);
}

void work_for_ever(hpct_comm_watch *watch, int rank)
{
    (void) watch;
    (void) rank;
    sleep_ms(50000);
}

bool says(const char *said, const char *words)
{
    char pattern[512];
    snprintf(pattern, sizeof pattern, "*%s*", words);
    return fnmatch(pattern, said, 0) == 0;
}

void check_others(group *g, int victim, int code, const char *named)
{
    char said[1024];
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank == victim || g->pids[rank] < 0)
            continue;
        assert_int_equal(finish(g, rank, said, sizeof said), code);
        if (!says(said, named))
            fail_msg("rank %d said '%s', not '%s'", rank, said, named);
    }
}
