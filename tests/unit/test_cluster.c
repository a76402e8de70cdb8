/* agent/cluster: roles, steps over several components, by what nodes are reached. What srun really
 * does is compared on the cluster (tests/cluster/plugin_jobs.t); here are recorded environments of
 * Slurm 22.05. */
#include "agent/cluster/cluster.h"
#include "agent/cluster/nodelist.h"
#include "agent/cluster/variables.h"
#include "tests/unit/unit.h"

/* An environment as a list "NAME=value", NULL at the end. */
static const char *get(void *context, const char *name)
{
    size_t size = strlen(name);
    for (const char *const *entry = context; *entry != NULL; entry++) {
        if (strncmp(*entry, name, size) == 0 && (*entry)[size] == '=')
            return *entry + size + 1;
    }
    return NULL;
}

#define ENV(...)                                                                                   \
    (&(hpct_environment){.get = get, .context = (void *) (const char *[]){__VA_ARGS__, NULL}})

/* ---- roles ---- */

static void fits(const char *text, int size, const char *want)
{
    hpct_roles roles;
    char got[256] = "";
    assert_int_equal(hpct_roles_parse(text, &roles), HPCT_OK);
    hpct_status status = hpct_roles_fit(&roles, size, &roles);
    if (status != HPCT_OK) {
        assert_int_equal(status, HPCT_ERR_CONFIG);
        if (strstr(hpct_last_error(), want) == NULL)
            fail_msg("'%s' does not say '%s'", hpct_last_error(), want);
        assert_non_null(strstr(hpct_last_error(), "--hpc-train-roles"));
        return;
    }
    for (int rank = 0; rank < size; rank++) {
        int index = -1, role = hpct_roles_of(&roles, rank, &index);
        sprintf(got + strlen(got), "%s%c%d", rank > 0 ? " " : "", roles.list[role].name[0], index);
    }
    assert_string_equal(got, want);
}

static void roles_are_given_out_by_rank(void **state)
{
    (void) state;
    fits("ps:2,worker:3,chief,evaluator", 7, "p0 p1 w0 w1 w2 c0 e0");
    fits("worker:3", 3, "w0 w1 w2");
    fits("worker", 3, "w0 w1 w2");
    fits("chief,worker,ps:2", 6, "c0 w0 w1 w2 p0 p1");
    fits("chief", 1, "c0");
    fits("ps:2,worker:6", 4, "the roles are 8 tasks, but the step has 4");
    fits("ps:2,worker:6", 9, "the roles are 8 tasks, but the step has 9");
    fits("ps:2,worker", 2, "the roles are at least 3 tasks, but the step has 2");
}

static void wrong_roles_are_refused(void **state)
{
    (void) state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "'' is no role"},
        {"boss", "'boss' is no role"},
        {"Worker", "'Worker' is no role"},
        {"ps:2,", "'' is no role"},
        {",ps", "'' is no role"},
        {"work", "'work' is no role"},
        {"workers:2", "'workers:2' is no role"},
        {"ps:0", "'ps:0': a number of tasks from 1 on"},
        {"ps:", "'ps:': a number"},
        {"ps:-1", "a number"},
        {"ps:2x", "a number"},
        {"ps:2:3", "a number"},
        {"ps:99999999", "a number"},
        {"chief:2", "at most one chief"},
        {"evaluator:2,worker", "at most one evaluator"},
        {"worker:1,ps,worker:1", "worker is there twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hpct_roles roles;
        if (hpct_roles_parse(cases[i].text, &roles) != HPCT_ERR_USAGE)
            fail_msg("'%s' was not refused", cases[i].text);
        if (strstr(hpct_last_error(), cases[i].says) == NULL)
            fail_msg("'%s' does not say '%s'", hpct_last_error(), cases[i].says);
    }
}

/* ---- layouts ---- */

