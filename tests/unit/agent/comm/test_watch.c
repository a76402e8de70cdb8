/* agent/comm/watch: ranks that join, leave, die or abort; strangers at its port. */
#include "base/net/acceptor.h"
#include "base/net/link.h"
#include "tests/unit/agent/comm/watch_group.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(ranks_join_and_leave)
{
    group g = {0};
    char said[1024];
    start(&g, leave_after_a_while, -1);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(finish(&g, rank, said, sizeof said), 0);
        assert_string_equal(said, "");
    }
}

static atomic_int *arrivals; /* shared by the ranks */

static void meet_often(hpct_comm_watch *watch, int rank)
{
    for (int round = 1; round <= 10; round++) {
        sleep_ms((rank * 7 + round * 13) % 30);
        atomic_fetch_add(arrivals, 1);
        hpct_comm_watch_meet(watch);
        if (atomic_load(arrivals) < round * RANKS)
            _exit(1);
    }
    hpct_comm_watch_stop(watch);
}

TEST(barrier_waits_for_all_ranks)
{
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

TEST(killed_rank_is_reported)
{
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

TEST(stopped_rank_is_reported_after_timeout)
{
    const int victims[] = {3, 0};
    for (int i = 0; i < 2; i++) {
        group g = {0};
        char said[1024], named[64];
        start(&g, work_for_ever, -1);
        wait_for_all(&g);
        int64_t began = hpct_now_ms();
        kill(g.pids[victims[i]], SIGSTOP);
        snprintf(named, sizeof named, "rank %d on node%d was lost: no heartbeat", victims[i],
                 victims[i]);
        check_others(&g, victims[i], HPCT_ERR_PEER, named);
        assert_true(hpct_now_ms() - began < SILENCE_MS + 3000);
        kill(g.pids[victims[i]], SIGCONT); /* it finds out by itself */
        assert_int_equal(finish(&g, victims[i], said, sizeof said), HPCT_ERR_PEER);
    }
}

TEST(pausing_all_ranks_is_no_timeout)
{
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

static void abort_at_two(hpct_comm_watch *watch, int rank)
{
    if (rank != 2)
        sleep_ms(50000);
    sleep_ms(300);
    hpct_comm_watch_abort(watch, HPCT_ERR_NO_INPUT, "x.gz: No such file");
    _exit(HPCT_ERR_NO_INPUT);
}

static void abort_at_zero(hpct_comm_watch *watch, int rank)
{
    if (rank != 0)
        sleep_ms(50000);
    sleep_ms(300);
    hpct_comm_watch_abort(watch, HPCT_ERR_IO, "disk full");
    _exit(HPCT_ERR_IO);
}

TEST(abort_is_broadcast)
{
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
TEST(missing_rank_is_reported_after_join_timeout)
{
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

/* Somebody who connects to rank 0's port and sends `bytes`. */
static int stranger(int port, const void *bytes, size_t size)
{
    char address[32];
    int fd;
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    assert_int_equal(hpct_net_link_connect(&fd, address, 1000), HPCT_OK);
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
    return fd;
}

/* What a task with this key and number would say first. */
static void make_hello(uint8_t hello[HPCT_AUTH_PROOF_HELLO], const hpct_auth *with, uint32_t rank)
{
    hpct_auth_proof proof;
    assert_int_equal(hpct_auth_proof_begin(&proof, with, HPCT_AUTH_FOR_WATCH, rank, 0), HPCT_OK);
    memcpy(hello, proof.hello, HPCT_AUTH_PROOF_HELLO);
}

/* Noise; hellos of another key, another run and a rank that there is not; one that was overheard
 * and said again; a frame without any hello; and more who say nothing than are listened to. */
TEST(unauthenticated_connections_are_ignored)
{
    enum { SILENT = 3 * HPCT_NET_ACCEPTOR_PENDING };
    group g = {.join_seconds = 20};
    const hpct_auth_key other_key = {{9}};
    const hpct_auth other = {.key = &other_key, .run = "7.0"}, later = {.key = &key, .run = "7.1"};
    uint8_t bytes[HPCT_NET_FRAME_BYTES], hello[HPCT_AUTH_PROOF_HELLO];
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
TEST(hello_of_a_closed_connection_is_ignored)
{
    group g = {.join_seconds = 20};
    uint8_t hello[HPCT_AUTH_PROOF_HELLO];
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
