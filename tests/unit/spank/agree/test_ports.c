/* spank: the nodes of a step agree on a block of ports through srun; which ports are free, who has
 * the others, and promises. Real sockets; nodes are threads, steps are processes. */
#include "agent/cluster/ports.h"
#include "base/net/link.h"
#include "base/status.h"
#include "spank/agree/ports_agree.h"
#include "spank/ports_check.h"
#include "spank/ports_holder.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 8

static hpct_key key;
static hpct_ports_host *host;
static char address[64];
static const char *const names[MOST] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"};

static void begin(int seconds)
{
    int port = 0;
    assert_int_equal(hpct_key_draw(&key), HPCT_OK);
    assert_int_equal(hpct_ports_serve(&host, &key, 0, 0, seconds, &port), HPCT_OK);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
}

static void end(void)
{
    hpct_ports_serve_end(host);
    host = NULL;
}

typedef struct node {
    pthread_t thread;
    hpct_ports_ask ask;
    uint64_t refused; /* blocks that it cannot hold */
    int refusals;     /* so often it holds none */
    int holds, choice;
    bool speaks;
    hpct_status status;
    char message[1024];
} node;

static bool hold(void *context, int choice)
{
    node *n = context;
    return ++n->holds > n->refusals && (n->refused >> choice & 1) == 0;
}

static void *run(void *context)
{
    node *n = context;
    n->status = hpct_ports_agree(&n->ask, &n->choice, &n->speaks);
    snprintf(n->message, sizeof n->message, "%s", n->status == HPCT_OK ? "" : hpct_last_error());
    return NULL;
}

static void start(node *n, int index, int num_nodes, uint64_t free, int seconds)
{
    n->ask = (hpct_ports_ask){.address = address,
                              .key = n->ask.key != NULL ? n->ask.key : &key,
                              .node = index,
                              .num_nodes = num_nodes,
                              .names = names,
                              .free = free,
                              .seconds = seconds,
                              .hold = hold,
                              .context = n};
    assert_int_equal(pthread_create(&n->thread, NULL, run, n), 0);
}

static void join(node *nodes, int count)
{
    for (int i = 0; i < count; i++)
        pthread_join(nodes[i].thread, NULL);
}

static int count_speakers(const node *nodes, int count)
{
    int speakers = 0;
    for (int i = 0; i < count; i++)
        speakers += nodes[i].speaks;
    return speakers;
}

static void the_first_common_block_is_taken(void **state)
{
    (void) state;
    const uint64_t bits[3] = {0xf0f6, 0xffec, 0x7fc};
    node nodes[3] = {{0}};
    begin(20);
    for (int i = 0; i < 3; i++)
        start(&nodes[i], i, 3, bits[i], 20);
    join(nodes, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nodes[i].status, HPCT_OK);
        assert_int_equal(nodes[i].choice, 2);
        assert_int_equal(nodes[i].holds, 1);
    }
    /* nobody listens any more */
    int fd = -1;
    for (int i = 0; i < 100 && hpct_link_connect(&fd, address, 1000) == HPCT_OK; i++) {
        close(fd);
        usleep(20000);
        fd = -1;
    }
    assert_int_equal(fd, -1);
    end();
}

static void one_node_reports_if_no_block_is_left(void **state)
{
    (void) state;
    const uint64_t bits[4] = {~UINT64_C(1), ~UINT64_C(0), 1, ~UINT64_C(0)};
    node nodes[4] = {{0}};
    begin(20);
    for (int i = 0; i < 4; i++)
        start(&nodes[i], i, 4, bits[i], 20);
    join(nodes, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(nodes[i].status, HPCT_ERR_CONFIG);
    assert_int_equal(count_speakers(nodes, 4), 1);
    assert_true(nodes[2].speaks); /* it has the fewest */
    end();
}

static void unholdable_block_is_skipped(void **state)
{
    (void) state;
    node nodes[3] = {{.refused = 0x2}, {.refused = 0x4}, {.refused = 0}};
    begin(20);
    for (int i = 0; i < 3; i++)
        start(&nodes[i], i, 3, 0xe, 20);
    join(nodes, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nodes[i].status, HPCT_OK);
        assert_int_equal(nodes[i].choice, 3);
        assert_within(nodes[i].holds, 2, 3);
    }
    end();
    node two[2] = {{.refused = 0}, {.refused = 0xe}};
    begin(20);
    for (int i = 0; i < 2; i++)
        start(&two[i], i, 2, 0xe, 20);
    join(two, 2);
    assert_int_equal(two[0].status, HPCT_ERR_CONFIG);
    assert_int_equal(two[1].status, HPCT_ERR_CONFIG);
    assert_true(two[1].speaks && !two[0].speaks);
    assert_int_equal(two[1].holds, 3 * HPCT_PORTS_ROUNDS);
    end();
}

