/* Which nodes are called slow, as tables of figures; who meets whom; what is printed and written.
 */
#include "agent/cost/nodes.h"
#include "agent/cost/nodes_report.h"
#include "agent/cost/pairs.h"
#include "agent/cost/scratch.h"
#include "agent/results/json_file.h"
#include "base/process.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/step.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/cases.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

#define MOST 9

/* ---- the judgement ---- */

/* Values of a figure, by node; -1: not measured. `number` is the figure. The names of slow nodes.
 */
static hpct_status judge(const parse_case *c, char *got, size_t size)
{
    hpct_cost_node_row rows[MOST] = {{{0}}};
    double medians[HPCT_COST_FIGURES];
    int num = 0, used, slow = 0;
    double value;
    for (const char *at = c->text; sscanf(at, "%lf%n", &value, &used) == 1; at += used) {
        for (int i = 0; i < HPCT_COST_FIGURES; i++)
            rows[num].figures[i] = i == c->number && value >= 0 ? value : NAN;
        snprintf(rows[num].name, sizeof rows[num].name, "n%d", num);
        num++;
    }
    assert_int_equal(hpct_cost_nodes_judge(rows, num, medians), HPCT_OK);
    slow = hpct_cost_nodes_slow(rows, num, got, size);
    used = (int) strlen(got);
    snprintf(got + used, size - (size_t) used, " %d %.1f", slow, medians[c->number]);
    return HPCT_OK;
}

TEST(a_node_under_half_of_the_median_is_slow)
{
    static const parse_case cases[] = {
        {"10 10 4 10", HPCT_OK, "n2 1 10.0", HPCT_COST_FIGURE_COMPUTE},
        {"10 10 5 10", HPCT_OK, " 0 10.0", HPCT_COST_FIGURE_COMPUTE}, /* half is not under half */
        {"10 12 4", HPCT_OK, "n2 1 10.0", HPCT_COST_FIGURE_MEMORY},
        {"10 4 4", HPCT_OK, " 0 4.0", HPCT_COST_FIGURE_MEMORY}, /* most are as slow */
        {"10 8 3 3", HPCT_OK, " 0 5.5", HPCT_COST_FIGURE_LINK},
        {"1 10 10 2 10", HPCT_OK, "n0, n3 2 10.0", HPCT_COST_FIGURE_LINK},
        {"10 10 30 10", HPCT_OK, "n2 1 10.0", HPCT_COST_FIGURE_LATENCY},
        {"10 10 20 10", HPCT_OK, " 0 10.0", HPCT_COST_FIGURE_LATENCY},
        {"10 10 1 10", HPCT_OK, " 0 10.0", HPCT_COST_FIGURE_LATENCY}, /* a better one */
        {"100 0 100", HPCT_OK, "n1 1 100.0", HPCT_COST_FIGURE_SCRATCH},
        {"0 0 0", HPCT_OK, " 0 0.0", HPCT_COST_FIGURE_SCRATCH},
    };
    RUN_CASES(judge, cases);
}

TEST(two_nodes_are_compared_with_each_other)
{
    static const parse_case cases[] = {
        {"10 4", HPCT_OK, "n1 1 7.0", HPCT_COST_FIGURE_COMPUTE}, /* over half of the mean */
        {"4 10", HPCT_OK, "n0 1 7.0", HPCT_COST_FIGURE_COMPUTE},
        {"6 10", HPCT_OK, " 0 8.0", HPCT_COST_FIGURE_COMPUTE},
        {"10 25", HPCT_OK, "n1 1 17.5", HPCT_COST_FIGURE_LATENCY},
        {"10 15", HPCT_OK, " 0 12.5", HPCT_COST_FIGURE_LATENCY},
        {"10 -1 4", HPCT_OK, "n2 1 7.0", HPCT_COST_FIGURE_COMPUTE}, /* one is unknown */
    };
    RUN_CASES(judge, cases);
}

