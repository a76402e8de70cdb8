/* base/cluster: roles, heterogeneous steps, addresses of nodes. What srun really
 * does is compared on the cluster (tests/cluster/plugin_jobs.t); here are recorded environments of
 * Slurm 22.05. */
#include "base/cluster/cluster.h"
#include "base/cluster/nodelist.h"
#include "base/cluster/variables.h"
#include "tests/unit/cases.h"
#include "tests/unit/environment.h"

/* ---- roles ---- */

/* Number: the step's tasks. Role (its first letter) and index of each rank. */
static hpct_status fit_roles(const parse_case *c, char *got, size_t size)
{
    hpct_cluster_roles roles;
    assert_int_equal(hpct_cluster_roles_parse(c->text, &roles), HPCT_OK);
    HPCT_TRY(hpct_cluster_roles_fit(&roles, c->number, &roles));
    for (int rank = 0; rank < c->number; rank++) {
        int index = -1, role = hpct_cluster_roles_of(&roles, rank, &index);
        size_t used = strlen(got);
        snprintf(got + used, size - used, "%s%c%d", rank > 0 ? " " : "", roles.list[role].name[0],
                 index);
    }
    return HPCT_OK;
}

TEST(roles_are_assigned_by_rank)
{
    static const parse_case cases[] = {
        {"ps:2,worker:3,chief,evaluator", HPCT_OK, "p0 p1 w0 w1 w2 c0 e0", 7},
        {"worker:3", HPCT_OK, "w0 w1 w2", 3},
        {"worker", HPCT_OK, "w0 w1 w2", 3},
        {"chief,worker,ps:2", HPCT_OK, "c0 w0 w1 w2 p0 p1", 6},
        {"chief", HPCT_OK, "c0", 1},
        {"ps:2,worker:6", HPCT_ERR_CONFIG,
         "the roles are 8 tasks, but the step has 4|--hpc-train-roles", 4},
        {"ps:2,worker:6", HPCT_ERR_CONFIG,
         "the roles are 8 tasks, but the step has 9|--hpc-train-roles", 9},
        {"ps:2,worker", HPCT_ERR_CONFIG,
         "the roles are at least 3 tasks, but the step has 2|--hpc-train-roles", 2},
    };
    RUN_CASES(fit_roles, cases);
}

static hpct_status parse_roles(const parse_case *c, char *got, size_t size)
{
    hpct_cluster_roles roles;
    return hpct_cluster_roles_parse(c->text, &roles);
}

TEST(invalid_roles_are_rejected)
{
    static const parse_case cases[] = {
        {"", HPCT_ERR_USAGE, "'' is not a role"},
        {"boss", HPCT_ERR_USAGE, "'boss' is not a role"},
        {"Worker", HPCT_ERR_USAGE, "'Worker' is not a role"},
        {"ps:2,", HPCT_ERR_USAGE, "'' is not a role"},
        {",ps", HPCT_ERR_USAGE, "'' is not a role"},
        {"work", HPCT_ERR_USAGE, "'work' is not a role"},
        {"workers:2", HPCT_ERR_USAGE, "'workers:2' is not a role"},
        {"ps:0", HPCT_ERR_USAGE, "'ps:0': a number of tasks from 1 on"},
        {"ps:", HPCT_ERR_USAGE, "'ps:': a number"},
        {"ps:-1", HPCT_ERR_USAGE, "a number"},
        {"ps:2x", HPCT_ERR_USAGE, "a number"},
        {"ps:2:3", HPCT_ERR_USAGE, "a number"},
        {"ps:99999999", HPCT_ERR_USAGE, "a number"},
        {"chief:2", HPCT_ERR_USAGE, "at most one chief"},
        {"evaluator:2,worker", HPCT_ERR_USAGE, "at most one evaluator"},
        {"worker:1,ps,worker:1", HPCT_ERR_USAGE, "worker is there twice"},
    };
    RUN_CASES(parse_roles, cases);
}

/* ---- layouts ---- */

/* Text: the command; with: a step's environment; number: Slurm's count of tasks, 0 if not known.
 * "NODE:LOCAL" of each rank. */