/* `want`: "node0:0 node0:1", the node and local id of each rank; or what the refusal says. */
static void lies(const hpct_environment *environment, long slurm_tasks, const char *want)
{
    hpct_cluster cluster;
    char got[512] = "";
    if (hpct_cluster_from_slurm(environment, slurm_tasks, &cluster) != HPCT_OK) {
        if (strstr(hpct_last_error(), want) == NULL)
            fail_msg("'%s' does not say '%s'", hpct_last_error(), want);
        return;
    }
    for (int rank = 0; rank < cluster.layout.size; rank++)
        sprintf(got + strlen(got), "%s%s:%d", rank > 0 ? " " : "",
                cluster.names[cluster.layout.node[rank]], cluster.layout.local[rank]);
    /* nodes are numbered as their first ranks are */
    for (int rank = 0, seen = 0; rank < cluster.layout.size; rank++) {
        assert_true(cluster.layout.node[rank] <= seen);
        seen += cluster.layout.node[rank] == seen;
    }
    hpct_cluster_free(&cluster);
    assert_string_equal(got, want);
}

#define MAP(text) "SLURM_PMIX_MAPPING_SERV=" text

static void steps_over_components_are_read_from_the_map(void **state)
{
    (void) state;
    /* srun -w node2,node3 -n3 : -w node0 -n2 */
    lies(ENV("SLURM_STEP_NODELIST=node[0,2-3]", "SLURM_STEP_TASKS_PER_NODE=2(x2),1",
             "SLURM_DISTRIBUTION=block", MAP("(vector,(1,1,2),(2,1,1),(0,1,2))")),
         3, "node2:0 node2:1 node3:0 node0:0 node0:1");
    /* -N2 -n4 : -N2 -n6 -m plane=2, as the second component sees it */
    lies(ENV("SLURM_STEP_NODELIST=node[0-3]", "SLURM_STEP_TASKS_PER_NODE=3,1,5,1",
             "SLURM_DISTRIBUTION=plane", "SLURM_DIST_PLANESIZE=2",
             MAP("(vector,(0,1,3),(1,1,1),(2,1,2),(3,1,1),(2,1,3))")),
         6,
         "node0:0 node0:1 node0:2 node1:0 node2:0 node2:1 node3:0 node2:2 node2:3 "
         "node2:4");
    /* -N2 -n4 -m cyclic : -N2 -n4 */
    lies(ENV("SLURM_STEP_NODELIST=node[0-3]", "SLURM_STEP_TASKS_PER_NODE=3,1,3,1",
             MAP("(vector,(0,2,1),(0,1,2),(2,1,3),(3,1,1))")),
         4, "node0:0 node1:0 node0:1 node0:2 node2:0 node2:1 node2:2 node3:0");
}

#define HET                                                                                        \
    "SLURM_STEP_NODELIST=node[0,2-3]", "SLURM_STEP_TASKS_PER_NODE=2(x2),1",                        \
        "SLURM_DISTRIBUTION=block", "SLURM_HET_SIZE=2"

static void without_a_map_the_components_of_the_job_are_taken(void **state)
{
    (void) state;
    static const char want[] = "node2:0 node2:1 node3:0 node0:0 node0:1";
    lies(ENV(HET, "SLURM_JOB_NODELIST_HET_GROUP_0=node[2-3]",
             "SLURM_JOB_NODELIST_HET_GROUP_1=node[0-1]"),
         3, want);
    lies(ENV(HET, "SLURM_JOB_NODELIST_PACK_GROUP_0=node[2-3]",
             "SLURM_JOB_NODELIST_PACK_GROUP_1=node0"),
         2, want);
    /* the agent does not know Slurm's number */
    lies(ENV(HET, "SLURM_JOB_NODELIST_PACK_GROUP_0=node[2-3]",
             "SLURM_JOB_NODELIST_PACK_GROUP_1=node0"),
         0, want);
    /* one that the outer step left, for other numbers of tasks, or no map at all */
    static const char *const foreign[] = {MAP("(vector,(0,3,1))"),
                                          MAP("(vector,(1,1,2),(2,1,1))"),
                                          MAP("(vector,(0,9,1))"),
                                          MAP("(vector"),
                                          MAP("(vector,(1,1,2),(2,1,1),(0,1,2)) "),
                                          MAP("(vector,(2,2,2),(0,1,1))")};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        lies(ENV(HET, foreign[i], "SLURM_JOB_NODELIST_HET_GROUP_0=node[2-3]",
                 "SLURM_JOB_NODELIST_HET_GROUP_1=node0"),
             3, want);
    lies(ENV(HET), 3, "use srun --mpi=pmix");
    lies(ENV(HET, "SLURM_JOB_NODELIST_HET_GROUP_0=node[2-3]"), 3, "use srun --mpi=pmix");
    lies(ENV(HET, "SLURM_JOB_NODELIST_HET_GROUP_0=node[2-", "SLURM_JOB_NODELIST_HET_GROUP_1=node0"),
         3, "SLURM_JOB_NODELIST_HET_GROUP");
    lies(ENV(HET), 6, "do not set SLURM_*");
    assert_null(strstr(hpct_last_error(), "DISTRIBUTION"));
}

