/* agent/comm: frames, and the watch over real processes and sockets on this machine. */
#include "agent/comm/acceptor.h"
#include "agent/comm/link.h"
#include "agent/comm/watch.h"
#include "base/headway.h"
#include "base/status.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RANKS 4
#define SILENCE_MS 1500

static const hpct_key key = {{1, 2, 3}};
static const hpct_auth auth = {.key = &key, .run = "7.0"};

static void sleep_ms(int ms)
{
    struct timespec wait = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&wait, NULL);
}

/* ---- frames ---- */

static hpct_seal *seal(void)
{
    hpct_seal *seal;
    assert_int_equal(hpct_seal_new(&seal, &key), HPCT_OK);
    return seal;
}

static void frames_survive_the_way(void **state)
{
    (void) state;
    uint8_t bytes[HPCT_FRAME_BYTES];
    hpct_seal *writer = seal(), *reader = seal();
    hpct_frame in = {.type = HPCT_FRAME_ABORT, .status = 66, .rank = 70000}, out;
    hpct_frame_set(in.node, sizeof in.node, "node1");
    hpct_frame_set(in.text, sizeof in.text, "no such file");
    assert_true(hpct_frame_encode(bytes, &in, writer));
    assert_true(hpct_frame_decode(&out, bytes, reader));
    assert_int_equal(out.type, HPCT_FRAME_ABORT);
    assert_int_equal(out.status, 66);
    assert_int_equal(out.rank, 70000);
    assert_string_equal(out.node, "node1");
    assert_string_equal(out.text, "no such file");
    hpct_seal_free(writer);
    hpct_seal_free(reader);
}

/* Whether a frame with these bytes is taken, sealed by somebody with the key, or as it is. */
static bool is_taken(hpct_frame *out, const uint8_t frame[HPCT_FRAME_BYTES], bool sealed_anew)
{
    uint8_t bytes[HPCT_FRAME_BYTES];
    hpct_seal *writer = seal(), *reader = seal();
    memcpy(bytes, frame, sizeof bytes);
    hpct_seal_add(writer, bytes, 16);
    hpct_seal_add(writer, bytes + 32, sizeof bytes - 32);
    if (sealed_anew)
        assert_true(hpct_seal_end(writer, bytes + 16));
    bool taken = hpct_frame_decode(out, bytes, reader);
    hpct_seal_free(writer);
    hpct_seal_free(reader);
    return taken;
}

static void wrong_frames_are_refused(void **state)
{
    (void) state;
    uint8_t good[HPCT_FRAME_BYTES], bytes[HPCT_FRAME_BYTES];
    hpct_seal *writer = seal();
    hpct_frame in = {.type = HPCT_FRAME_HELLO, .rank = 1}, out;
    assert_true(hpct_frame_encode(good, &in, writer));
    hpct_seal_free(writer);
    assert_true(is_taken(&out, good, false));
    for (int i = 0; i < HPCT_FRAME_BYTES; i++) {
        memcpy(bytes, good, sizeof bytes);
        bytes[i] ^= 0x40;
        assert_false(is_taken(&out, bytes, false));
        if (i < 8 && i != 6) /* magic, version, type, 0 */
            assert_false(is_taken(&out, bytes, true));
    }
    memcpy(bytes, good, sizeof bytes);
    memset(bytes + 32, 'x', 64); /* a node name without an end */
    assert_false(is_taken(&out, bytes, true));
    memcpy(bytes, good, sizeof bytes);
    memcpy(bytes + 32, "a\033[2J", 6);
    assert_true(is_taken(&out, bytes, true));
    assert_string_equal(out.node, "a?[2J"); /* it may be printed on a terminal */
}

