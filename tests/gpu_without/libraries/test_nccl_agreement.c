/* agent/comm: whether all ranks take NCCL, from what each says of itself; the exchange of that over
 * real sockets. */
#include "agent/comm/device.h"
#include "agent/comm/exchange.h"
#include "base/net/link.h"
#include "tests/gpu_without/libraries/recorder.h"
#include "tests/unit/unit.h"

#include <sys/wait.h>
#include <unistd.h>

TEST(all_have_nccl_or_none_takes_it)
{
    hpct_nccl_card cards[3];
    bool take = false;
    char why[256];
    recorder_reset(3);
    unsetenv("NCCL_HOSTID");
    for (int rank = 0; rank < 3; rank++) {
        hpct_nccl_card_fill(&cards[rank], &recorder_calls, rank);
        assert_int_equal(cards[rank].version, 22800);
        assert_int_equal(cards[rank].id[0], rank == 0 ? 7 : 0);
        snprintf(cards[rank].gpu, sizeof cards[rank].gpu, "0000:0%d:00.0", rank);
    }
    assert_int_equal(hpct_nccl_cards_judge(&take, why, sizeof why, cards, 3), HPCT_OK);
    assert_true(take);
    memcpy(cards[2].gpu, cards[1].gpu, sizeof cards[2].gpu);
    assert_int_equal(hpct_nccl_cards_judge(&take, why, sizeof why, cards, 3), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "ranks 1 and 2 have the same GPU"));
    setenv("NCCL_HOSTID", "another", 1);
    hpct_nccl_card_fill(&cards[2], &recorder_calls, 2);
    memcpy(cards[2].gpu, cards[1].gpu, sizeof cards[2].gpu);
    unsetenv("NCCL_HOSTID");
    assert_int_equal(hpct_nccl_cards_judge(&take, why, sizeof why, cards, 3), HPCT_OK);
    assert_true(take);
    hpct_nccl_card_fill(&cards[1], NULL, 1);
    assert_int_equal(hpct_nccl_cards_judge(&take, why, sizeof why, cards, 3), HPCT_OK);
    assert_false(take);
    assert_string_equal(why, "rank 1: it has no GPU");
    recorder.without_nccl = true;
    hpct_nccl_card_fill(&cards[1], &recorder_calls, 1);
    assert_int_equal(hpct_nccl_cards_judge(&take, why, sizeof why, cards, 3), HPCT_OK);
    assert_string_equal(why, "rank 1: the library's words");
}

/* `come` of three ranks, each a process; what the exchange says on each goes through exit codes. */
static void meet(int come, int expected)
{
    /* under valgrind (HPC_TRAIN_SHORT) and load the others take seconds to prove themselves */
    const int seconds = getenv("HPC_TRAIN_SHORT") != NULL ? 15 : 5;
    char late[80];
    char address[64];
    char *addresses[3] = {address, (char[]){"node1:2"}, (char[]){"node2:2"}};
    pid_t ranks[3];
    int listen_fd = -1, port = 0;
    assert_int_equal(hpct_net_link_listen(&listen_fd, &port, "here", 8), HPCT_OK);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    snprintf(late, sizeof late, "rank 2 at node2:2 did not come within %d s", seconds);
    for (int rank = 0; rank < come; rank++) {
        ranks[rank] = fork();
        if (ranks[rank] != 0)
            continue;
        hpct_cluster_config config = {.size = 3, .rank = rank, .addresses = addresses};
        const hpct_auth_key key = {{1}};
        const hpct_auth auth = {.key = &key, .run = "1.0"};
        int mine[2] = {rank + 10, -rank}, all[3][2];
        if (rank == 0)
            usleep(100000); /* the others come too early */
        hpct_comm_meeting meeting = {.config = &config,
                                     .auth = &auth,
                                     .listen_fd = rank == 0 ? listen_fd : -1,
                                     .seconds = come == 3 ? 60 : seconds};
        hpct_status status = hpct_comm_exchange(&meeting, mine, all, sizeof mine);
        for (int other = 0; other < 3 && status == HPCT_OK; other++) {
            if (all[other][0] != other + 10 || all[other][1] != -other)
                _exit(1);
        }
        if (come < 3 && strstr(hpct_last_error(), late) == NULL && rank == 0)
            _exit(2);
        _exit((int) status);
    }
    close(listen_fd);
    for (int rank = 0; rank < come; rank++) {
        int status = 0;
        assert_int_equal(waitpid(ranks[rank], &status, 0), ranks[rank]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), expected);
    }
}

TEST(records_reach_all)
{
    meet(3, HPCT_OK);
}

TEST(who_is_missing_is_named)
{
    meet(2, HPCT_ERR_PEER);
}
