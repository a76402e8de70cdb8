/* base/cluster: distributions, layouts, ports. What real srun does is compared on the cluster
 * (tests/cluster/plugin_layout.t); here are the recorded cases. */
#include "base/cluster/layout.h"
#include "base/cluster/ports.h"
#include "tests/unit/cases.h"

typedef struct step_case {
    const char *plane;
    const int *tasks, *placed;
} step_case;
#define STEP(plane, tasks, placed) (&(const step_case){plane, tasks, placed})

/* Number: the nodes. "NODE:LOCAL" of rank 0, 1, ... */
static hpct_status lay_out(const parse_case *c, char *got, size_t size)
{
    const step_case *s = c->with;
    hpct_cluster_distribution parsed;
    hpct_cluster_layout layout;
    assert_int_equal(hpct_cluster_distribution_parse(c->text, s->plane, &parsed), HPCT_OK);
    HPCT_TRY(hpct_cluster_layout_make(s->tasks, c->number, parsed, s->placed, &layout));
    for (int rank = 0; rank < layout.size; rank++) {
        size_t used = strlen(got);
        snprintf(got + used, size - used, "%s%d:%d", rank > 0 ? " " : "", layout.node[rank],
                 layout.local[rank]);
    }
    hpct_cluster_layout_free(&layout);
    return HPCT_OK;
}

TEST(ranks_are_distributed_as_slurm_does)
{
    const int uneven[] = {5, 1, 1}, overcommitted[] = {4, 3}, hosts[] = {2, 1, 2};
    const int placed[] = {2, 0, 2, 1, 0};
    const char *block = "0:0 0:1 0:2 0:3 0:4 1:0 2:0";
    const char *cyclic = "0:0 1:0 2:0 0:1 0:2 0:3 0:4";
    const parse_case cases[] = {
        {NULL, HPCT_OK, block, 3, STEP(NULL, uneven, NULL)},
        {"block", HPCT_OK, block, 3, STEP(NULL, uneven, NULL)},
        {"block:cyclic,nopack", HPCT_OK, block, 3, STEP(NULL, uneven, NULL)},
        {"*:cyclic", HPCT_OK, block, 3, STEP(NULL, uneven, NULL)},
        {"cyclic", HPCT_OK, cyclic, 3, STEP(NULL, uneven, NULL)},
        {"cyclic:block", HPCT_OK, cyclic, 3, STEP(NULL, uneven, NULL)},
        {"plane", HPCT_OK, "0:0 0:1 1:0 2:0 0:2 0:3 0:4", 3, STEP("2", uneven, NULL)},
        {"plane=2", HPCT_OK, "0:0 0:1 1:0 2:0 0:2 0:3 0:4", 3, STEP(NULL, uneven, NULL)},
        {"cyclic", HPCT_OK, "0:0 1:0 0:1 1:1 0:2 1:2 0:3", 2, STEP(NULL, overcommitted, NULL)},
        {"arbitrary", HPCT_OK, "2:0 0:0 2:1 1:0 0:1", 3, STEP(NULL, hosts, placed)},
    };
    RUN_CASES(lay_out, cases);
}

TEST(arbitrary_needs_a_hostfile_of_all_tasks)
{
    const int tasks[] = {2, 1}, placed[] = {0, 1, 1};
    const parse_case cases[] = {
        {"arbitrary", HPCT_ERR_CONFIG, "SLURM_HOSTFILE", 2, STEP(NULL, tasks, NULL)},
        {"arbitrary", HPCT_ERR_CONFIG, NULL, 2, STEP(NULL, tasks, placed)},
    };
    RUN_CASES(lay_out, cases);
}

static hpct_status parse_distribution(const parse_case *c, char *got, size_t size)
{
    hpct_cluster_distribution distribution;
    return hpct_cluster_distribution_parse(c->text, NULL, &distribution);
}

TEST(unknown_distributions_are_rejected)
{
    static const parse_case cases[] = {
        {"hyper", HPCT_ERR_CONFIG, "use block, cyclic or plane"},
        {"plane", HPCT_ERR_CONFIG},
        {"plane=0", HPCT_ERR_CONFIG},
        {"", HPCT_ERR_CONFIG},
    };
    RUN_CASES(parse_distribution, cases);
}

TEST(cyclic_layout_of_10000_nodes)
{
    enum { NODES = 10000, EACH = 8 };
    static int tasks[NODES];
    hpct_cluster_distribution cyclic = {.kind = HPCT_CLUSTER_DISTRIBUTION_CYCLIC};
    hpct_cluster_layout layout;
    for (int i = 0; i < NODES; i++)
        tasks[i] = EACH;
    assert_int_equal(hpct_cluster_layout_make(tasks, NODES, cyclic, NULL, &layout), HPCT_OK);
    assert_int_equal(layout.size, NODES * EACH);
    assert_int_equal(layout.node[79999], 9999);
    assert_int_equal(layout.local[79999], 7);
    assert_int_equal(hpct_cluster_layout_max_tasks(&layout), EACH);
    hpct_cluster_layout_free(&layout);
}

/* ---- ports ---- */

static hpct_status parse_port_range(const parse_case *c, char *got, size_t size)
{
    hpct_cluster_port_range range;
    HPCT_TRY(hpct_cluster_port_range_parse(c->text, &range));
    if (range.single)
        snprintf(got, size, "%d alone", range.low);
    else
        snprintf(got, size, "%d to %d", range.low, range.high);
    return HPCT_OK;
}