static hpct_status read_layout(const parse_case *c, char *got, size_t size)
{
    hpct_cluster cluster;
    HPCT_TRY(hpct_cluster_from_slurm(c->with, c->number, &cluster));
    /* nodes are numbered as their first ranks are */
    for (int rank = 0, seen = 0; rank < cluster.layout.size; rank++) {
        size_t used = strlen(got);
        snprintf(got + used, size - used, "%s%s:%d", rank > 0 ? " " : "",
                 cluster.names[cluster.layout.node[rank]], cluster.layout.local[rank]);
        assert_true(cluster.layout.node[rank] <= seen);
        seen += cluster.layout.node[rank] == seen;
    }
    hpct_cluster_free(&cluster);
    return HPCT_OK;
}

#define MAP(text) "SLURM_PMIX_MAPPING_SERV=" text

TEST(pmix_mapping_gives_heterogeneous_layouts)
{
    const parse_case cases[] = {
        {"srun -w node2,node3 -n3 : -w node0 -n2", HPCT_OK,
         "node2:0 node2:1 node3:0 node0:0 node0:1", 3,
         ENV("SLURM_STEP_NODELIST=node[0,2-3]", "SLURM_STEP_TASKS_PER_NODE=2(x2),1",
             "SLURM_DISTRIBUTION=block", MAP("(vector,(1,1,2),(2,1,1),(0,1,2))"))},
        /* as the second component sees it */
        {"srun -N2 -n4 : -N2 -n6 -m plane=2", HPCT_OK,
         "node0:0 node0:1 node0:2 node1:0 node2:0 node2:1 node3:0 node2:2 node2:3 node2:4", 6,
         ENV("SLURM_STEP_NODELIST=node[0-3]", "SLURM_STEP_TASKS_PER_NODE=3,1,5,1",
             "SLURM_DISTRIBUTION=plane", "SLURM_DIST_PLANESIZE=2",
             MAP("(vector,(0,1,3),(1,1,1),(2,1,2),(3,1,1),(2,1,3))"))},
        {"srun -N2 -n4 -m cyclic : -N2 -n4", HPCT_OK,
         "node0:0 node1:0 node0:1 node0:2 node2:0 node2:1 node2:2 node3:0", 4,
         ENV("SLURM_STEP_NODELIST=node[0-3]", "SLURM_STEP_TASKS_PER_NODE=3,1,3,1",
             MAP("(vector,(0,2,1),(0,1,2),(2,1,3),(3,1,1))"))},
    };
    RUN_CASES(read_layout, cases);
}

#define HET                                                                                        \
    "SLURM_STEP_NODELIST=node[0,2-3]", "SLURM_STEP_TASKS_PER_NODE=2(x2),1",                        \
        "SLURM_DISTRIBUTION=block", "SLURM_HET_SIZE=2"
#define HET_0 "SLURM_JOB_NODELIST_HET_GROUP_0="
#define HET_1 "SLURM_JOB_NODELIST_HET_GROUP_1="
#define PACK_0 "SLURM_JOB_NODELIST_PACK_GROUP_0="
#define PACK_1 "SLURM_JOB_NODELIST_PACK_GROUP_1="

TEST(without_pmix_the_components_node_lists_are_used)
{
    static const char want[] = "node2:0 node2:1 node3:0 node0:0 node0:1";
    const parse_case cases[] = {
        {"HET_GROUP", HPCT_OK, want, 3, ENV(HET, HET_0 "node[2-3]", HET_1 "node[0-1]")},
        {"PACK_GROUP", HPCT_OK, want, 2, ENV(HET, PACK_0 "node[2-3]", PACK_1 "node0")},
        /* the agent does not know Slurm's number */
        {"agent", HPCT_OK, want, 0, ENV(HET, PACK_0 "node[2-3]", PACK_1 "node0")},
        {"no lists", HPCT_ERR_CONFIG, "use srun --mpi=pmix", 3, ENV(HET)},
        {"one list", HPCT_ERR_CONFIG, "use srun --mpi=pmix", 3, ENV(HET, HET_0 "node[2-3]")},
        {"malformed list", HPCT_ERR_CONFIG, "SLURM_JOB_NODELIST_HET_GROUP", 3,
         ENV(HET, HET_0 "node[2-", HET_1 "node0")},
        {"other number of tasks", HPCT_ERR_CONFIG, "do not set SLURM_*", 6, ENV(HET)},
    };
    RUN_CASES(read_layout, cases);
    assert_null(strstr(hpct_last_error(), "DISTRIBUTION"));
    /* one that the outer step left, for other numbers of tasks, or no map at all */
#define FOREIGN(map)                                                                               \
    {                                                                                              \
        MAP(map), HPCT_OK, want, 3, ENV(HET, MAP(map), HET_0 "node[2-3]", HET_1 "node0")           \
    }
    const parse_case foreign[] = {
        FOREIGN("(vector,(0,3,1))"),
        FOREIGN("(vector,(1,1,2),(2,1,1))"),
        FOREIGN("(vector,(0,9,1))"),
        FOREIGN("(vector"),
        FOREIGN("(vector,(1,1,2),(2,1,1),(0,1,2)) "),
        FOREIGN("(vector,(2,2,2),(0,1,1))"),
    };
    RUN_CASES(read_layout, foreign);
}

