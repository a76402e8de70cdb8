/* agent/cluster: distributions, layouts, ports. What real srun does is compared on the cluster
 * (tests/cluster/plugin_layout.t); here are the recorded cases. */
#include "agent/cluster/layout.h"
#include "agent/cluster/ports.h"
#include "tests/unit/unit.h"

/* `want` lists "node:local" of rank 0, 1, ... */
static void lies(const char *distribution, const char *plane, int nodes, const int *tasks,
                 const int *placed, const char *want)
{
    hpct_distribution parsed;
    hpct_layout layout;
    char text[512] = "";
    assert_int_equal(hpct_distribution_parse(distribution, plane, &parsed), HPCT_OK);
    assert_int_equal(hpct_layout_make(tasks, nodes, parsed, placed, &layout), HPCT_OK);
    for (int rank = 0; rank < layout.size; rank++)
        sprintf(text + strlen(text), "%s%d:%d", rank > 0 ? " " : "", layout.node[rank],
                layout.local[rank]);
    hpct_layout_free(&layout);
    assert_string_equal(text, want);
}

static void distributions_are_dealt_as_slurm_does(void **state)
{
    (void) state;
    const int uneven[] = {5, 1, 1}, overcommitted[] = {4, 3}, hosts[] = {2, 1, 2};
    const int placed[] = {2, 0, 2, 1, 0};
    const char *block = "0:0 0:1 0:2 0:3 0:4 1:0 2:0";
    const char *cyclic = "0:0 1:0 2:0 0:1 0:2 0:3 0:4";
    lies(NULL, NULL, 3, uneven, NULL, block);
    lies("block", NULL, 3, uneven, NULL, block);
    lies("block:cyclic,nopack", NULL, 3, uneven, NULL, block);
    lies("*:cyclic", NULL, 3, uneven, NULL, block);
    lies("cyclic", NULL, 3, uneven, NULL, cyclic);
    lies("cyclic:block", NULL, 3, uneven, NULL, cyclic);
    lies("plane", "2", 3, uneven, NULL, "0:0 0:1 1:0 2:0 0:2 0:3 0:4");
    lies("plane=2", NULL, 3, uneven, NULL, "0:0 0:1 1:0 2:0 0:2 0:3 0:4");
    lies("cyclic", NULL, 2, overcommitted, NULL, "0:0 1:0 0:1 1:1 0:2 1:2 0:3");
    lies("arbitrary", NULL, 3, hosts, placed, "2:0 0:0 2:1 1:0 0:1");
}

static void unknown_distributions_are_refused(void **state)
{
    (void) state;
    hpct_distribution distribution;
    hpct_layout layout;
    const int tasks[] = {2, 1}, placed[] = {0, 1, 1};
    assert_int_equal(hpct_distribution_parse("hyper", NULL, &distribution), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "use block, cyclic or plane"));
    assert_int_equal(hpct_distribution_parse("plane", NULL, &distribution), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_distribution_parse("plane=0", NULL, &distribution), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_distribution_parse("", NULL, &distribution), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_distribution_parse("arbitrary", NULL, &distribution), HPCT_OK);
    assert_int_equal(hpct_layout_make(tasks, 2, distribution, NULL, &layout), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "SLURM_HOSTFILE"));
    assert_int_equal(hpct_layout_make(tasks, 2, distribution, placed, &layout), HPCT_ERR_CONFIG);
}

static void ten_thousand_nodes(void **state)
{
    (void) state;
    enum { NODES = 10000, EACH = 8 };
    static int tasks[NODES];
    hpct_distribution cyclic = {.kind = HPCT_DISTRIBUTION_CYCLIC};
    hpct_layout layout;
    for (int i = 0; i < NODES; i++)
        tasks[i] = EACH;
    assert_int_equal(hpct_layout_make(tasks, NODES, cyclic, NULL, &layout), HPCT_OK);
    assert_int_equal(layout.size, NODES * EACH);
    assert_int_equal(layout.node[79999], 9999);
    assert_int_equal(layout.local[79999], 7);
    assert_int_equal(hpct_layout_max_tasks(&layout), EACH);
    hpct_layout_free(&layout);
}

/* ---- ports ---- */

static void port_ranges_are_read(void **state)
{
    (void) state;
    hpct_port_range range;
    assert_int_equal(hpct_port_range_parse("22000", &range), HPCT_OK);
    assert_true(range.single && range.low == 22000);
    assert_int_equal(hpct_port_range_parse("22000-23000", &range), HPCT_OK);
    assert_true(!range.single && range.low == 22000 && range.high == 23000);
    static const char *const bad[] = {
        "",      "x",           "80",         "70000",        "22000-",     "-1",
        "2200 ", "23000-22000", "1024-65536", "22000-23000-", "22000,22001"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (hpct_port_range_parse(bad[i], &range) != HPCT_ERR_USAGE)
            fail_msg("'%s' was not refused", bad[i]);
    }
}