static void a_component_alone_is_an_ordinary_step(void **state)
{
    (void) state;
    lies(ENV("SLURM_STEP_NODELIST=node[0,2-3]", "SLURM_STEP_TASKS_PER_NODE=2(x2),1",
             "SLURM_DISTRIBUTION=cyclic", "SLURM_HET_SIZE=2",
             "SLURM_JOB_NODELIST_HET_GROUP_0=node[0-3]",
             "SLURM_JOB_NODELIST_HET_GROUP_1=node[4-7]"),
         0, "node0:0 node2:0 node3:0 node0:1 node2:1");
}

static void arbitrary_layouts_are_read_from_the_map(void **state)
{
    (void) state;
    hpct_cluster cluster;
    hpct_environment *step =
        ENV("SLURM_STEP_NODELIST=node[0-1]", "SLURM_STEP_TASKS_PER_NODE=1,2",
            "SLURM_DISTRIBUTION=arbitrary", MAP("(vector,(1,1,1),(0,1,1),(1,1,1))"));
    assert_int_equal(hpct_cluster_from_slurm(step, 3, &cluster), HPCT_OK);
    assert_string_equal(cluster.names[cluster.layout.node[0]], "node1");
    assert_int_equal(cluster.layout.node[1], 0); /* here nodes keep their numbers */
    assert_int_equal(cluster.layout.local[2], 1);
    hpct_cluster_free(&cluster);
}

/* ---- hosts ---- */

static char *address_of(const char *node)
{
    if (strcmp(node, "c0") == 0)
        return strdup("10.0.0.1");
    if (strcmp(node, "c1") == 0)
        return strdup("fd00::1");
    if (strcmp(node, "c2") == 0)
        return strdup("not;a host");
    return NULL;
}