static void addresses_are_split(void **state)
{
    (void) state;
    char host[32];
    int port;
    assert_true(hpct_link_split_address("node0:22000", host, sizeof host, &port));
    assert_string_equal(host, "node0");
    assert_int_equal(port, 22000);
    assert_true(hpct_link_split_address("[fe80::1]:80", host, sizeof host, &port));
    assert_string_equal(host, "fe80::1");
    const char *const wrong[] = {"node0",
                                 ":80",
                                 "node0:",
                                 "node0:0",
                                 "node0:65536",
                                 "node0:8x",
                                 "a-name-that-is-longer-than-32-bytes:80"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(hpct_link_split_address(wrong[i], host, sizeof host, &port));
}

static void a_port_in_use_is_named(void **state)
{
    (void) state;
    int first, second, port = 0;
    assert_int_equal(hpct_link_listen(&first, &port, "here", 1), HPCT_OK);
    assert_true(port > 0);
    assert_int_equal(hpct_link_listen(&second, &port, "here", 1), HPCT_ERR_CONFIG);
    char text[64];
    snprintf(text, sizeof text, "port %d on here is in use", port);
    assert_non_null(strstr(hpct_last_error(), text));
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-port"));
    close(first);
}

/* ---- a group of processes under a watch ---- */

typedef struct group {
    pid_t pids[RANKS];
    int out[RANKS]; /* each rank's stderr */
    int listen_fd, port;
    int join_seconds, standstill_ms;
    atomic_int *joined; /* how many have, shared by all processes */
} group;

typedef void rank_function(hpct_watch *watch, int rank);

static void run_rank(const group *g, int rank, rank_function *function)
{
    char address[32], node[16];
    const char *addresses[] = {address}, *nodes[RANKS] = {"node0", "node1", "node2", "node3"};
    hpct_watch *watch = NULL;
    snprintf(address, sizeof address, "127.0.0.1:%d", g->port);
    snprintf(node, sizeof node, "node%d", rank);
    hpct_watch_options options = {
        .rank = rank,
        .size = RANKS,
        .node = node,
        .auth = &auth,
        .listen_fd = rank == 0 ? g->listen_fd : -1,
        .addresses = addresses,
        .num_addresses = 1,
        .rank_nodes = nodes,
        .join_seconds = g->join_seconds,
        .beat_ms = 200,
        .silence_ms = SILENCE_MS,
        .notice_ms = 600,
        .standstill_ms = g->standstill_ms,
    };
    hpct_status status = hpct_watch_start(&watch, &options);
    if (status != HPCT_OK) {
        dprintf(STDERR_FILENO, "%s\n", hpct_last_error());
        _exit((int) status);
    }
    atomic_fetch_add(g->joined, 1);
    function(watch, rank);
    _exit(0);
}

/* Starts all ranks but `absent` (-1 for none). */
static void start(group *g, rank_function *function, int absent)
{
    g->port = 0;
    g->joined =
        mmap(NULL, sizeof *g->joined, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(g->joined != MAP_FAILED);
    g->join_seconds = g->join_seconds > 0 ? g->join_seconds : 20;
    assert_int_equal(hpct_link_listen(&g->listen_fd, &g->port, "here", 1024), HPCT_OK);
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

static void wait_for_all(const group *g)
{
    for (int i = 0; atomic_load(g->joined) < RANKS && i < 3000; i++)
        sleep_ms(10);
    assert_int_equal(atomic_load(g->joined), RANKS);
}

/* Waits for a rank; its exit code (128 + signal when killed), and what it said. */
static int finish(group *g, int rank, char *said, size_t size)
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

static void leave_after_a_while(hpct_watch *watch, int rank)
{
    sleep_ms(100 * rank);
    hpct_watch_stop(watch);
}

static void work_for_ever(hpct_watch *watch, int rank)
{
    (void) watch;
    (void) rank;
    sleep_ms(50000);
}

static void all_come_and_leave(void **state)
{
    (void) state;
    group g = {0};
    char said[1024];
    start(&g, leave_after_a_while, -1);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(finish(&g, rank, said, sizeof said), 0);
        assert_string_equal(said, "");
    }
}

static atomic_int *arrivals; /* shared by the ranks */

static void meet_often(hpct_watch *watch, int rank)
{
    for (int round = 1; round <= 10; round++) {
        sleep_ms((rank * 7 + round * 13) % 30);
        atomic_fetch_add(arrivals, 1);
        hpct_watch_meet(watch);
        if (atomic_load(arrivals) < round * RANKS)
            _exit(1);
    }
    hpct_watch_stop(watch);
}

static void nobody_leaves_a_meeting_early(void **state)
{
    (void) state;
    group g = {0};
    char said[1024];
    arrivals =
        mmap(NULL, sizeof *arrivals, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(arrivals, MAP_FAILED);
    start(&g, meet_often, -1);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(finish(&g, rank, said, sizeof said), 0);
    munmap(arrivals, sizeof *arrivals);
}

static void check_others(group *g, int victim, int code, const char *named)
{
    char said[1024];
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank == victim || g->pids[rank] < 0)
            continue;
        assert_int_equal(finish(g, rank, said, sizeof said), code);
        if (strstr(said, named) == NULL)
            fail_msg("rank %d said '%s', not '%s'", rank, said, named);
    }
}

static void a_killed_rank_is_named(void **state)
{
    (void) state;
    const int victims[] = {2, 0};
    for (int i = 0; i < 2; i++) {
        group g = {0};
        char said[1024], named[32];
        start(&g, work_for_ever, -1);
        wait_for_all(&g);
        kill(g.pids[victims[i]], SIGKILL);
        snprintf(named, sizeof named, "rank %d on node%d was lost", victims[i], victims[i]);
        check_others(&g, victims[i], HPCT_ERR_PEER, named);
        assert_int_equal(finish(&g, victims[i], said, sizeof said), 128 + SIGKILL);
    }
}

static void a_stopped_rank_is_named(void **state)
{
    (void) state;
    const int victims[] = {3, 0};
    for (int i = 0; i < 2; i++) {
        group g = {0};
        char said[1024], named[64];
        start(&g, work_for_ever, -1);
        wait_for_all(&g);
        int64_t began = hpct_link_now_ms();
        kill(g.pids[victims[i]], SIGSTOP);
        snprintf(named, sizeof named, "rank %d on node%d was lost: no sign of life", victims[i],
                 victims[i]);
        check_others(&g, victims[i], HPCT_ERR_PEER, named);
        assert_true(hpct_link_now_ms() - began < SILENCE_MS + 3000);
        kill(g.pids[victims[i]], SIGCONT); /* it finds out by itself */
        assert_int_equal(finish(&g, victims[i], said, sizeof said), HPCT_ERR_PEER);
    }
}

static void a_pause_of_all_is_no_loss(void **state)
{
    (void) state;
    group g = {0};
    char said[1024];
    start(&g, work_for_ever, -1);
    wait_for_all(&g);
    for (int rank = 0; rank < RANKS; rank++)
        kill(g.pids[rank], SIGSTOP);
    sleep_ms(2 * SILENCE_MS);
    for (int rank = 0; rank < RANKS; rank++)
        kill(g.pids[rank], SIGCONT);
    sleep_ms(SILENCE_MS + 1000);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(waitpid(g.pids[rank], NULL, WNOHANG), 0); /* all are still at work */
    kill(g.pids[1], SIGKILL);
    check_others(&g, 1, HPCT_ERR_PEER, "rank 1 on node1 was lost");
    finish(&g, 1, said, sizeof said);
}

static void abort_at_two(hpct_watch *watch, int rank)
{
    if (rank != 2)
        sleep_ms(50000);
    sleep_ms(300);
    hpct_watch_abort(watch, HPCT_ERR_NO_INPUT, "x.gz: No such file");
    _exit(HPCT_ERR_NO_INPUT);
}

static void abort_at_zero(hpct_watch *watch, int rank)
{
    if (rank != 0)
        sleep_ms(50000);
    sleep_ms(300);
    hpct_watch_abort(watch, HPCT_ERR_IO, "disk full");
    _exit(HPCT_ERR_IO);
}

static void an_abort_reaches_all(void **state)
{
    (void) state;
    group g = {0};
    char said[1024];
    start(&g, abort_at_two, -1);
    check_others(&g, 2, HPCT_ERR_NO_INPUT, "rank 2 on node2 ended: x.gz: No such file");
    assert_int_equal(finish(&g, 2, said, sizeof said), HPCT_ERR_NO_INPUT);
    start(&g, abort_at_zero, -1);
    check_others(&g, 0, HPCT_ERR_IO, "rank 0 on node0 ended: disk full");
    assert_int_equal(finish(&g, 0, said, sizeof said), HPCT_ERR_IO);
}

/* Under valgrind (HPC_TRAIN_SHORT) and load the others take seconds to prove themselves. */
static void who_does_not_come_is_named(void **state)
{
    (void) state;
    const int absent[] = {2, 0}, seconds = getenv("HPC_TRAIN_SHORT") != NULL ? 15 : 3;
    for (int i = 0; i < 2; i++) {
        group g = {.join_seconds = seconds};
        char named[64];
        start(&g, work_for_ever, absent[i]);
        snprintf(named, sizeof named, "rank %d on node%d was lost: it did not come within %d s",
                 absent[i], absent[i], seconds);
        check_others(&g, absent[i], HPCT_ERR_PEER, named);
    }
}

/* ---- headway ---- */

static int keeps_all = 2; /* who waits for nobody */

static void all_wait_for_one(hpct_watch *watch, int rank)
{
    (void) watch;
    hpct_headway_enter(HPCT_WAITS_FOR_NOBODY);
    sleep_ms(100);
    if (rank != keeps_all)
        hpct_headway_enter(rank == 1 ? HPCT_WAITS_FOR_DEVICE : HPCT_WAITS_FOR_RANKS);
    sleep_ms(50000);
}

/* Of rank 0, which says more than the others. */
static void check_zero(group *g, int code, const char *first, const char *second)
{
    char said[1024];
    assert_int_equal(finish(g, 0, said, sizeof said), code);
    const char *at = strstr(said, first);
    if (at == NULL || strstr(at + 1, second) == NULL)
        fail_msg("rank 0 said '%s', not '%s' and '%s'", said, first, second);
    if (strstr(at + 1, first) != NULL)
        fail_msg("rank 0 said twice '%s'", first);
    g->pids[0] = -1;
}

static void who_keeps_all_others_is_named(void **state)
{
    (void) state;
    const int who[] = {2, 0};
    for (int i = 0; i < 2; i++) {
        group g = {.standstill_ms = 1200};
        char said[1024], noted[128], named[128];
        keeps_all = who[i];
        start(&g, all_wait_for_one, -1);
        snprintf(noted, sizeof noted, "hpc-train: rank %d on node%d: it has not gone on for 0 s",
                 who[i], who[i]);
        snprintf(named, sizeof named,
                 "rank %d on node%d was lost: it has not gone on for 1 s, and the others wait",
                 who[i], who[i]);
        if (who[i] != 0)
            check_zero(&g, HPCT_ERR_PEER, noted, named);
        check_others(&g, who[i], HPCT_ERR_PEER, named);
        assert_int_equal(finish(&g, who[i], said, sizeof said), HPCT_ERR_PEER);
        assert_non_null(strstr(said, "the other ranks gave this one up: it has not gone on"));
        if (who[i] == 0 && strstr(said, noted) == NULL)
            fail_msg("rank 0 said '%s', not '%s'", said, noted);
    }
}

/* Rank 3's file does not answer; later rank 1's. */
static void two_keep_the_others(hpct_watch *watch, int rank)
{
    (void) watch;
    hpct_headway_enter(HPCT_WAITS_FOR_NOBODY);
    if (rank == 1)
        sleep_ms(600);
    hpct_headway();
    if (rank != 3 && rank != 1)
        hpct_headway_enter(HPCT_WAITS_FOR_RANKS);
    sleep_ms(50000);
}

static void who_stopped_first_is_named(void **state)
{
    (void) state;
    group g = {.standstill_ms = 1000};
    start(&g, two_keep_the_others, -1);
    check_others(&g, 3, HPCT_ERR_PEER,
                 "rank 3 on node3 was lost: it has not gone on for 1 s, as 1 more, and the others");
    char said[1024];
    assert_int_equal(finish(&g, 3, said, sizeof said), HPCT_ERR_PEER);
}

/* Rank 0's standard error is full. */
static void all_wait_and_nobody_reads(hpct_watch *watch, int rank)
{
    char line[512] = "";
    if (rank == 0) {
        int flags = fcntl(STDERR_FILENO, F_GETFL);
        fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
        while (write(STDERR_FILENO, line, sizeof line) > 0)
            ;
        fcntl(STDERR_FILENO, F_SETFL, flags);
    }
    all_wait_for_one(watch, rank);
}

static void a_notice_that_nobody_reads_keeps_nobody(void **state)
{
    (void) state;
    group g = {.standstill_ms = 0};
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded != NULL && strstr(preloaded, "vgpreload") != NULL)
        skip(); /* valgrind does not end a thread that writes */
    start(&g, all_wait_and_nobody_reads, -1);
    sleep_ms(600 + SILENCE_MS + 1000);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(waitpid(g.pids[rank], NULL, WNOHANG), 0);
    for (int rank = 0; rank < RANKS; rank++) {
        kill(g.pids[rank], SIGKILL);
        assert_int_equal(waitpid(g.pids[rank], NULL, 0), g.pids[rank]);
        close(g.out[rank]);
    }
    g.standstill_ms = 1000; /* and the run ends all the same */
    start(&g, all_wait_and_nobody_reads, -1);
    for (int rank = 0; rank < RANKS; rank++) {
        int status;
        assert_int_equal(waitpid(g.pids[rank], &status, 0), g.pids[rank]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == HPCT_ERR_PEER);
        close(g.out[rank]);
    }
}