/* As where two steps that begin at once both stand back. */
static void released_blocks_are_retried(void **state)
{
    (void) state;
    node nodes[2] = {{.refusals = 2}, {.refusals = 4}};
    begin(20);
    for (int i = 0; i < 2; i++)
        start(&nodes[i], i, 2, 0x6, 20);
    join(nodes, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nodes[i].status, HPCT_OK);
        assert_int_equal(nodes[i].holds, 5);
    }
    end();
}

static void missing_peer_is_named(void **state)
{
    (void) state;
    node nodes[2] = {{0}};
    begin(2);
    start(&nodes[0], 0, 3, 1, 20);
    start(&nodes[1], 2, 3, 1, 20);
    join(nodes, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nodes[i].status, HPCT_ERR_PEER);
        assert_non_null(strstr(nodes[i].message, "waited 2 seconds for n1"));
    }
    assert_int_equal(count_speakers(nodes, 2), 1);
    end();
}

static void an_srun_that_is_stopped_or_gone_is_named(void **state)
{
    (void) state;
    int fd = -1, port = 0;
    node n = {0};
    assert_int_equal(hpct_key_draw(&key), HPCT_OK);
    assert_int_equal(hpct_link_listen(&fd, &port, "here", 5), HPCT_OK);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    start(&n, 0, 2, 1, 2);
    join(&n, 1);
    assert_int_equal(n.status, HPCT_ERR_PEER);
    assert_non_null(strstr(n.message, "has not said in 2 seconds"));
    close(fd);
    begin(20);
    start(&n, 0, 2, 1, 20);
    usleep(300000);
    end();
    join(&n, 1);
    assert_int_equal(n.status, HPCT_ERR_PEER);
    assert_non_null(strstr(n.message, "is gone"));
}

/* Idle ones, with another key, and with this one but saying what no node says. */
static void unauthenticated_connections_delay_nobody(void **state)
{
    (void) state;
    enum { IDLE = 300 };
    int idle[IDLE];
    node nodes[3] = {{0}};
    hpct_key other;
    begin(60);
    for (int i = 0; i < IDLE; i++)
        assert_int_equal(hpct_link_connect(&idle[i], address, 5000), HPCT_OK);
    assert_int_equal(hpct_key_draw(&other), HPCT_OK);
    node stranger = {.ask = {.key = &other}};
    start(&stranger, 0, 3, 1, 2);
    start(&nodes[0], 0, 3, 6, 60);
    start(&nodes[1], 1, 3, 6, 60);
    node wrong = {0};
    start(&wrong, 7, 3, 1, 60); /* there is no node 7 of 3 */
    usleep(200000);
    start(&nodes[2], 2, 3, 4, 60);
    join(nodes, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(nodes[i].status, HPCT_OK);
        assert_int_equal(nodes[i].choice, 2);
    }
    join(&wrong, 1);
    assert_int_equal(wrong.status, HPCT_ERR_PEER);
    join(&stranger, 1);
    assert_int_equal(stranger.status, HPCT_ERR_PEER);
    for (int i = 0; i < IDLE; i++)
        close(idle[i]);
    end();
}

/* ---- one node ---- */

static int take(int port, bool listens)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t) port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &any, sizeof any), 0);
    if (listens)
        assert_int_equal(listen(fd, 1), 0);
    return fd;
}