TEST(a_component_alone_is_an_ordinary_step)
{
    const parse_case cases[] = {
        {"srun -m cyclic", HPCT_OK, "node0:0 node2:0 node3:0 node0:1 node2:1", 0,
         ENV("SLURM_STEP_NODELIST=node[0,2-3]", "SLURM_STEP_TASKS_PER_NODE=2(x2),1",
             "SLURM_DISTRIBUTION=cyclic", "SLURM_HET_SIZE=2", HET_0 "node[0-3]",
             HET_1 "node[4-7]")},
    };
    RUN_CASES(read_layout, cases);
}

TEST(pmix_mapping_gives_arbitrary_layouts)
{
    hpct_cluster cluster;
    hpct_cluster_environment *step =
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

/* The hosts of c0 to c3. */
static hpct_status find_hosts(const parse_case *c, char *got, size_t size)
{
    char *names[] = {(char[]){"c0"}, (char[]){"c1"}, (char[]){"c2"}, (char[]){"c3"}};
    char variable[200], **hosts = NULL;
    snprintf(variable, sizeof variable, "SLURM_NODE_ALIASES=%s", c->text);
    HPCT_TRY(hpct_cluster_hosts_find(ENV(variable), names, 4, address_of, &hosts));
    snprintf(got, size, "%s %s %s %s", hosts[0], hosts[1], hosts[2], hosts[3]);
    hpct_cluster_names_free(hosts, 4);
    return HPCT_OK;
}

TEST(node_aliases_override_resolved_addresses)
{
    static const parse_case cases[] = {
        {"(null)", HPCT_OK, "10.0.0.1 fd00::1 c2 c3"},
        {"c3:1.2.3.4:foo,c0:host.example:bar", HPCT_OK, "host.example fd00::1 c2 1.2.3.4"},
        {"c3:[fd00::4]:foo,x9:1.1.1.1:x", HPCT_OK, "10.0.0.1 fd00::1 c2 fd00::4"},
        {"c3:[fd00::4:foo,c0:,c2:a b:c", HPCT_OK, "10.0.0.1 fd00::1 c2 c3"},
    };
    RUN_CASES(find_hosts, cases);
}

/* ---- TF_CONFIG ---- */

typedef struct variables {
    char *tf, *address, *jax;
} variables;

static hpct_status take(void *context, const char *name, const char *value)
{
    variables *t = context;
    if (strcmp(name, "TF_CONFIG") == 0)
        t->tf = strdup(value);
    if (strcmp(name, "MASTER_ADDR") == 0)
        t->address = strdup(value);
    if (strcmp(name, "JAX_COORDINATOR_ADDRESS") == 0)
        t->jax = strdup(value);
    return HPCT_OK;
}

static void check_variables(int rank, const char *tf)
{
    hpct_cluster cluster;
    hpct_cluster_config *config = NULL, *again = NULL;
    hpct_cluster_roles roles;
    char *json = NULL;
    const char *dropped = NULL;
    variables t = {0};
    hpct_cluster_port_range ports = {.low = 22000, .high = 22000, .single = 1};
    hpct_cluster_environment *step =
        ENV("SLURM_STEP_NODELIST=c[1,0,7]", "SLURM_STEP_TASKS_PER_NODE=2(x3)");
    assert_int_equal(hpct_cluster_from_slurm(step, 6, &cluster), HPCT_OK);
    assert_int_equal(hpct_cluster_set_hosts(&cluster, step, address_of), HPCT_OK);
    assert_int_equal(hpct_cluster_set_ports(&cluster, step, &ports, ports, 1, 0, 0, NULL), HPCT_OK);
    assert_int_equal(hpct_cluster_roles_parse("ps:2,worker:2,chief,evaluator", &roles), HPCT_OK);
    assert_int_equal(hpct_cluster_config_of(&cluster, rank, 1, 0, &roles, NULL, &config), HPCT_OK);
    assert_int_equal(hpct_cluster_config_to_json(config, &json), HPCT_OK);
    assert_int_equal(hpct_cluster_variables_emit(config, HPCT_CLUSTER_FRAMEWORK_ALL, json, "/f",
                                                 take, &t, &dropped),
                     HPCT_OK);
    assert_string_equal(t.tf, tf);
    assert_string_equal(t.address, "fd00::1");
    assert_string_equal(t.jax, "[fd00::1]:22000");
    /* the document has all of them, the evaluator as well, and Slurm's names of the nodes */
    assert_int_equal(hpct_cluster_config_from_json(json, strlen(json), "x", &again), HPCT_OK);
    assert_int_equal(again->num_roles, 4);
    assert_string_equal(again->addresses[5], "c7:22001");
    assert_string_equal(again->nodes[0].name, "c1");
    free(t.tf);
    free(t.address);
    free(t.jax);
    free(json);
    hpct_cluster_config_free(again);
    hpct_cluster_config_free(config);
    hpct_cluster_free(&cluster);
}

#define TF_CLUSTER                                                                                 \
    "{\"cluster\":{\"ps\":[\"[fd00::1]:22000\",\"[fd00::1]:22001\"],\"worker\":[\"10.0.0.1:22000"  \
    "\",\"10.0.0.1:22001\"],\"chief\":[\"c7:22000\"]},\"task\":"

TEST(tf_config_has_cluster_and_task)
{
    check_variables(1, TF_CLUSTER "{\"type\":\"ps\",\"index\":1}}");
    check_variables(2, TF_CLUSTER "{\"type\":\"worker\",\"index\":0}}");
    check_variables(4, TF_CLUSTER "{\"type\":\"chief\",\"index\":0}}");
    check_variables(5, TF_CLUSTER "{\"type\":\"evaluator\",\"index\":0}}");
}

TEST(node_number_is_its_place_in_the_job)
{
    const char list[] = "SLURM_JOB_NODELIST=n[009-010],m3";
    assert_int_equal(hpct_cluster_node_in_job(ENV(list, "SLURMD_NODENAME=n009"), 40, 7), 0);
    assert_int_equal(hpct_cluster_node_in_job(ENV(list, "SLURMD_NODENAME=m3"), 40, 7), 2);
    /* nobody says it */
    assert_int_equal(hpct_cluster_node_in_job(ENV(list, "SLURMD_NODENAME=n9"), 40, 7), 7);
    assert_int_equal(hpct_cluster_node_in_job(ENV(list), 40, 7), 7);
    assert_int_equal(hpct_cluster_node_in_job(ENV("SLURMD_NODENAME=m3"), 40, 7), 7);
    assert_int_equal(
        hpct_cluster_node_in_job(ENV("SLURM_JOB_NODELIST=n[", "SLURMD_NODENAME=n"), 40, 7), 7);
    assert_int_equal(
        hpct_cluster_node_in_job(ENV(list, "SLURMD_NODENAME=m3", "SLURM_HET_SIZE=2"), 40, 7), 7);
    /* of several components, also on a node that two of them share */
    const hpct_cluster_environment *components =
        ENV("SLURM_HET_SIZE=2", "SLURMD_NODENAME=n2", "SLURM_JOB_NODELIST=n2",
            "SLURM_JOB_NODELIST_HET_GROUP_0=n[1-2]", "SLURM_JOB_ID_HET_GROUP_0=40",
            "SLURM_JOB_NODELIST_HET_GROUP_1=n[2-3]", "SLURM_JOB_ID_HET_GROUP_1=41");
    assert_int_equal(hpct_cluster_node_in_job(components, 40, 7), 1);
    assert_int_equal(hpct_cluster_node_in_job(components, 41, 7), 2);
    assert_int_equal(hpct_cluster_node_in_job(components, 42, 7), 7);
}
