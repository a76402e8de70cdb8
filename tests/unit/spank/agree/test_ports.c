/* spank: the nodes of a step agree on a block of ports through srun; which ports are free, who has
 * the others, and reservations. Real sockets; nodes are threads, steps are processes. */
#include "base/cluster/ports.h"
#include "base/net/link.h"
#include "base/status.h"
#include "spank/agree/ports_agree.h"
#include "spank/ports_check.h"
#include "spank/ports_holder.h"
#include "tests/unit/unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 8

static char base_folder[64], folder[80]; /* of the reservations */

static hpct_auth_key key;
static hpct_agree_ports_host *host;
static char address[64];
static const char *const names[MOST] = {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"};

static hpct_agree_ports_late notices[4];
static _Atomic int num_notices;

static void note(void *context, const hpct_agree_ports_late *late)
{
    if (num_notices < 4)
        notices[num_notices] = *late;
    num_notices++;
}

static void begin_for(uint32_t num_nodes, int seconds)
{
    int port = 0;
    const hpct_agree_ports_serving serving = {
        .key = &key, .nodes = num_nodes, .seconds = seconds, .late = note};
    num_notices = 0;
    assert_int_equal(hpct_auth_key_draw(&key), HPCT_OK);
    assert_int_equal(hpct_agree_ports_serve(&host, &serving, &port), HPCT_OK);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
}

static void begin(int seconds)
{
    begin_for(0, seconds);
}

static hpct_agree_ports_outcome end(void)
{
    hpct_agree_ports_outcome outcome = hpct_agree_ports_serve_end(host);
    host = NULL;
    return outcome;
}

static hpct_agree_network networks[MOST];

typedef struct node {
    pthread_t thread;
    hpct_agree_ports_ask ask;
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
    n->status = hpct_agree_ports(&n->ask, &n->choice, &n->speaks);
    snprintf(n->message, sizeof n->message, "%s", n->status == HPCT_OK ? "" : hpct_last_error());
    return NULL;
}

static void start(node *n, int index, int num_nodes, uint64_t free, int seconds)
{
    networks[index] = (hpct_agree_network){0};
    n->ask = (hpct_agree_ports_ask){.address = address,
                                    .key = n->ask.key != NULL ? n->ask.key : &key,
                                    .node = index,
                                    .num_nodes = num_nodes,
                                    .names = names,
                                    .free = free,
                                    .seconds = seconds,
                                    .hold = hold,
                                    .context = n,
                                    .network = &networks[index]};
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

TEST(the_first_common_block_is_taken)
{
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
    for (int i = 0; i < 100 && hpct_net_link_connect(&fd, address, 1000) == HPCT_OK; i++) {
        close(fd);
        usleep(20000);
        fd = -1;
    }
    assert_int_equal(fd, -1);
    end();
}

TEST(one_node_reports_if_no_block_is_left)
{
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

TEST(unholdable_block_is_skipped)
{
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
    assert_int_equal(two[1].holds, 3 * HPCT_AGREE_PORTS_ROUNDS);
    end();
}

/* As where two steps that begin at once both stand back. */
TEST(released_blocks_are_retried)
{
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

TEST(missing_peer_is_named)
{
    node nodes[2] = {{0}};
    begin_for(4, 2);
    start(&nodes[0], 0, 4, 1, 20);
    start(&nodes[1], 2, 4, 1, 20);
    join(nodes, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nodes[i].status, HPCT_ERR_PEER);
        assert_non_null(strstr(nodes[i].message, "waited 2 seconds for n1"));
    }
    assert_int_equal(count_speakers(nodes, 2), 0); /* srun speaks */
    assert_int_equal(end(), HPCT_AGREE_PORTS_LATE);
    assert_int_equal(num_notices, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(notices[i].first, 1);
        assert_int_equal(notices[i].count, 2);
    }
    assert_true(notices[0].left > 0 && notices[1].left == 0);
}

/* Where no node has the plugin; of several components, whose nodes srun does not know, one may
 * wait for long. */
TEST(a_step_that_no_node_prepares_is_seen)
{
    begin_for(3, 1);
    while (num_notices < 2)
        usleep(20000);
    assert_int_equal(end(), HPCT_AGREE_PORTS_LATE);
    assert_int_equal(notices[1].first, 0);
    assert_int_equal(notices[1].count, 3);
    assert_within(notices[1].waited, 2, 60);
    begin_for(3, 60);
    assert_int_equal(end(), HPCT_AGREE_PORTS_PENDING);
    begin_for(0, 1);
    usleep(2500000);
    assert_int_equal(end(), HPCT_AGREE_PORTS_PENDING);
    assert_int_equal(num_notices, 0);
}

TEST(one_node_reports_too)
{
    node one = {0};
    begin_for(1, 20);
    start(&one, 0, 1, 4, 20);
    join(&one, 1);
    assert_int_equal(one.status, HPCT_OK);
    assert_int_equal(one.choice, 2);
    assert_int_equal(end(), HPCT_AGREE_PORTS_DONE);
    assert_int_equal(num_notices, 0);
}

TEST(an_srun_that_is_stopped_or_gone_is_named)
{
    int fd = -1, port = 0;
    node n = {0};
    assert_int_equal(hpct_auth_key_draw(&key), HPCT_OK);
    assert_int_equal(hpct_net_link_listen(&fd, &port, "here", 5), HPCT_OK);
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
TEST(unauthenticated_connections_delay_nobody)
{
    enum { IDLE = 300 };
    int idle[IDLE];
    node nodes[3] = {{0}};
    hpct_auth_key other;
    begin(60);
    for (int i = 0; i < IDLE; i++)
        assert_int_equal(hpct_net_link_connect(&idle[i], address, 5000), HPCT_OK);
    assert_int_equal(hpct_auth_key_draw(&other), HPCT_OK);
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

TEST(blocks_in_use_are_detected)
{
    const int base = 21000 + (int) (getpid() % 500) * 20;
    int ports[5][4];
    char user[HPCT_SPANK_PORT_HOLDER], want[64];
    for (int i = 0; i < 20; i++)
        ports[i / 4][i % 4] = base + i;
    const hpct_spank_port_blocks blocks = {.ports = ports[0], .each = 4, .count = 5};
    assert_int_equal(hpct_spank_ports_free(NULL, &blocks, "node7"), 0x1f);
    int bound = take(base + 3, false), listening = take(base + 8, true);
    assert_int_equal(hpct_spank_ports_free(NULL, &blocks, "node7"), 0x1a);
    snprintf(want, sizeof want, "port %d on node7", base + 3);
    assert_non_null(strstr(hpct_last_error(), want));
    snprintf(want, sizeof want, "uid %d", (int) getuid());
    hpct_spank_port_holder(base + 8, user);
    assert_non_null(strstr(user, want));
    assert_int_equal(hpct_spank_port_check(base + 8, "node7"), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), want));
    close(bound);
    close(listening);
}

/* ---- reservations ---- */

/* A step of another slurmstepd, a process of its own, that holds these ports until it is killed. */
static pid_t start_step(uint32_t step, int low, int count)
{
    int ready[2];
    char held = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const hpct_spank_ports_owner owner = {
            .process = (uint32_t) getpid(), .uid = getuid(), .job = 1, .step = step};
        hpct_spank_ports_keeper *keeper;
        int *ports = calloc((size_t) count, sizeof *ports);
        for (int i = 0; i < count; i++)
            ports[i] = low + i;
        held = hpct_spank_ports_keeper_start(folder, &owner, count, &keeper) == HPCT_OK &&
               hpct_spank_ports_hold(keeper, ports, count, "node7") == HPCT_OK;
        if (write(ready[1], &held, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &held, 1), 1);
    assert_int_equal(held, 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end_step(pid_t step)
{
    kill(step, SIGKILL);
    waitpid(step, NULL, 0);
}

static hpct_spank_ports_keeper *keep(uint32_t step, int most)
{
    const hpct_spank_ports_owner owner = {
        .process = (uint32_t) getpid(), .uid = getuid(), .job = 1, .step = step};
    hpct_spank_ports_keeper *keeper;
    assert_int_equal(hpct_spank_ports_folder_make(folder), HPCT_OK);
    assert_int_equal(hpct_spank_ports_keeper_start(folder, &owner, most, &keeper), HPCT_OK);
    return keeper;
}

TEST(reserved_ports_are_other_steps_only)
{
    const int base = 21000 + (int) (getpid() % 500) * 20;
    int ports[5][4];
    char want[64];
    for (int i = 0; i < 20; i++)
        ports[i / 4][i % 4] = base + i;
    const hpct_spank_port_blocks blocks = {.ports = ports[0], .each = 4, .count = 5};
    hpct_spank_ports_keeper *keeper = keep(1, 5);
    pid_t other = start_step(0, base + 4, 4);
    assert_int_equal(hpct_spank_ports_free(keeper, &blocks, "node7"), 0x1d);
    snprintf(want, sizeof want, "port %d on node7 is held by another step", base + 4);
    assert_non_null(strstr(hpct_last_error(), want));
    snprintf(want, sizeof want, "(1.0 of uid %d", (int) getuid());
    assert_non_null(strstr(hpct_last_error(), want));
    assert_int_equal(hpct_spank_ports_hold(keeper, &ports[1][3], 2, "node7"), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_spank_ports_hold(keeper, ports[0], 4, "node7"), HPCT_OK);
    assert_int_equal(hpct_spank_ports_free(keeper, &blocks, "node7"), 0x1d); /* its own are free */
    end_step(other);
    assert_int_equal(hpct_spank_ports_free(keeper, &blocks, "node7"), 0x1f);
    assert_int_equal(hpct_spank_ports_hold(keeper, ports[1], 4, "node7"), HPCT_OK);
    other = start_step(2, base, 4); /* what was held before is released */
    end_step(other);
    other = start_step(1, base + 8, 2); /* the step's own, of another component */
    assert_int_equal(hpct_spank_ports_hold(keeper, &ports[2][0], 2, "node7"), HPCT_OK);
    end_step(other);
    hpct_spank_ports_keeper_end(keeper);
}

/* As the user of a step may ask by his own code, stopping a task of his. */
TEST(a_step_reserves_no_more_than_it_needs)
{
    const struct {
        int wish, low, high;
    } wishes[] = {
        {HPCT_SPANK_PORTS_HOLD, 1, 65535},     {HPCT_SPANK_PORTS_HOLD, 24000, 24003},
        {HPCT_SPANK_PORTS_HOLD, 0, 1},         {HPCT_SPANK_PORTS_HOLD, 65535, 65536},
        {HPCT_SPANK_PORTS_HOLD, -5, 2},        {HPCT_SPANK_PORTS_HOLD, 24001, 24000},
        {HPCT_SPANK_PORTS_TEST, 1, INT32_MAX}, {HPCT_SPANK_PORTS_HOLD, INT32_MIN, INT32_MAX},
        {HPCT_SPANK_PORTS_RELEASE, 0, 70000},  {HPCT_SPANK_PORTS_TEST, INT32_MIN, 1}};
    int taken = 0;
    hpct_spank_ports_owner owner;
    hpct_spank_ports_keeper *keeper = keep(1, 3);
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++)
        assert_int_equal(hpct_spank_ports_ask_keeper(keeper, (hpct_spank_ports_wish) wishes[i].wish,
                                                     wishes[i].low, wishes[i].high, &taken, &owner),
                         HPCT_ERR_INTERNAL);
    assert_int_equal(
        hpct_spank_ports_ask_keeper(keeper, HPCT_SPANK_PORTS_HOLD, 24000, 24001, &taken, &owner),
        HPCT_OK);
    assert_int_equal(
        hpct_spank_ports_ask_keeper(keeper, HPCT_SPANK_PORTS_HOLD, 24004, 24005, &taken, &owner),
        HPCT_ERR_INTERNAL);
    hpct_spank_ports_keeper_end(keeper);
}

TEST(a_file_of_others_is_refused)
{
    char path[128];
    hpct_spank_ports_keeper *keeper;
    const hpct_spank_ports_owner owner = {.process = 1};
    hpct_spank_ports_keeper_end(keep(1, 1));
    snprintf(path, sizeof path, "%s/ports", folder);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(hpct_spank_ports_keeper_start(folder, &owner, 1, &keeper), HPCT_ERR_IO);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(hpct_spank_ports_keeper_start(folder, &owner, 1, &keeper), HPCT_ERR_IO);
    assert_int_equal(unlink(path), 0);
}

static int make_folder(void **state)
{
    snprintf(base_folder, sizeof base_folder, "%s/hpc-train-ports.XXXXXX", unit_folder());
    if (mkdtemp(base_folder) == NULL)
        return -1;
    snprintf(folder, sizeof folder, "%s/run", base_folder);
    return 0;
}

static int remove_folder(void **state)
{
    char path[128];
    snprintf(path, sizeof path, "%s/ports", folder);
    unlink(path);
    return rmdir(folder) + rmdir(base_folder);
}

int main(void)
{
    return unit_run(make_folder, remove_folder);
}