static void all_wait_for_the_rest(hpct_watch *watch, int rank)
{
    (void) watch;
    (void) rank;
    hpct_headway_enter(HPCT_WAITS_FOR_NOBODY);
    hpct_headway_enter(HPCT_WAITS_FOR_RANKS);
    sleep_ms(50000);
}

static void all_wait_for_devices(hpct_watch *watch, int rank)
{
    (void) watch;
    hpct_headway_enter(HPCT_WAITS_FOR_NOBODY);
    hpct_headway_enter(rank == 0 ? HPCT_WAITS_FOR_RANKS : HPCT_WAITS_FOR_DEVICE);
    sleep_ms(50000);
}

static void nobody_is_blamed_where_all_wait(void **state)
{
    (void) state;
    group g = {.standstill_ms = 1000};
    start(&g, all_wait_for_the_rest, -1);
    check_others(&g, -1, HPCT_ERR_PEER, "no rank has gone on for 1 s: all wait for one another");
    start(&g, all_wait_for_devices, -1);
    check_others(&g, -1, HPCT_ERR_PEER, "no rank has gone on for 1 s: all wait for their GPUs");
}

/* One works on while the others wait for it; or one does not train. */
static void one_goes_on(hpct_watch *watch, int rank)
{
    hpct_headway_enter(HPCT_WAITS_FOR_NOBODY);
    if (rank != 3)
        hpct_headway_enter(HPCT_WAITS_FOR_RANKS);
    for (int i = 0; i < 15; i++) {
        if (rank == 3)
            hpct_headway();
        sleep_ms(100);
    }
    if (rank == 3)
        hpct_headway_enter(HPCT_WAITS_UNSEEN);
    sleep_ms(1200);
    hpct_watch_stop(watch);
}