TEST(what_is_not_known_is_not_slow)
{
    static const parse_case cases[] = {
        {"10", HPCT_OK, " 0 nan", HPCT_COST_FIGURE_COMPUTE},
        {"-1 -1 -1", HPCT_OK, " 0 nan", HPCT_COST_FIGURE_LINK},
        {"-1 10 -1", HPCT_OK, " 0 nan", HPCT_COST_FIGURE_LINK},
        {"10 10 -1 10 4", HPCT_OK, "n4 1 10.0", HPCT_COST_FIGURE_LINK},
    };
    RUN_CASES(judge, cases);
}

TEST(names_that_do_not_fit_are_counted)
{
    hpct_cost_node_row rows[MOST] = {{{0}}};
    char text[60];
    for (int i = 0; i < MOST; i++) {
        snprintf(rows[i].name, sizeof rows[i].name, "node%d", i);
        rows[i].slow[HPCT_COST_FIGURE_LINK] = true;
    }
    assert_int_equal(hpct_cost_nodes_slow(rows, MOST, text, sizeof text), MOST);
    assert_string_equal(text, "node0, node1, node2, node3, node4, node5 and 3 more");
}

/* ---- pairs ---- */

TEST(each_round_is_of_pairs)
{
    for (int nodes = 2; nodes <= 101; nodes++) {
        int rounds = hpct_cost_pairs_rounds(nodes);
        assert_within(rounds, 1, HPCT_COST_PAIRS_MOST);
        for (int node = 0; node < nodes; node++) {
            int met[HPCT_COST_PAIRS_MOST], alone = 0;
            for (int round = 0; round < rounds; round++) {
                met[round] = hpct_cost_pairs_partner(nodes, round, node);
                alone += met[round] < 0;
                if (met[round] < 0)
                    continue;
                assert_within(met[round], 0, nodes - 1);
                assert_int_not_equal(met[round], node);
                assert_int_equal(hpct_cost_pairs_partner(nodes, round, met[round]), node);
                for (int before = 0; before < round; before++)
                    assert_int_not_equal(met[before], met[round]);
            }
            assert_true(alone <= nodes % 2); /* of an odd number one waits */
        }
    }
    assert_int_equal(hpct_cost_pairs_rounds(1), 0);
}

/* ---- what is told ---- */

static void fill(hpct_cost_node_row *rows)
{
    static const double figures[3][HPCT_COST_FIGURES] = {{45e9, 12e9, 500e6, 31e-6, 1180e6},
                                                         {10e9, 12e9, 0, 31e-6, 1180e6},
                                                         {46e9, 12e9, 510e6, 31e-6, NAN}};
    for (int i = 0; i < 3; i++) {
        memset(&rows[i], 0, sizeof rows[i]);
        snprintf(rows[i].name, sizeof rows[i].name, "node%d", i);
        rows[i].ranks = rows[i].threads = 1;
        memcpy(rows[i].figures, figures[i], sizeof figures[i]);
    }
    strcpy(rows[1].state, "CPUs at 1200 of 3800 MHz");
    strcpy(rows[1].scratch, "/scratch\xff: full");
}

