/* What is read of /proc and /sys, cut, huge and foreign texts among them; two states of folders of
 * the test's own, and what the difference is in words. */
#include "agent/rank/node_state.h"
#include "agent/rank/node_text.h"
#include "agent/rank/threads.h"
#include "tests/unit/agent/data/pictures.h"
#include "tests/unit/cases.h"

#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- texts ---- */

static hpct_status parse_cpus(const parse_case *c, char *got, size_t size)
{
    cpu_set_t mask;
    hpct_rank_cpu_ticks ticks;
    CPU_ZERO(&mask);
    CPU_SET(0, &mask);
    CPU_SET(2, &mask);
    bool any = hpct_rank_node_text_cpus(c->text, &mask, sizeof mask, &ticks);
    snprintf(got, size, "%" PRIu64 " %" PRIu64, ticks.all, ticks.stolen);
    return accepted_if(any);
}

TEST(cpus_in_the_mask_are_summed)
{
    static const parse_case cases[] = {
        {"cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 1 1 1 1 1 1 1 1 1\n"
         "cpu2 10 0 0 0 0 0 0 2 5 5\nintr 1 2 3\n",
         HPCT_OK, "48 10"},
        {"cpu0 1 2 3 4 5 6 7 8 0 0\ncpu2 1 1 1", HPCT_OK, "36 8"},      /* cut */
        {"cpu0 1 2 3 4 5 6 7\ncpu2 1 1 1 1 1 1 1 1\n", HPCT_OK, "8 1"}, /* an old kernel's line */
        {"cpu0 1 2 3 4 5 6 7 99999999999999999999999\n", HPCT_ERR_USAGE},
        {"cpu0 -1 2 3 4 5 6 7 8\n", HPCT_ERR_USAGE},
        {"cpu99999 1 2 3 4 5 6 7 8\ncpux 1\ncpu\n", HPCT_ERR_USAGE},
        {"", HPCT_ERR_USAGE},
        {"\x7f"
         "ELF\n",
         HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_cpus, cases);
}

static hpct_status parse_process(const parse_case *c, char *got, size_t size)
{
    hpct_rank_process_text p;
    if (!hpct_rank_node_text_process(c->text, &p))
        return HPCT_ERR_USAGE;
    snprintf(got, size, "%d %s %d %" PRIu64 " %" PRIu64 " %d", p.pid, p.name, p.parent, p.ticks,
             p.started, p.cpu);
    return HPCT_OK;
}

#define BEHIND                                                                                     \
    " S 7 42 1 0 -1 4194304 99 0 0 0 30 12 0 0 20 0 1 0 1596318 3133440 418 1 2 3 4 5 6 7 "        \
    "8 9 10 11 12 13 17 3 0 0\n"

TEST(processes_are_read)
{
    static const parse_case cases[] = {
        {"42 (cat)" BEHIND, HPCT_OK, "42 cat 7 42 1596318 3"},
        {"42 (a) b (c))" BEHIND, HPCT_OK, "42 a) b (c) 7 42 1596318 3"},
        {"42 (two\nlines\x80)" BEHIND, HPCT_OK, "42 two?lines? 7 42 1596318 3"},
        {"42 (a name that is too long for it)" BEHIND, HPCT_OK,
         "42 a name that is  7 42 1596318 3"},
        {"42 (cat) S 7 42 1 0 -1 4194304 99 0 0 0 30", HPCT_ERR_USAGE},
        {"42 (cat) S 7 42 1 0 -1 4194304 99 0 0 0 30 12 0 0 20 0 1 0 1596318 3133440",
         HPCT_ERR_USAGE},
        {"42 (cat", HPCT_ERR_USAGE},
        {"42 )cat(", HPCT_ERR_USAGE},
        {"99999999999 (cat)" BEHIND, HPCT_ERR_USAGE},
        {"(cat)" BEHIND, HPCT_ERR_USAGE},
        {"", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_process, cases);
}

static hpct_status parse_quota(const parse_case *c, char *got, size_t size)
{
    hpct_rank_quota_text quota = {0};
    if (!hpct_rank_node_text_quota(c->text, &quota))
        return HPCT_ERR_USAGE;
    snprintf(got, size, "%" PRIu64 " of %" PRIu64, quota.throttled, quota.periods);
    return HPCT_OK;
}

TEST(quotas_are_read)
{
    static const parse_case cases[] = {
        {"usage_usec 5\nuser_usec 1\nnr_periods 12\nnr_throttled 8\nthrottled_usec 3\n", HPCT_OK,
         "8 of 12"},
        {"nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", HPCT_OK, "0 of 0"},
        {"usage_usec 5\nuser_usec 1\nsystem_usec 2\n", HPCT_ERR_USAGE}, /* no CPU controller */
        {"nr_periods 12\nnr_thrott", HPCT_ERR_USAGE},
        {"nr_periods 12\nnr_throttled", HPCT_ERR_USAGE},
        {"nr_periods x\nnr_throttled 1\n", HPCT_ERR_USAGE},
        {"nr_periods 99999999999999999999999\nnr_throttled 1\n", HPCT_ERR_USAGE},
        {"", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_quota, cases);
}

static hpct_status parse_cgroup(const parse_case *c, char *got, size_t size)
{
    bool unified;
    const char *path = hpct_rank_node_text_cgroup(c->text, &unified);
    if (path != NULL)
        snprintf(got, size, "%d %s", unified, path);
    return accepted_if(path != NULL);
}

TEST(cgroups_of_the_cpu_controller_are_found)
{
    static const parse_case cases[] = {
        {"0::/system.slice/slurmstepd.scope/job_1", HPCT_OK,
         "1 /system.slice/slurmstepd.scope/job_1"},
        {"4:cpu,cpuacct:/slurm/uid_0", HPCT_OK, "0 /slurm/uid_0"},
        {"4:cpuacct,cpu:/", HPCT_OK, "0 /"},
        {"2:cpuacct:/a", HPCT_ERR_USAGE},
        {"3:cpuset:/a", HPCT_ERR_USAGE},
        {"0::/../outside", HPCT_ERR_USAGE},
        {"0::", HPCT_ERR_USAGE},
        {"0:", HPCT_ERR_USAGE},
        {"", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_cgroup, cases);
}

static hpct_status parse_number(const parse_case *c, char *got, size_t size)
{
    uint64_t value;
    if (!hpct_rank_node_text_number(c->text, &value))
        return HPCT_ERR_USAGE;
    snprintf(got, size, "%" PRIu64, value);
    return HPCT_OK;
}

TEST(numbers_are_whole)
{
    static const parse_case cases[] = {
        {"3800000\n", HPCT_OK, "3800000"},
        {"0", HPCT_OK, "0"},
        {"-1\n", HPCT_ERR_USAGE},
        {"<unknown>\n", HPCT_ERR_USAGE},
        {"12 34\n", HPCT_ERR_USAGE},
        {"18446744073709551616\n", HPCT_ERR_USAGE},
        {"", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_number, cases);
}

TEST(variables_are_found)
{
    static const char block[] = "A=1\0SLURM_JOB_ID=42\0SLURM_JOB_IDS=7\0EMPTY=\0CU";
    assert_string_equal(hpct_rank_node_text_variable(block, sizeof block - 1, "SLURM_JOB_ID"),
                        "42");
    assert_string_equal(hpct_rank_node_text_variable(block, sizeof block - 1, "EMPTY"), "");
    assert_null(hpct_rank_node_text_variable(block, sizeof block - 1, "CU"));
    assert_null(hpct_rank_node_text_variable(block, sizeof block - 1, "JOB"));
    assert_null(hpct_rank_node_text_variable("", 0, "A"));
}

/* ---- states ---- */

static char folder[4000], proc[4096], sys[4096];

static void put(const char *name, const char *text)
{
    pictures_write(folder, name, text, strlen(text), false);
}

/* This process's first CPU, in the files of a node with that one only. */
static int first_cpu(void)
{
    size_t bytes;
    cpu_set_t *mask = hpct_rank_threads_mask(&bytes);
    size_t cpu = 0;
    while (!CPU_ISSET_S(cpu, bytes, mask))
        cpu++;
    CPU_FREE(mask);
    return (int) cpu;
}

static void put_cpu(const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/%s", first_cpu(), name);
    put(path, text);
}

static void put_stat(int idle, int steal)
{
    char text[200];
    snprintf(text, sizeof text, "cpu%d 0 0 0 %d 0 0 0 %d 0 0\nintr 5\n", first_cpu(), idle, steal);
    put("proc/stat", text);
}

static void put_process(int pid, int parent, const char *name, int ticks, int cpu)
{
    char path[64], text[400];
    snprintf(path, sizeof path, "proc/%d/stat", pid);
    snprintf(
        text, sizeof text,
        "%d (%s) S %d 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 "
        "%d 0 0\n",
        pid, name, parent, ticks, cpu);
    put(path, text);
}

static hpct_rank_node_state *take(void)
{
    hpct_rank_node_state *taken;
    assert_int_equal(hpct_rank_node_state_take_in(&taken, proc, sys), HPCT_OK);
    return taken;
}

static void begin(void)
{
    snprintf(folder, sizeof folder, "%s", pictures_folder());
    snprintf(proc, sizeof proc, "%s/proc", folder);
    snprintf(sys, sizeof sys, "%s/sys", folder);
}

TEST(nothing_is_said_of_an_empty_node)
{
    char text[HPCT_RANK_NODE_PHRASE];
    hpct_rank_node_change change;
    begin();
    hpct_rank_node_state *before = take(), *after = take();
    hpct_rank_node_state_compare(&change, before, after);
    hpct_rank_node_change_describe(&change, text);
    assert_string_equal(text, "");
    hpct_rank_node_state_free(before);
    hpct_rank_node_state_free(after);
}

TEST(reasons_are_told)
{
    char text[HPCT_RANK_NODE_PHRASE];
    hpct_rank_node_change c;
    begin();
    put("proc/self/cgroup", "3:cpuset:/\n0::/job/step\n");
    put("sys/fs/cgroup/job/cpu.stat", "nr_periods 1000\nnr_throttled 900\n");
    put("sys/fs/cgroup/job/step/cpu.stat", "nr_periods 10\nnr_throttled 1\n");
    put_cpu("cpufreq/scaling_cur_freq", "1200000\n");
    put_cpu("cpufreq/cpuinfo_max_freq", "3800000\n");
    put_cpu("thermal_throttle/core_throttle_count", "3\n");
    put_cpu("thermal_throttle/package_throttle_count", "9\n");
    put("sys/class/net/eth0/statistics/rx_errors", "5\n");
    put("sys/class/net/eth0/statistics/tx_dropped", "5\n");
    put("sys/class/net/lo/statistics/rx_errors", "0\n");
    put_stat(100, 0);
    hpct_rank_node_state *before = take();
    put("sys/fs/cgroup/job/step/cpu.stat", "nr_periods 22\nnr_throttled 9\n");
    put_cpu("thermal_throttle/core_throttle_count", "6\n");
    put_cpu("thermal_throttle/package_throttle_count", "10\n");
    put("sys/class/net/eth0/statistics/rx_errors", "8\n");
    put("sys/class/net/eth0/statistics/tx_dropped", "17\n");
    put("sys/class/net/lo/statistics/rx_errors", "1000\n");
    put_stat(175, 25);
    hpct_rank_node_state *after = take();
    hpct_rank_node_state_compare(&c, before, after);
    hpct_rank_node_change_describe(&c, text);
    assert_string_equal(text,
                        "CPUs at 1200 of 3800 MHz; CPUs were throttled by heat 4 times; the CPU "
                        "limit of its cgroup throttled it in 8 of 12 periods; the hypervisor "
                        "took 25 % of CPU time; eth0 had 3 errors and dropped 12 packets");
    hpct_rank_node_state_compare(&c, after, before); /* counters of an interface that was reset */
    assert_int_equal(c.errors + c.drops + c.throttles + c.throttled, 0);
    hpct_rank_node_state_free(before);
    hpct_rank_node_state_free(after);
}

/* Of processes before and after `used` more ticks, on this process's first CPU. */
static void compare_after(hpct_rank_node_change *c, int pid, int parent, const char *name, int used)
{
    put_process(pid, parent, name, 50, first_cpu());
    hpct_rank_node_state *before = take();
    usleep(20000);
    put_process(pid, parent, name, 50 + used, first_cpu());
    hpct_rank_node_state *after = take();
    hpct_rank_node_state_compare(c, before, after);
    hpct_rank_node_state_free(before);
    hpct_rank_node_state_free(after);
}

TEST(other_processes_are_named)
{
    char text[HPCT_RANK_NODE_PHRASE];
    hpct_rank_node_change c;
    int self = (int) getpid(), launcher = (int) getppid(), other = 4100100;
    begin();
    unsetenv("SLURM_JOB_ID");
    put_process(self, launcher, "hpc-train", 10, first_cpu());
    compare_after(&c, other, 1, "miner", 400);
    assert_int_equal(c.busiest_pid, other);
    hpct_rank_node_change_describe(&c, text);
    assert_non_null(strstr(text, "other processes used "));
    assert_non_null(strstr(text, ", most miner (pid 4100100)"));
    compare_after(&c, other, 1, "miner", 0);
    assert_int_equal(c.busiest_pid, 0);
    compare_after(&c, other, self, "reader", 400); /* started by this one */
    assert_int_equal(c.busiest_pid, 0);
    compare_after(&c, other, launcher, "hpc-train", 400); /* another rank */
    assert_int_equal(c.busiest_pid, 0);
    compare_after(&c, other, launcher, "miner", 400);
    assert_int_equal(c.busiest_pid, other);
}

TEST(ranks_of_the_step_are_no_others)
{
    static const char same[] = "SLURM_STEP_ID=0\0SLURM_JOB_ID=12", next[] = "SLURM_STEP_ID=1\0"
                                                                            "SLURM_JOB_ID=12";
    hpct_rank_node_change c;
    begin();
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    pictures_write(folder, "proc/4100100/environ", same, sizeof same, false);
    compare_after(&c, 4100100, 1, "hpc-train", 400);
    assert_int_equal(c.busiest_pid, 0);
    pictures_write(folder, "proc/4100100/environ", next, sizeof next, false);
    compare_after(&c, 4100100, 1, "hpc-train", 400);
    assert_int_equal(c.busiest_pid, 4100100);
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_STEP_ID");
}

TEST(this_machine_can_be_read)
{
    hpct_rank_node_state *before, *after;
    hpct_rank_node_change c;
    char text[HPCT_RANK_NODE_PHRASE];
    assert_int_equal(hpct_rank_node_state_take(&before), HPCT_OK);
    usleep(50000);
    assert_int_equal(hpct_rank_node_state_take(&after), HPCT_OK);
    hpct_rank_node_state_compare(&c, before, after);
    hpct_rank_node_change_describe(&c, text);
    assert_true(c.cpus >= 1 && c.seconds > 0.04);
    hpct_rank_node_state_free(before);
    hpct_rank_node_state_free(after);
}