static void who_works_may_take_long(void **state)
{
    (void) state;
    group g = {.standstill_ms = 1000};
    char said[1024];
    start(&g, one_goes_on, -1);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(finish(&g, rank, said, sizeof said), 0);
        assert_string_equal(said, "");
    }
}

static void a_standstill_may_be_suffered(void **state)
{
    (void) state;
    group g = {.standstill_ms = 0};
    char said[1024];
    keeps_all = 2;
    start(&g, all_wait_for_one, -1);
    sleep_ms(4000); /* under valgrind and load it takes a while until it is said */
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(waitpid(g.pids[rank], NULL, WNOHANG), 0);
    kill(g.pids[1], SIGKILL);
    check_zero(&g, HPCT_ERR_PEER, "rank 2 on node2: it has not gone on",
               "rank 1 on node1 was lost");
    check_others(&g, 1, HPCT_ERR_PEER, "rank 1 on node1 was lost");
    finish(&g, 1, said, sizeof said);
}

static void only_who_trains_is_looked_at(void **state)
{
    (void) state;
    hpct_waits waits;
    uint32_t before = hpct_headway_look(&waits);
    assert_int_equal(waits, HPCT_WAITS_UNSEEN);
    assert_int_equal(hpct_headway_enter(HPCT_WAITS_FOR_RANKS), HPCT_WAITS_UNSEEN); /* no training */
    assert_int_equal(hpct_headway_look(&waits), before + 1);
    assert_int_equal(waits, HPCT_WAITS_UNSEEN);
    assert_int_equal(hpct_headway_enter(HPCT_WAITS_FOR_NOBODY), HPCT_WAITS_UNSEEN);
    assert_int_equal(hpct_headway_enter(HPCT_WAITS_FOR_RANKS), HPCT_WAITS_FOR_NOBODY);
    assert_int_equal(hpct_headway_enter(HPCT_WAITS_FOR_NOBODY), HPCT_WAITS_FOR_RANKS);
    assert_int_equal(hpct_headway_enter(HPCT_WAITS_UNSEEN), HPCT_WAITS_FOR_NOBODY);
    hpct_headway_enter(HPCT_WAITS_FOR_DEVICE);
    hpct_headway_look(&waits);
    assert_int_equal(waits, HPCT_WAITS_UNSEEN);
}

