/* What the nodes of a step say of its results, to srun. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "spank/agree/results.h"

static hpct_agree_results_host *host;
static hpct_auth_key key;
static char address[64];

static void serve(void)
{
    int port = 0;
    assert_int_equal(hpct_auth_key_draw(&key), HPCT_OK);
    assert_int_equal(hpct_agree_results_serve(&host, &key, 0, 0, &port), HPCT_OK);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
}

static bool tell(uint32_t node, uint32_t nodes, hpct_status status, const char *there)
{
    const hpct_agree_results_way way = {.address = address,
                                        .key = &key,
                                        .node = node,
                                        .nodes = nodes,
                                        .name = node == 0 ? "first" : "other"};
    return hpct_agree_results_tell(&way, status, there, 60);
}

TEST(reports_of_all_nodes_arrive)
{
    hpct_agree_results_sum sum;
    serve();
    assert_true(tell(0, 3, HPCT_OK, NULL));
    assert_true(tell(2, 3, HPCT_OK, NULL));
    assert_true(tell(2, 3, HPCT_OK, "010"));
    assert_true(tell(0, 3, HPCT_ERR_IO, "110"));
    assert_true(tell(0, 3, HPCT_OK, "111")); /* said twice */
    hpct_agree_results_end(host, &sum);
    assert_int_equal(sum.nodes, 3);
    assert_int_equal(sum.ended, 2);
    assert_int_equal(sum.status, HPCT_ERR_IO);
    assert_int_equal(sum.have[0], 1);
    assert_string_equal(sum.where[0], "first");
    assert_string_equal(sum.where[1], "other");
    assert_int_equal(sum.have[1], 2);
    assert_int_equal(sum.have[2], 0);
}

TEST(unauthenticated_report_is_ignored)
{
    hpct_agree_results_sum sum;
    hpct_auth_key other;
    serve();
    assert_int_equal(hpct_auth_key_draw(&other), HPCT_OK);
    const hpct_agree_results_way way = {
        .address = address, .key = &other, .node = 0, .nodes = 1, .name = ""};
    assert_false(hpct_agree_results_tell(&way, HPCT_OK, "1", 0.2));
    hpct_agree_results_end(host, &sum);
    assert_int_equal(sum.nodes, 0);
    assert_int_equal(sum.ended, 0);
    /* nobody listens any more */
    assert_false(hpct_agree_results_tell(
        &(hpct_agree_results_way){.address = address, .key = &key, .nodes = 1, .name = ""}, HPCT_OK,
        "1", 0.2));
}
