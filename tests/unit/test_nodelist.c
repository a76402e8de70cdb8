/* agent/cluster: host lists (against scontrol, where it is installed) and tasks per node. */
#include "agent/cluster/nodelist.h"
#include "agent/cluster/tasks.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static void expands_to(const char *list, const char *want)
{
    char **names = NULL, text[4096] = "";
    int count = 0;
    if (hpct_nodelist_expand(list, &names, &count) != HPCT_OK)
        fail_msg("%s: %s", list, hpct_last_error());
    for (int i = 0; i < count; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, names[i]);
    }
    hpct_names_free(names, count);
    assert_string_equal(text, want);
}

static void refused(const char *list, const char *why)
{
    char **names = NULL;
    int count = 0;
    if (hpct_nodelist_expand(list, &names, &count) != HPCT_ERR_CONFIG)
        fail_msg("'%.100s' was not refused", list);
    if (strstr(hpct_last_error(), why) == NULL)
        fail_msg("'%s' does not say '%s'", hpct_last_error(), why);
}

static void lists_are_expanded(void **state)
{
    (void) state;
    expands_to("node0", "node0");
    expands_to("compute-0-[0-2,5-6]",
               "compute-0-0 compute-0-1 compute-0-2 compute-0-5 compute-0-6");
    expands_to("n[009-011]", "n009 n010 n011");
    expands_to("n[9-011]", "n9 n10 n11");
    expands_to("n[009-011,3]-a[1-2],b",
               "n009-a1 n009-a2 n010-a1 n010-a2 n011-a1 n011-a2 n3-a1 n3-a2 b");
    expands_to("a[1-2]-ib,b", "a1-ib a2-ib b");
    expands_to("n5,n4,n5", "n5 n4 n5");
    expands_to("a,,b,", "a b");
    /* the last group first, then the first, the second, ... */
    expands_to("a[1-2]b[3-4]c[5-6]", "a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 a1b4c6 a2b4c5 a2b4c6");
}

static void nonsense_is_refused(void **state)
{
    (void) state;
    refused("", "is empty");
    refused(",,", "is empty");
    refused("n[", "a number is wanted");
    refused("n[]", "a number is wanted");
    refused("n[1", "']' is missing");
    refused("n[1,", "a number is wanted");
    refused("n[1-", "a number is wanted");
    refused("n[3-2]", "runs backwards");
    refused("n[a-b]", "a number is wanted");
    refused("n[1-2-3]", "',' or ']' is wanted");
    refused("n[ 1]", "a number is wanted");
    refused("n]", "cannot stand");
    refused("n;reboot", "cannot stand");
    refused("n[1-[2-3]]", "a number is wanted");
    refused("n[99999999999999999999]", "a number is wanted");
}

static void size_is_bounded(void **state)
{
    (void) state;
    char **names = NULL;
    int count = 0;
    if (unit_cases(10) == 10) { /* else it takes too long */
        assert_int_equal(hpct_nodelist_expand("n[1-1000000]", &names, &count), HPCT_OK);
        assert_int_equal(count, 1000000);
        assert_string_equal(names[999999], "n1000000");
        hpct_names_free(names, count);
    }
    refused("n[1-1000001]", "more than 1000000 hosts");
    refused("n[1-1000],m[1-1000]x[1-1000]", "more than 1000000 hosts");
    refused("a[0-999]b[0-999]c[0-999]d[0-999]e[0-999]f[0-999]g[0-999]", "more than 1000000 hosts");
    refused("n[1-999999999999]", "more than 1000000 hosts");
    refused("n[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]", "bracket groups");
    char name[400];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    refused(name, "too long");
    strcpy(name + 250, "[100000-100001]");
    refused(name, "too long");
}

/* ---- against scontrol ---- */

static unsigned long random_state = 20240601;

static int pick(int n)
{
    random_state = random_state * 6364136223846793005UL + 1442695040888963407UL;
    return (int) ((random_state >> 33) % (unsigned long) n);
}

/* A list as scontrol takes it: 1-4 items of 0-3 groups, the last one at the end of its item. */
static void random_list(char *out)
{
    static const char *const words[] = {"n", "node", "gpu-", "c01-", "rack", "a1b", "x-y-", "N"};
    int items = 1 + pick(4);
    for (int i = 0; i < items; i++) {
        int groups = pick(4);
        out += sprintf(out, "%s%s", i > 0 ? "," : "", words[pick(8)]);
        if (groups == 0)
            out += sprintf(out, "%0*d", 1 + pick(4), pick(200));
        for (int g = 0; g < groups; g++) {
            out += sprintf(out, "%s[", g > 0 ? (pick(2) ? "-" : "s") : "");
            int ranges = 1 + pick(3);
            for (int r = 0; r < ranges; r++) {
                int low = pick(pick(2) ? 12 : 1200), width = 1 + pick(4);
                out += sprintf(out, "%s%0*d", r > 0 ? "," : "", width, low);
                if (pick(2))
                    out += sprintf(out, "-%0*d", pick(2) ? width : 1, low + pick(6));
            }
            out += sprintf(out, "]");
        }
    }
}