/* Somebody who connects to rank 0's port and sends `bytes`. */
static int stranger(int port, const void *bytes, size_t size)
{
    char address[32];
    int fd;
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    assert_int_equal(hpct_link_connect(&fd, address, 1000), HPCT_OK);
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
    return fd;
}

/* What a task with this key and number would say first. */
static void make_hello(uint8_t hello[HPCT_PROOF_HELLO], const hpct_auth *with, uint32_t rank)
{
    hpct_proof proof;
    assert_int_equal(hpct_proof_begin(&proof, with, HPCT_FOR_WATCH, rank, 0), HPCT_OK);
    memcpy(hello, proof.hello, HPCT_PROOF_HELLO);
}

/* Noise; hellos of another key, another run and a rank that there is not; one that was overheard
 * and said again; a frame without any hello; and more who say nothing than are listened to. */
static void strangers_change_nothing(void **state)
{
    (void) state;
    enum { SILENT = 3 * HPCT_ACCEPTOR_PENDING };
    group g = {.join_seconds = 20};
    const hpct_key other_key = {{9}};
    const hpct_auth other = {.key = &other_key, .run = "7.0"}, later = {.key = &key, .run = "7.1"};
    uint8_t bytes[HPCT_FRAME_BYTES], hello[HPCT_PROOF_HELLO];
    int fds[6 + SILENT], num = 0;
    char said[1024];
    const char *waiting = "hpc-train: waiting for "; /* as rank 0 says where they take long */
    start(&g, leave_after_a_while, 3);
    sleep_ms(300);
    fds[num++] = stranger(g.port, "GET / HTTP/1.0\r\n\r\n", 18);
    memset(bytes, 0xff, sizeof bytes);
    fds[num++] = stranger(g.port, bytes, sizeof bytes);
    make_hello(hello, &other, 3); /* who has not come yet */
    fds[num++] = stranger(g.port, hello, sizeof hello);
    make_hello(hello, &later, 3);
    fds[num++] = stranger(g.port, hello, sizeof hello);
    make_hello(hello, &auth, RANKS);
    fds[num++] = stranger(g.port, hello, sizeof hello);
    make_hello(hello, &auth, 3);
    fds[num++] = stranger(g.port, hello, sizeof hello);
    while (num < 6 + SILENT)
        fds[num++] = stranger(g.port, "", 0);
    sleep_ms(300);
    for (int rank = 0; rank < 3; rank++)
        assert_int_equal(waitpid(g.pids[rank], NULL, WNOHANG), 0);
    g.pids[3] = fork();
    if (g.pids[3] == 0)
        run_rank(&g, 3, leave_after_a_while);
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(finish(&g, rank, said, sizeof said), 0);
        assert_true(said[0] == '\0' || strncmp(said, waiting, strlen(waiting)) == 0);
        assert_null(strstr(said, "lost"));
    }
    assert_int_equal(waitpid(g.pids[3], NULL, 0), g.pids[3]);
    while (num > 0)
        close(fds[--num]);
}