static int base_of(uint32_t job, uint32_t step, int tasks)
{
    hpct_port_range range = {.low = 20000, .high = 32767};
    int base = 0;
    assert_int_equal(hpct_port_base(range, job, step, tasks, 0, &base), HPCT_OK);
    assert_within(base, 20000, 32767 - tasks + 1);
    return base;
}

static bool meet(int a, int a_tasks, int b, int b_tasks)
{
    return a < b + b_tasks && b < a + a_tasks;
}

static void steps_of_a_job_never_share_ports(void **state)
{
    (void) state;
    for (uint32_t job = 1; job < 100000; job += 997) {
        for (uint32_t step = 0; step < 150; step++) {
            for (uint32_t other = step + 1; other < 150; other += 7)
                assert_false(meet(base_of(job, step, 1 + (int) (step % 64)), 1 + (int) (step % 64),
                                  base_of(job, other, 64), 64));
        }
    }
    /* large ones do not meet one another either */
    for (uint32_t step = 1; step < 40; step++)
        assert_false(meet(base_of(7, 0, 256), 256, base_of(7, step, 256), 256));
}

static void jobs_rarely_share_ports(void **state)
{
    (void) state;
    int clashes = 0;
    for (uint32_t job = 1; job < 2000; job++) {
        for (uint32_t other = job + 1; other <= job + 50; other++)
            clashes += meet(base_of(job, 0, 8), 8, base_of(other, 0, 8), 8);
    }
    assert_int_equal(clashes, 0);
}

static void narrow_ranges(void **state)
{
    (void) state;
    int base = 0;
    hpct_port_range narrow = {.low = 22000, .high = 22003},
                    single = {.low = 65530, .high = 65530, .single = 1};
    assert_int_equal(hpct_port_base(narrow, 9, 1, 2, 0, &base), HPCT_OK);
    assert_true(base == 22000 || base == 22002);
    int other = 0;
    assert_int_equal(hpct_port_base(narrow, 9, 2, 2, 0, &other), HPCT_OK);
    assert_int_not_equal(base, other);
    assert_int_equal(hpct_port_base(narrow, 9, 1, 5, 0, &base), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-port"));
    assert_int_equal(hpct_port_base(single, 1234, 77, 6, 0, &base), HPCT_OK);
    assert_int_equal(base, 65530);
    assert_int_equal(hpct_port_base(single, 1234, 77, 7, 0, &base), HPCT_ERR_CONFIG);
}

static void choices_do_not_meet(void **state)
{
    (void) state;
    static const hpct_port_range ranges[] = {{.low = 20000, .high = 32767},
                                             {.low = 22000, .high = 22007},
                                             {.low = 22000, .high = 22063},
                                             {.low = 1024, .high = 65535},
                                             {.low = 22000, .high = 22000, .single = 1}};
    static const int wanted[][3] = {{64, 64, 49}, {8, 2, 1}, {1, 1, 1}, {64, 64, 64}, {1, 1, 1}};
    static const int tasks[] = {1, 3, 200};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        for (size_t t = 0; t < 3; t++) {
            int bases[HPCT_PORT_CHOICES], count = hpct_port_choices(ranges[i], tasks[t]);
            assert_int_equal(count, wanted[i][t]);
            for (int a = 0; a < count; a++) {
                if (hpct_port_base(ranges[i], 77, 5, tasks[t], a, &bases[a]) != HPCT_OK)
                    break; /* too few */
                if (!ranges[i].single)
                    assert_within(bases[a], ranges[i].low, ranges[i].high - tasks[t] + 1);
                for (int b = 0; b < a; b++)
                    assert_false(meet(bases[a], tasks[t], bases[b], tasks[t]));
            }
        }
    }
}

static void reserved_ports_are_read(void **state)
{
    (void) state;
    int ports[6], count = 0;
    const int want[] = {12000, 12001, 12005, 12010};
    assert_int_equal(hpct_ports_reserved("12000-12001,12005,12010-12012", ports, 4, &count),
                     HPCT_OK);
    assert_int_equal(count, 4);
    assert_memory_equal(ports, want, sizeof want);
    static const char *const bad[] = {"", "x", "1-", "0", "5-4", "1,", "65536", "1;2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(hpct_ports_reserved(bad[i], ports, 4, &count), HPCT_ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions_are_dealt_as_slurm_does),
        cmocka_unit_test(unknown_distributions_are_refused),
        cmocka_unit_test(ten_thousand_nodes),
        cmocka_unit_test(port_ranges_are_read),
        cmocka_unit_test(steps_of_a_job_never_share_ports),
        cmocka_unit_test(jobs_rarely_share_ports),
        cmocka_unit_test(narrow_ranges),
        cmocka_unit_test(choices_do_not_meet),
        cmocka_unit_test(reserved_ports_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