static void nodes_go_by_what_resolves(void **state)
{
    (void) state;
    char *names[] = {(char[]){"c0"}, (char[]){"c1"}, (char[]){"c2"}, (char[]){"c3"}};
    static const struct {
        const char *aliases;
        const char *want[4];
    } cases[] = {
        {"(null)", {"10.0.0.1", "fd00::1", "c2", "c3"}},
        {"c3:1.2.3.4:foo,c0:host.example:bar", {"host.example", "fd00::1", "c2", "1.2.3.4"}},
        {"c3:[fd00::4]:foo,x9:1.1.1.1:x", {"10.0.0.1", "fd00::1", "c2", "fd00::4"}},
        {"c3:[fd00::4:foo,c0:,c2:a b:c", {"10.0.0.1", "fd00::1", "c2", "c3"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char variable[200], **hosts = NULL;
        snprintf(variable, sizeof variable, "SLURM_NODE_ALIASES=%s", cases[i].aliases);
        assert_int_equal(hpct_hosts_find(ENV(variable), names, 4, address_of, &hosts), HPCT_OK);
        for (int n = 0; n < 4; n++)
            assert_string_equal(hosts[n], cases[i].want[n]);
        hpct_names_free(hosts, 4);
    }
}

/* ---- what the tasks are told ---- */

typedef struct told {
    char *tf, *address, *jax;
} told;

static hpct_status take(void *context, const char *name, const char *value)
{
    told *t = context;
    if (strcmp(name, "TF_CONFIG") == 0)
        t->tf = strdup(value);
    if (strcmp(name, "MASTER_ADDR") == 0)
        t->address = strdup(value);
    if (strcmp(name, "JAX_COORDINATOR_ADDRESS") == 0)
        t->jax = strdup(value);
    return HPCT_OK;
}

static void tells(int rank, const char *tf)
{
    hpct_cluster cluster;
    hpct_config *config = NULL, *again = NULL;
    hpct_roles roles;
    char *json = NULL;
    const char *dropped = NULL;
    told t = {0};
    hpct_port_range ports = {.low = 22000, .high = 22000, .single = 1};
    hpct_environment *step = ENV("SLURM_STEP_NODELIST=c[1,0,7]", "SLURM_STEP_TASKS_PER_NODE=2(x3)");
    assert_int_equal(hpct_cluster_from_slurm(step, 6, &cluster), HPCT_OK);
    assert_int_equal(hpct_cluster_set_hosts(&cluster, step, address_of), HPCT_OK);
    assert_int_equal(hpct_cluster_set_ports(&cluster, step, &ports, ports, 1, 0, 0, NULL), HPCT_OK);
    assert_int_equal(hpct_roles_parse("ps:2,worker:2,chief,evaluator", &roles), HPCT_OK);
    assert_int_equal(hpct_cluster_config(&cluster, rank, 1, 0, &roles, NULL, &config), HPCT_OK);
    assert_int_equal(hpct_config_to_json(config, &json), HPCT_OK);
    assert_int_equal(
        hpct_variables_emit(config, HPCT_FRAMEWORK_ALL, json, "/f", take, &t, &dropped), HPCT_OK);
    assert_string_equal(t.tf, tf);
    assert_string_equal(t.address, "fd00::1");
    assert_string_equal(t.jax, "[fd00::1]:22000");
    /* the document has all of them, the evaluator as well, and Slurm's names of the nodes */
    assert_int_equal(hpct_config_from_json(json, strlen(json), "x", &again), HPCT_OK);
    assert_int_equal(again->num_roles, 4);
    assert_string_equal(again->addresses[5], "c7:22001");
    assert_string_equal(again->nodes[0].name, "c1");
    free(t.tf);
    free(t.address);
    free(t.jax);
    free(json);
    hpct_config_free(again);
    hpct_config_free(config);
    hpct_cluster_free(&cluster);
}

#define TF_CLUSTER                                                                                 \
    "{\"cluster\":{\"ps\":[\"[fd00::1]:22000\",\"[fd00::1]:22001\"],\"worker\":[\"10.0.0.1:22000"  \
    "\",\"10.0.0.1:22001\"],\"chief\":[\"c7:22000\"]},\"task\":"

static void tensorflow_is_told_its_cluster(void **state)
{
    (void) state;
    tells(1, TF_CLUSTER "{\"type\":\"ps\",\"index\":1}}");
    tells(2, TF_CLUSTER "{\"type\":\"worker\",\"index\":0}}");
    tells(4, TF_CLUSTER "{\"type\":\"chief\",\"index\":0}}");
    tells(5, TF_CLUSTER "{\"type\":\"evaluator\",\"index\":0}}");
}

static void a_node_knows_its_number_in_the_job(void **state)
{
    (void) state;
    const char list[] = "SLURM_JOB_NODELIST=n[009-010],m3";
    assert_int_equal(hpct_node_in_job(ENV(list, "SLURMD_NODENAME=n009"), 7), 0);
    assert_int_equal(hpct_node_in_job(ENV(list, "SLURMD_NODENAME=m3"), 7), 2);
    /* nobody says it */
    assert_int_equal(hpct_node_in_job(ENV(list, "SLURMD_NODENAME=n9"), 7), 7);
    assert_int_equal(hpct_node_in_job(ENV(list), 7), 7);
    assert_int_equal(hpct_node_in_job(ENV("SLURMD_NODENAME=m3"), 7), 7);
    assert_int_equal(hpct_node_in_job(ENV("SLURM_JOB_NODELIST=n[", "SLURMD_NODENAME=n"), 7), 7);
    assert_int_equal(hpct_node_in_job(ENV(list, "SLURMD_NODENAME=m3", "SLURM_HET_SIZE=2"), 7), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_knows_its_number_in_the_job),
        cmocka_unit_test(roles_are_given_out_by_rank),
        cmocka_unit_test(wrong_roles_are_refused),
        cmocka_unit_test(steps_over_components_are_read_from_the_map),
        cmocka_unit_test(without_a_map_the_components_of_the_job_are_taken),
        cmocka_unit_test(a_component_alone_is_an_ordinary_step),
        cmocka_unit_test(arbitrary_layouts_are_read_from_the_map),
        cmocka_unit_test(nodes_go_by_what_resolves),
        cmocka_unit_test(tensorflow_is_told_its_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