/* Rank 0 sleeps while rank 1 comes, gives up and comes again: the first time never counted. */
static void a_hello_of_one_who_left_is_no_rank(void **state)
{
    (void) state;
    group g = {.join_seconds = 20};
    uint8_t hello[HPCT_PROOF_HELLO];
    char said[1024];
    start(&g, leave_after_a_while, 3);
    kill(g.pids[0], SIGSTOP);
    make_hello(hello, &auth, 3);
    close(stranger(g.port, hello, sizeof hello));
    sleep_ms(300);
    kill(g.pids[0], SIGCONT);
    sleep_ms(300);
    g.pids[3] = fork();
    if (g.pids[3] == 0)
        run_rank(&g, 3, leave_after_a_while);
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(finish(&g, rank, said, sizeof said), 0);
        assert_string_equal(said, "");
    }
    assert_int_equal(waitpid(g.pids[3], NULL, 0), g.pids[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_survive_the_way),
        cmocka_unit_test(wrong_frames_are_refused),
        cmocka_unit_test(addresses_are_split),
        cmocka_unit_test(a_port_in_use_is_named),
        cmocka_unit_test(all_come_and_leave),
        cmocka_unit_test(a_killed_rank_is_named),
        cmocka_unit_test(a_stopped_rank_is_named),
        cmocka_unit_test(a_pause_of_all_is_no_loss),
        cmocka_unit_test(an_abort_reaches_all),
        cmocka_unit_test(who_does_not_come_is_named),
        cmocka_unit_test(strangers_change_nothing),
        cmocka_unit_test(a_hello_of_one_who_left_is_no_rank),
        cmocka_unit_test(nobody_leaves_a_meeting_early),
        cmocka_unit_test(who_keeps_all_others_is_named),
        cmocka_unit_test(who_stopped_first_is_named),
        cmocka_unit_test(a_notice_that_nobody_reads_keeps_nobody),
        cmocka_unit_test(nobody_is_blamed_where_all_wait),
        cmocka_unit_test(who_works_may_take_long),
        cmocka_unit_test(a_standstill_may_be_suffered),
        cmocka_unit_test(only_who_trains_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