/* One scontrol answers many questions on its standard input; an unknown command between them would
 * end up in the answers, so a host of its own separates them. */
static void lists_are_expanded_as_scontrol_does(void **state)
{
    (void) state;
    enum { MOST = 10000 };
    static char lists[MOST][512];
    const int num_lists = unit_cases(MOST);
    char conf[] = "/tmp/hpc-train-conf.XXXXXX", asked[] = "/tmp/hpc-train-asked.XXXXXX";
    int conf_fd = mkstemp(conf), asked_fd = mkstemp(asked);
    assert_true(conf_fd >= 0 && asked_fd >= 0);
    dprintf(conf_fd, "ClusterName=x\nSlurmctldHost=localhost\nNodeName=n0\nPartitionName=p "
                     "Nodes=n0\n");
    FILE *ask = fdopen(asked_fd, "w");
    for (int i = 0; i < num_lists; i++) {
        random_list(lists[i]);
        fprintf(ask, "show hostnames %s,END\n", lists[i]);
    }
    fclose(ask);
    close(conf_fd);
    char command[200];
    snprintf(command, sizeof command, "SLURM_CONF=%s timeout 120 scontrol <%s 2>&1", conf, asked);
    if (system("command -v scontrol >/dev/null 2>&1") != 0) {
        unlink(conf);
        unlink(asked);
        print_message("scontrol is not installed: not compared with it\n");
        skip();
    }
    FILE *answers = popen(command, "r");
    char line[1024];
    long hosts = 0;
    for (int i = 0; i < num_lists; i++) {
        char **names = NULL;
        int count = 0, at = 0;
        if (hpct_nodelist_expand(lists[i], &names, &count) != HPCT_OK)
            fail_msg("%s: %s", lists[i], hpct_last_error());
        for (;;) {
            if (fgets(line, sizeof line, answers) == NULL)
                fail_msg("scontrol stopped answering at '%s'", lists[i]);
            line[strcspn(line, "\n")] = '\0';
            if (strncmp(line, "scontrol: ", 10) == 0) /* its prompt, and what it shows of its input */
                continue;
            if (strcmp(line, "END") == 0)
                break;
            if (at >= count || strcmp(line, names[at]) != 0)
                fail_msg("%s: scontrol's host %d is %s, ours %s", lists[i], at, line,
                         at < count ? names[at] : "none");
            at++;
        }
        if (at != count)
            fail_msg("%s: scontrol has %d hosts, we have %d", lists[i], at, count);
        hosts += count;
        hpct_names_free(names, count);
    }
    pclose(answers);
    unlink(conf);
    unlink(asked);
    assert_true(hosts > 20 * num_lists);
}

/* ---- tasks per node ---- */

static void tasks_are_expanded(void **state)
{
    (void) state;
    int *tasks = NULL;
    const int want[] = {2, 2, 2, 1, 7};
    assert_int_equal(hpct_tasks_expand("2(x3),1,7", 5, &tasks), HPCT_OK);
    assert_memory_equal(tasks, want, sizeof want);
    free(tasks);
    assert_int_equal(hpct_tasks_expand("64(x1000000)", 1000000, &tasks), HPCT_ERR_CONFIG);
    assert_int_equal(hpct_tasks_expand("8(x10000)", 10000, &tasks), HPCT_OK);
    assert_int_equal(tasks[9999], 8);
    free(tasks);
}

static void wrong_tasks_are_refused(void **state)
{
    (void) state;
    static const char *const bad[] = {"",   "0",        "2(x3)",          "2(x5),1", "2,",
                                      ",2", "2(3)",     "2(x)",           "2(x0),1", "2(x3",
                                      "-1", "1,1,1,1 ", "1,1,1,99999999", "1(x4)1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int *tasks = NULL;
        if (hpct_tasks_expand(bad[i], 4, &tasks) != HPCT_ERR_CONFIG)
            fail_msg("'%s' was not refused", bad[i]);
        assert_non_null(strstr(hpct_last_error(), "tasks per node"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_expanded), cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(size_is_bounded),    cmocka_unit_test(lists_are_expanded_as_scontrol_does),
        cmocka_unit_test(tasks_are_expanded), cmocka_unit_test(wrong_tasks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