TEST(port_ranges_are_parsed)
{
    static const parse_case cases[] = {
        {"22000", HPCT_OK, "22000 alone"},
        {"22000-23000", HPCT_OK, "22000 to 23000"},
        {"", HPCT_ERR_USAGE},
        {"x", HPCT_ERR_USAGE},
        {"80", HPCT_ERR_USAGE},
        {"70000", HPCT_ERR_USAGE},
        {"22000-", HPCT_ERR_USAGE},
        {"-1", HPCT_ERR_USAGE},
        {"2200 ", HPCT_ERR_USAGE},
        {"23000-22000", HPCT_ERR_USAGE},
        {"1024-65536", HPCT_ERR_USAGE},
        {"22000-23000-", HPCT_ERR_USAGE},
        {"22000,22001", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_port_range, cases);
}

static int base_of(uint32_t job, uint32_t step, int tasks)
{
    hpct_cluster_port_range range = {.low = 20000, .high = 32767};
    int base = 0;
    assert_int_equal(hpct_cluster_port_base(range, job, step, tasks, 0, &base), HPCT_OK);
    assert_within(base, 20000, 32767 - tasks + 1);
    return base;
}

static bool meet(int a, int a_tasks, int b, int b_tasks)
{
    return a < b + b_tasks && b < a + a_tasks;
}

TEST(steps_of_a_job_never_share_ports)
{
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

TEST(jobs_rarely_share_ports)
{
    int clashes = 0;
    for (uint32_t job = 1; job < 2000; job++) {
        for (uint32_t other = job + 1; other <= job + 50; other++)
            clashes += meet(base_of(job, 0, 8), 8, base_of(other, 0, 8), 8);
    }
    assert_int_equal(clashes, 0);
}

TEST(narrow_ranges_are_used_up_or_rejected)
{
    int base = 0;
    hpct_cluster_port_range narrow = {.low = 22000, .high = 22003},
                            single = {.low = 65530, .high = 65530, .single = 1};
    assert_int_equal(hpct_cluster_port_base(narrow, 9, 1, 2, 0, &base), HPCT_OK);
    assert_true(base == 22000 || base == 22002);
    int other = 0;
    assert_int_equal(hpct_cluster_port_base(narrow, 9, 2, 2, 0, &other), HPCT_OK);
    assert_int_not_equal(base, other);
    assert_int_equal(hpct_cluster_port_base(narrow, 9, 1, 5, 0, &base), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-port"));
    assert_int_equal(hpct_cluster_port_base(single, 1234, 77, 6, 0, &base), HPCT_OK);
    assert_int_equal(base, 65530);
    assert_int_equal(hpct_cluster_port_base(single, 1234, 77, 7, 0, &base), HPCT_ERR_CONFIG);
}

TEST(port_blocks_do_not_overlap)
{
    static const hpct_cluster_port_range ranges[] = {{.low = 20000, .high = 32767},
                                                     {.low = 22000, .high = 22007},
                                                     {.low = 22000, .high = 22063},
                                                     {.low = 1024, .high = 65535},
                                                     {.low = 22000, .high = 22000, .single = 1}};
    static const int wanted[][3] = {{64, 64, 49}, {8, 2, 1}, {1, 1, 1}, {64, 64, 64}, {1, 1, 1}};
    static const int tasks[] = {1, 3, 200};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        for (size_t t = 0; t < 3; t++) {
            int bases[HPCT_CLUSTER_PORT_CHOICES],
                count = hpct_cluster_port_choices(ranges[i], tasks[t]);
            assert_int_equal(count, wanted[i][t]);
            for (int a = 0; a < count; a++) {
                if (hpct_cluster_port_base(ranges[i], 77, 5, tasks[t], a, &bases[a]) != HPCT_OK)
                    break; /* too few */
                if (!ranges[i].single)
                    assert_within(bases[a], ranges[i].low, ranges[i].high - tasks[t] + 1);
                for (int b = 0; b < a; b++)
                    assert_false(meet(bases[a], tasks[t], bases[b], tasks[t]));
            }
        }
    }
}

/* Four of them. */
static hpct_status parse_reserved(const parse_case *c, char *got, size_t size)
{
    int ports[6], count = 0;
    HPCT_TRY(hpct_cluster_ports_reserved(c->text, ports, 4, &count));
    for (int i = 0; i < count; i++) {
        size_t used = strlen(got);
        snprintf(got + used, size - used, "%s%d", i > 0 ? " " : "", ports[i]);
    }
    return HPCT_OK;
}

TEST(reserved_ports_are_parsed)
{
    static const parse_case cases[] = {
        {"12000-12001,12005,12010-12012", HPCT_OK, "12000 12001 12005 12010"},
        {"", HPCT_ERR_CONFIG},
        {"x", HPCT_ERR_CONFIG},
        {"1-", HPCT_ERR_CONFIG},
        {"0", HPCT_ERR_CONFIG},
        {"5-4", HPCT_ERR_CONFIG},
        {"1,", HPCT_ERR_CONFIG},
        {"65536", HPCT_ERR_CONFIG},
        {"1;2", HPCT_ERR_CONFIG},
    };
    RUN_CASES(parse_reserved, cases);
}