TEST(slow_nodes_and_links_are_told)
{
    hpct_cost_node_row rows[3];
    const hpct_cost_pair none = {.node = -1};
    const hpct_cost_pair pairs[] = {{1, 1e-6, 1e9}, none,           {2, 1e-6, 1e8},
                                    {0, 1e-6, 9e8}, {2, 1e-6, 1e9}, none,
                                    none,           {1, 1e-6, 1e9}, {0, 1e-6, 1e8}};
    double medians[HPCT_COST_FIGURES];
    char *text = NULL, path[300];
    size_t size;
    fill(rows);
    assert_int_equal(hpct_cost_nodes_judge(rows, 3, medians), HPCT_OK);
    const hpct_cost_nodes_report report = {rows, 3, medians, pairs, 3};
    FILE *stream = open_memstream(&text, &size);
    hpct_cost_nodes_print(&report, stream);
    fclose(stream);
    assert_non_null(strstr(
        text,
        "node    ranks   GFLOP/s   memory GB/s   scratch MB/s   latency us   link MB/s  remark\n"));
    assert_non_null(strstr(text, "node0       1      45.0          12.0          500.0         "
                                 "31.0        1180  100.0 MB/s to node2\n"));
    assert_non_null(strstr(text, "        -  100.0 MB/s to node0\n"));
    assert_non_null(strstr(text, "slow compute, slow scratch, /scratch\xff: full\n"));
    assert_non_null(strstr(
        text,
        "\nnode1 is slow: compute 10.0 GFLOP/s, the median is 45.0: CPUs at 1200 of 3800 MHz\n"));
    assert_non_null(strstr(
        text, "\nnode1 is slow: scratch 0.0 MB/s, the median is 500.0: /scratch\xff: full\n"));
    free(text);
    snprintf(path, sizeof path, "%s/check.json", pictures_folder());
    assert_int_equal(hpct_cost_nodes_write(&report, path), HPCT_OK);
    json_t *root;
    assert_int_equal(hpct_results_json_read(&root, path), HPCT_OK);
    assert_int_equal(json_array_size(json_object_get(root, "nodes")), 3);
    assert_int_equal(json_array_size(json_object_get(root, "links")), 3);
    const json_t *second = json_array_get(json_object_get(root, "nodes"), 1);
    assert_int_equal(json_array_size(json_object_get(second, "slow")), 2);
    assert_string_equal(json_string_value(json_object_get(second, "scratch_error")),
                        "/scratch?: full");
    json_decref(root);
}

/* ---- what a node measures ---- */

TEST(rates_are_of_all_that_was_done)
{
    hpct_cpu_meter *meter;
    if (getenv("HPC_TRAIN_SHORT") != NULL)
        skip(); /* valgrind needs minutes for each product */
    for (size_t bytes = 0; bytes <= (size_t) 4 << 20; bytes += (size_t) 4 << 20) {
        hpct_backend_rates rates = {0};
        assert_int_equal(hpct_cpu_meter_open(&meter, bytes), HPCT_OK);
        double began = hpct_process_clock();
        assert_int_equal(hpct_cpu_meter_run(meter, 0.05, &rates), HPCT_OK);
        double seconds = hpct_process_clock() - began;
        assert_true(seconds >= 0.075); /* half of the time for memory */
        assert_true(isfinite(rates.flops) && rates.flops * seconds >= 2.0 * 1024 * 1024 * 1024);
        assert_true(isfinite(rates.bytes) && rates.bytes > 0);
        hpct_cpu_meter_close(meter);
    }
    hpct_cpu_meter_close(NULL);
}

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *all = opendir(folder);
    while (readdir(all) != NULL)
        count++;
    closedir(all);
    return count - 2;
}

TEST(scratch_leaves_nothing)
{
    char why[HPCT_COST_NODE_TEXT];
    const char *folder = pictures_folder();
    assert_true(hpct_cost_scratch_measure(folder, why, sizeof why) > 0);
    assert_string_equal(why, "");
    assert_int_equal(count_entries(folder), 0);
    assert_true(hpct_cost_scratch_measure("/proc/none", why, sizeof why) == 0);
    assert_non_null(strstr(why, "/proc/none"));
    assert_true(hpct_cost_scratch_measure("/proc/self", why, sizeof why) == 0);
    assert_non_null(strstr(why, "/proc/self"));
}

TEST(scratch_is_where_the_job_has_it)
{
    setenv("SLURM_TMPDIR", "/job", 1);
    setenv("TMPDIR", "/mine", 1);
    assert_string_equal(hpct_cost_scratch_folder(), "/job");
    setenv("SLURM_TMPDIR", "", 1);
    assert_string_equal(hpct_cost_scratch_folder(), "/mine");
    unsetenv("TMPDIR");
    assert_string_equal(hpct_cost_scratch_folder(), "/tmp");
}
