/* base/cluster: host lists (against scontrol, where it is installed) and tasks per node. */
#include "base/cluster/nodelist.h"
#include "base/cluster/tasks.h"
#include "tests/unit/cases.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static hpct_status expand(const parse_case *c, char *got, size_t size)
{
    char **names = NULL;
    int count = 0;
    HPCT_TRY(hpct_cluster_nodelist_expand(c->text, &names, &count));
    for (int i = 0; i < count && strlen(got) + 1 < size; i++) {
        size_t used = strlen(got);
        snprintf(got + used, size - used, "%s%s", i > 0 ? " " : "", names[i]);
    }
    hpct_cluster_names_free(names, count);
    return HPCT_OK;
}

TEST(host_lists_are_expanded)
{
    static const parse_case cases[] = {
        {"node0", HPCT_OK, "node0"},
        {"compute-0-[0-2,5-6]", HPCT_OK,
         "compute-0-0 compute-0-1 compute-0-2 compute-0-5 compute-0-6"},
        {"n[009-011]", HPCT_OK, "n009 n010 n011"},
        {"n[9-011]", HPCT_OK, "n9 n10 n11"},
        {"n[009-011,3]-a[1-2],b", HPCT_OK,
         "n009-a1 n009-a2 n010-a1 n010-a2 n011-a1 n011-a2 n3-a1 n3-a2 b"},
        {"a[1-2]-ib,b", HPCT_OK, "a1-ib a2-ib b"},
        {"n5,n4,n5", HPCT_OK, "n5 n4 n5"},
        {"a,,b,", HPCT_OK, "a b"},
        /* the last group first, then the first, the second, ... */
        {"a[1-2]b[3-4]c[5-6]", HPCT_OK, "a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 a1b4c6 a2b4c5 a2b4c6"},
    };
    RUN_CASES(expand, cases);
}

TEST(malformed_lists_are_rejected)
{
    static const parse_case cases[] = {
        {"", HPCT_ERR_CONFIG, "is empty"},
        {",,", HPCT_ERR_CONFIG, "is empty"},
        {"n[", HPCT_ERR_CONFIG, "a number is wanted"},
        {"n[]", HPCT_ERR_CONFIG, "a number is wanted"},
        {"n[1", HPCT_ERR_CONFIG, "']' is missing"},
        {"n[1,", HPCT_ERR_CONFIG, "a number is wanted"},
        {"n[1-", HPCT_ERR_CONFIG, "a number is wanted"},
        {"n[3-2]", HPCT_ERR_CONFIG, "runs backwards"},
        {"n[a-b]", HPCT_ERR_CONFIG, "a number is wanted"},
        {"n[1-2-3]", HPCT_ERR_CONFIG, "',' or ']' is wanted"},
        {"n[ 1]", HPCT_ERR_CONFIG, "a number is wanted"},
        {"n]", HPCT_ERR_CONFIG, "cannot stand"},
        {"n;reboot", HPCT_ERR_CONFIG, "cannot stand"},
        {"n[1-[2-3]]", HPCT_ERR_CONFIG, "a number is wanted"},
        {"n[99999999999999999999]", HPCT_ERR_CONFIG, "a number is wanted"},
    };
    RUN_CASES(expand, cases);
}

TEST(lists_have_at_most_a_million_hosts)
{
    char **names = NULL;
    int count = 0;
    if (unit_cases(10) == 10) { /* else it takes too long */
        assert_int_equal(hpct_cluster_nodelist_expand("n[1-1000000]", &names, &count), HPCT_OK);
        assert_int_equal(count, 1000000);
        assert_string_equal(names[999999], "n1000000");
        hpct_cluster_names_free(names, count);
    }
    static const parse_case cases[] = {
        {"n[1-1000001]", HPCT_ERR_CONFIG, "more than 1000000 hosts"},
        {"n[1-1000],m[1-1000]x[1-1000]", HPCT_ERR_CONFIG, "more than 1000000 hosts"},
        {"a[0-999]b[0-999]c[0-999]d[0-999]e[0-999]f[0-999]g[0-999]", HPCT_ERR_CONFIG,
         "more than 1000000 hosts"},
        {"n[1-999999999999]", HPCT_ERR_CONFIG, "more than 1000000 hosts"},
        {"n[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]", HPCT_ERR_CONFIG, "bracket groups"},
    };
    RUN_CASES(expand, cases);
}

TEST(names_have_at_most_255_bytes)
{
    char name[257], expanded[300];
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    snprintf(expanded, sizeof expanded, "%.250s[100000-100001]", name);
    const parse_case cases[] = {
        {name, HPCT_ERR_CONFIG, "too long"},
        {expanded, HPCT_ERR_CONFIG, "too long"},
    };
    RUN_CASES(expand, cases);
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
TEST(lists_are_expanded_as_scontrol_does)
{
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
        if (hpct_cluster_nodelist_expand(lists[i], &names, &count) != HPCT_OK)
            fail_msg("%s: %s", lists[i], hpct_last_error());
        for (;;) {
            if (fgets(line, sizeof line, answers) == NULL)
                fail_msg("scontrol stopped answering at '%s'", lists[i]);
            line[strcspn(line, "\n")] = '\0';
            if (strncmp(line, "scontrol: ", 10) ==
                0) /* its prompt, and what it shows of its input */
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
        hpct_cluster_names_free(names, count);
    }
    pclose(answers);
    unlink(conf);
    unlink(asked);
    assert_true(hosts > 20 * num_lists);
}

/* ---- tasks per node ---- */

/* Number: the nodes. */
static hpct_status expand_tasks(const parse_case *c, char *got, size_t size)
{
    int *tasks = NULL;
    HPCT_TRY(hpct_cluster_tasks_expand(c->text, c->number, &tasks));
    for (int i = 0; i < c->number && strlen(got) + 1 < size; i++) {
        size_t used = strlen(got);
        snprintf(got + used, size - used, "%s%d", i > 0 ? " " : "", tasks[i]);
    }
    free(tasks);
    return HPCT_OK;
}

TEST(tasks_per_node_are_expanded)
{
    int *tasks = NULL;
    static const parse_case cases[] = {
        {"2(x3),1,7", HPCT_OK, "2 2 2 1 7", 5},
        {"64(x1000000)", HPCT_ERR_CONFIG, NULL, 1000000},
    };
    RUN_CASES(expand_tasks, cases);
    assert_int_equal(hpct_cluster_tasks_expand("8(x10000)", 10000, &tasks), HPCT_OK);
    assert_int_equal(tasks[9999], 8);
    free(tasks);
}

TEST(malformed_tasks_per_node_are_rejected)
{
    static const parse_case cases[] = {
        {"", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"0", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"2(x3)", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"2(x5),1", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"2,", HPCT_ERR_CONFIG, "tasks per node", 4},
        {",2", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"2(3)", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"2(x)", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"2(x0),1", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"2(x3", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"-1", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"1,1,1,1 ", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"1,1,1,99999999", HPCT_ERR_CONFIG, "tasks per node", 4},
        {"1(x4)1", HPCT_ERR_CONFIG, "tasks per node", 4},
    };
    RUN_CASES(expand_tasks, cases);
}