static void blocks_in_use_are_detected(void **state)
{
    (void) state;
    const int base = 21000 + (int) (getpid() % 500) * 20;
    int ports[5][4];
    char user[HPCT_PORT_HOLDER], want[64];
    for (int i = 0; i < 20; i++)
        ports[i / 4][i % 4] = base + i;
    const hpct_port_blocks blocks = {.ports = ports[0], .each = 4, .count = 5};
    assert_int_equal(hpct_ports_free(&blocks, "node7", "1.0"), 0x1f);
    int bound = take(base + 3, false), listening = take(base + 8, true), held = -1;
    assert_int_equal(hpct_ports_free(&blocks, "node7", "1.0"), 0x1a);
    snprintf(want, sizeof want, "port %d on node7", base + 3);
    assert_non_null(strstr(hpct_last_error(), want));
    snprintf(want, sizeof want, "uid %d", (int) getuid());
    hpct_port_holder(base + 8, user);
    assert_non_null(strstr(user, want));
    assert_int_equal(hpct_port_check(base + 8, "node7"), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), want));
    close(bound);
    close(listening);
    assert_int_equal(hpct_ports_hold(base + 4, base + 7, "node7", "1.0", &held), HPCT_OK);
    assert_int_equal(hpct_ports_free(&blocks, "node7", "1.0"), 0x1f);
    assert_int_equal(hpct_ports_free(&blocks, "node7", "1.1"), 0x1d);
    assert_non_null(strstr(hpct_last_error(), "another step"));
    assert_non_null(strstr(hpct_last_error(), want));
    assert_int_equal(hpct_port_hold(base + 5, "node7", "1.0"), HPCT_OK);
    assert_int_equal(hpct_port_hold(base + 5, "node7", "1.1"), HPCT_ERR_CONFIG);
    close(held);
    assert_int_equal(hpct_port_hold(base + 4, "node7", "1.1"), HPCT_OK);
}

/* Whether the process has a reservation, or tries to. */
static bool has_reservation(pid_t process)
{
    char line[512], want[32];
    bool found = false;
    FILE *sockets = fopen("/proc/net/unix", "re");
    assert_non_null(sockets);
    snprintf(want, sizeof want, "/%d/", (int) process);
    while (!found && fgets(line, sizeof line, sockets) != NULL)
        found = strstr(line, "@hpc-train/port/") != NULL && strstr(line, want) != NULL;
    fclose(sockets);
    return found;
}

/* Steps that start at once try for the same block; the tasks of the one that has it are not told
 * that another step has their ports. */
static void an_attempt_keeps_nobody_from_its_own_ports(void **state)
{
    (void) state;
    const int low = 30500 + (int) (getpid() % 200) * 4;
    int held = -1, end[2];
    char byte;
    assert_int_equal(pipe(end), 0);
    assert_int_equal(hpct_ports_hold(low, low + 3, "node7", "1.0", &held), HPCT_OK);
    pid_t other = fork();
    if (other == 0) {
        close(end[1]);
        fcntl(end[0], F_SETFL, O_NONBLOCK);
        while (read(end[0], &byte, 1) < 0) {
            int fd = -1;
            if (hpct_ports_hold(low, low + 3, "node7", "1.1", &fd) == HPCT_OK)
                _exit(1);
        }
        _exit(0);
    }
    close(end[0]);
    while (!has_reservation(other))
        usleep(1000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(hpct_port_hold(low + i, "node7", "1.0"), HPCT_OK);
    close(end[1]);
    int status = 0;
    waitpid(other, &status, 0);
    assert_int_equal(status, 0);
    close(held);
}

static void reservation_ends_with_its_process(void **state)
{
    (void) state;
    const int port = 31500 + (int) (getpid() % 500);
    const hpct_port_blocks one = {.ports = &port, .each = 1, .count = 1};
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t step = fork();
    if (step == 0) {
        hpct_status status = hpct_port_hold(port, "node7", "1.0");
        if (write(ready[1], "", 1) != 1 || status != HPCT_OK)
            _exit(1);
        pause();
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(hpct_ports_free(&one, "node7", "1.1"), 0);
    kill(step, SIGKILL); /* it is waited for while it ends */
    assert_int_equal(hpct_ports_free(&one, "node7", "1.1"), 1);
    waitpid(step, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_common_block_is_taken),
        cmocka_unit_test(one_node_reports_if_no_block_is_left),
        cmocka_unit_test(unholdable_block_is_skipped),
        cmocka_unit_test(released_blocks_are_retried),
        cmocka_unit_test(missing_peer_is_named),
        cmocka_unit_test(an_srun_that_is_stopped_or_gone_is_named),
        cmocka_unit_test(unauthenticated_connections_delay_nobody),
        cmocka_unit_test(blocks_in_use_are_detected),
        cmocka_unit_test(an_attempt_keeps_nobody_from_its_own_ports),
        cmocka_unit_test(reservation_ends_with_its_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
