/* base/cluster: a step's cluster from SLURM_*, the config as JSON and as variables, and reading it
 * back in the order of launchers. */
#include "base/cluster/cluster.h"
#include "base/cluster/config.h"
#include "base/cluster/variables.h"
#include "tests/unit/cases.h"
#include "tests/unit/environment.h"

#include <jansson.h>
#include <unistd.h>

#define STEP                                                                                       \
    "SLURM_STEP_NODELIST=node[0-1]", "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_STEP_NUM_TASKS=4",  \
        "SLURM_DISTRIBUTION=block", "SLURM_JOB_ID=42", "SLURM_STEP_ID=0"
#define TASK2 "SLURM_PROCID=2", "SLURM_NODEID=1", "SLURM_LOCALID=0"

/* 2x2, as the design shows it, seen by rank 2. */
static hpct_cluster_config *make_config(const char *gpu, const char *data)
{
    hpct_cluster cluster;
    hpct_cluster_config *config = NULL;
    hpct_cluster_port_range range = {.low = 22000, .high = 22000, .single = 1};
    const int gpus[] = {2, 2};
    assert_int_equal(hpct_cluster_from_slurm(ENV(STEP), 4, &cluster), HPCT_OK);
    assert_int_equal(hpct_cluster_set_ports(&cluster, ENV(STEP), &range, range, 42, 0, 0, NULL),
                     HPCT_OK);
    assert_int_equal(hpct_cluster_config_of(&cluster, 2, 42, 0, NULL, gpus, &config), HPCT_OK);
    hpct_cluster_free(&cluster);
    config->gpu = gpu == NULL ? NULL : strdup(gpu);
    config->data = data == NULL ? NULL : strdup(data);
    config->tmpdir = strdup("/tmp/hpc-train/42");
    return config;
}

static const char design_json[] =
    "{\"version\":1,\"job\":\"42.0\",\"cluster\":{\"worker\":[\"node0:22000\",\"node0:22001\","
    "\"node1:22000\",\"node1:22001\"]},\"task\":{\"type\":\"worker\",\"index\":2},\"rank\":2,"
    "\"local_rank\":0,\"node_rank\":1,\"nodes\":[{\"name\":\"node0\",\"tasks\":2,\"gpus\":2},"
    "{\"name\":\"node1\",\"tasks\":2,\"gpus\":2}],\"gpu\":\"0\",\"tmpdir\":\"/tmp/hpc-train/42\","
    "\"data\":\"/tmp/hpc-train/42/mnist\"}";

TEST(config_is_written_as_documented)
{
    char *text = NULL;
    hpct_cluster_config *config = make_config("0", "/tmp/hpc-train/42/mnist");
    assert_int_equal(hpct_cluster_config_to_json(config, &text), HPCT_OK);
    assert_string_equal(text, design_json);
    free(text);
    hpct_cluster_config_free(config);
}

TEST(config_is_read_back)
{
    hpct_cluster_config *config = NULL;
    assert_int_equal(hpct_cluster_config_from_json(design_json, strlen(design_json), "x", &config),
                     HPCT_OK);
    assert_int_equal(config->source, HPCT_CLUSTER_CONFIG_PLUGIN);
    assert_string_equal(config->job, "42.0");
    assert_int_equal(config->rank, 2);
    assert_int_equal(config->size, 4);
    assert_int_equal(config->local_rank, 0);
    assert_int_equal(config->local_size, 2);
    assert_int_equal(config->node_rank, 1);
    assert_int_equal(config->num_nodes, 2);
    assert_string_equal(config->role, "worker");
    assert_int_equal(config->role_index, 2);
    assert_string_equal(config->nodes[1].name, "node1");
    assert_int_equal(config->nodes[1].gpus, 2);
    assert_string_equal(config->addresses[3], "node1:22001");
    assert_string_equal(config->gpu, "0");
    assert_string_equal(config->tmpdir, "/tmp/hpc-train/42");
    assert_string_equal(config->data, "/tmp/hpc-train/42/mnist");
    hpct_cluster_config_free(config);
}

/* The document above, the piece `with` replaced by the text. */
static hpct_status parse_replaced(const parse_case *c, char *got, size_t size)
{
    char text[2048];
    const char *piece = c->with, *at = strstr(design_json, piece);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int) (at - design_json), design_json, c->text,
             at + strlen(piece));
    hpct_cluster_config *config = NULL;
    return hpct_cluster_config_from_json(text, strlen(text), "HPC_TRAIN_CONFIG", &config);
}

TEST(contradictions_are_rejected)
{
#define REPLACED(piece, by, words)                                                                 \
    {                                                                                              \
        by, HPCT_ERR_CONFIG, words "|HPC_TRAIN_CONFIG", 0, piece                                   \
    }
    static const parse_case cases[] = {
        REPLACED("{\"version\"", "\"version\"", "not JSON"),
        REPLACED("\"version\":1", "\"version\":2", "version 2"),
        REPLACED("\"version\":1,", "", "version"),
        REPLACED("\"rank\":2", "\"rank\":3", "do not agree"),
        REPLACED("\"rank\":2", "\"rank\":4", "\"rank\""),
        REPLACED("\"rank\":2", "\"rank\":-1", "\"rank\""),
        REPLACED("\"rank\":2", "\"rank\":\"2\"", "\"rank\""),
        REPLACED("\"rank\":2", "\"rank\":2,\"rank\":2", "not JSON"),
        REPLACED("\"index\":2", "\"index\":9", "do not agree"),
        REPLACED("\"type\":\"worker\"", "\"type\":\"ps\"", "does not name"),
        REPLACED("\"local_rank\":0", "\"local_rank\":2", "local_rank"),
        REPLACED("\"node_rank\":1", "\"node_rank\":2", "node_rank"),
        REPLACED("\"tasks\":2", "\"tasks\":3", "the tasks of"),
        REPLACED("node0:22000", "node0", "host:port"),
        REPLACED("node0:22000", "node0:99999", "host:port"),
        REPLACED("node0:22000", ":1", "host:port"),
        REPLACED("\"gpu\":\"0\"", "\"gpu\":0", "\"gpu\""),
        REPLACED("\"data\":\"", "\"data\":\"\\u0000", "not JSON"),
        REPLACED("\"nodes\":[", "\"nodes\":[[],", "\"name\""),
    };
    RUN_CASES(parse_replaced, cases);
}

TEST(ranks_are_numbered_through_all_roles)
{
    static const char text[] =
        "{\"version\":1,\"job\":\"1.0\",\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"a:2\",\"b:1\"]}"
        ","
        "\"task\":{\"type\":\"worker\",\"index\":1},\"rank\":2,\"local_rank\":0,\"node_rank\":1,"
        "\"nodes\":[{\"name\":\"a\",\"tasks\":2,\"gpus\":0},{\"name\":\"b\",\"tasks\":1,\"gpus\":0}"
        "]}";
    hpct_cluster_config *config = NULL;
    char *again = NULL;
    assert_int_equal(hpct_cluster_config_from_json(text, strlen(text), "x", &config), HPCT_OK);
    assert_int_equal(config->num_roles, 2);
    assert_int_equal(config->roles[0].count, 1);
    assert_string_equal(config->addresses[config->rank], "b:1");
    assert_null(config->gpu);
    assert_int_equal(hpct_cluster_config_to_json(config, &again), HPCT_OK);
    assert_string_equal(again, text);
    free(again);
    hpct_cluster_config_free(config);
}

/* ---- variables ---- */

typedef struct received {
    char names[64][32];
    char *values[64]; /* NULL: unset */
    int count;
} received;

static hpct_status receive(void *context, const char *name, const char *value)
{
    received *r = context;
    strcpy(r->names[r->count], name);
    r->values[r->count++] = value == NULL ? NULL : strdup(value);
    return HPCT_OK;
}

static const char *value_of(const received *r, const char *name)
{
    for (int i = 0; i < r->count; i++) {
        if (strcmp(r->names[i], name) == 0)
            return r->values[i];
    }
    return NULL;
}

static void emit(const hpct_cluster_config *config, unsigned frameworks, const char *json,
                 received *r, const char **dropped)
{
    memset(r, 0, sizeof *r);
    assert_int_equal(
        hpct_cluster_variables_emit(config, frameworks, json, "/f.json", receive, r, dropped),
        HPCT_OK);
    for (int i = 0; i < r->count; i++) {
        bool known = false;
        for (int n = 0; hpct_cluster_variable_names[n] != NULL; n++)
            known = known || strcmp(hpct_cluster_variable_names[n], r->names[i]) == 0;
        assert_true(known);
    }
}

static void forget(received *r)
{
    for (int i = 0; i < r->count; i++)
        free(r->values[i]);
}

TEST(variables_are_as_documented)
{
    received r;
    const char *dropped = NULL;
    hpct_cluster_config *config = make_config("1", NULL);
    emit(config, HPCT_CLUSTER_FRAMEWORK_ALL, "{}", &r, &dropped);
    assert_null(dropped);
    static const char *const want[][2] = {
        {"HPC_TRAIN_CONFIG", "{}"},
        {"HPC_TRAIN_CONFIG_FILE", "/f.json"},
        {"HPC_TRAIN_RANK", "2"},
        {"HPC_TRAIN_WORLD_SIZE", "4"},
        {"HPC_TRAIN_LOCAL_RANK", "0"},
        {"HPC_TRAIN_LOCAL_SIZE", "2"},
        {"HPC_TRAIN_NODE_RANK", "1"},
        {"HPC_TRAIN_NUM_NODES", "2"},
        {"HPC_TRAIN_ROLE", "worker"},
        {"HPC_TRAIN_ROLE_INDEX", "2"},
        {"HPC_TRAIN_GPU", "1"},
        {"SLURM_TMPDIR", "/tmp/hpc-train/42"},
        {"TMPDIR", "/tmp/hpc-train/42"},
        {"TF_CONFIG", "{\"cluster\":{\"worker\":[\"node0:22000\",\"node0:22001\",\"node1:22000\","
                      "\"node1:22001\"]},\"task\":{\"type\":\"worker\",\"index\":2}}"},
        {"MASTER_ADDR", "node0"},
        {"MASTER_PORT", "22000"},
        {"RANK", "2"},
        {"WORLD_SIZE", "4"},
        {"LOCAL_RANK", "0"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"GROUP_RANK", "1"},
        {"JAX_COORDINATOR_ADDRESS", "node0:22000"},
        {"JAX_NUM_PROCESSES", "4"},
        {"JAX_PROCESS_ID", "2"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_non_null(value_of(&r, want[i][0]));
        assert_string_equal(value_of(&r, want[i][0]), want[i][1]);
    }
    assert_int_equal(r.count, sizeof want / sizeof *want + 1); /* and HPC_TRAIN_DATA, taken away */
    assert_null(value_of(&r, "HPC_TRAIN_DATA"));
    forget(&r);
    emit(config, HPCT_CLUSTER_FRAMEWORK_TORCH, "{}", &r, &dropped);
    assert_null(value_of(&r, "TF_CONFIG"));
    assert_null(value_of(&r, "JAX_PROCESS_ID"));
    assert_non_null(value_of(&r, "RANK"));
    forget(&r);
    emit(config, HPCT_CLUSTER_FRAMEWORK_MPI, "{}", &r, &dropped);
    assert_int_equal(r.count, 14);
    forget(&r);
    hpct_cluster_config_free(config);
}

static hpct_status parse_frameworks(const parse_case *c, char *got, size_t size)
{
    unsigned bits = 99;
    HPCT_TRY(hpct_cluster_frameworks_parse(c->text, &bits));
    snprintf(got, size, "%s%s%s%s", bits & HPCT_CLUSTER_FRAMEWORK_TF ? "tf " : "",
             bits & HPCT_CLUSTER_FRAMEWORK_TORCH ? "torch " : "",
             bits & HPCT_CLUSTER_FRAMEWORK_JAX ? "jax " : "",
             bits & HPCT_CLUSTER_FRAMEWORK_MPI ? "mpi " : "");
    assert_int_equal(bits & ~(unsigned) HPCT_CLUSTER_FRAMEWORK_ALL, 0);
    return HPCT_OK;
}

TEST(frameworks_are_parsed)
{
    static const parse_case cases[] = {
        {"tf,jax", HPCT_OK, "tf jax "},
        {"none", HPCT_OK, ""},
        {"all", HPCT_OK, "tf torch jax mpi "},
        {"", HPCT_ERR_USAGE},
        {"tf,", HPCT_ERR_USAGE},
        {"keras", HPCT_ERR_USAGE},
        {"tf,,jax", HPCT_ERR_USAGE},
        {"TF", HPCT_ERR_USAGE},
        {"tf torch", HPCT_ERR_USAGE},
    };
    RUN_CASES(parse_frameworks, cases);
}

/* 10,000 nodes x 8 tasks: the variable and TF_CONFIG are left out, the file has everything. */
TEST(variables_too_long_for_exec_are_left_out)
{
    hpct_cluster cluster;
    hpct_cluster_config *config = NULL, *again = NULL;
    char *json = NULL;
    received r;
    const char *dropped = NULL;
    hpct_cluster_environment *step =
        ENV("SLURM_STEP_NODELIST=node[00001-10000]", "SLURM_STEP_TASKS_PER_NODE=8(x10000)",
            "SLURM_DISTRIBUTION=cyclic");
    assert_int_equal(hpct_cluster_from_slurm(step, 80000, &cluster), HPCT_OK);
    assert_int_equal(hpct_cluster_set_ports(&cluster, step, NULL, hpct_cluster_port_range_default(),
                                            1, 0, 0, NULL),
                     HPCT_OK);
    assert_int_equal(hpct_cluster_config_of(&cluster, 79999, 1, 0, NULL, NULL, &config), HPCT_OK);
    assert_int_equal(hpct_cluster_config_to_json(config, &json), HPCT_OK);
    assert_true(strlen(json) > HPCT_CLUSTER_MAX_VARIABLE);
    emit(config, HPCT_CLUSTER_FRAMEWORK_ALL, json, &r, &dropped);
    assert_null(value_of(&r, "HPC_TRAIN_CONFIG"));
    assert_null(value_of(&r, "TF_CONFIG"));
    assert_string_equal(dropped, "TF_CONFIG");
    assert_string_equal(value_of(&r, "RANK"), "79999");
    forget(&r);
    assert_int_equal(hpct_cluster_config_from_json(json, strlen(json), "x", &again), HPCT_OK);
    assert_string_equal(again->nodes[9999].name, "node10000");
    hpct_cluster_config_free(again);
    hpct_cluster_config_free(config);
    hpct_cluster_free(&cluster);
    free(json);
}

/* ---- reading, by launcher ---- */

TEST(config_of_the_plugin_overrides_slurm)
{
    char variable[sizeof design_json + 32], path[] = "/tmp/hpc-train-config.XXXXXX", file[64];
    hpct_cluster_config *config = NULL;
    snprintf(variable, sizeof variable, "HPC_TRAIN_CONFIG=%s", design_json);
    assert_int_equal(hpct_cluster_config_read_from(ENV(variable, "SLURM_PROCID=x"), &config),
                     HPCT_OK);
    assert_int_equal(config->source, HPCT_CLUSTER_CONFIG_PLUGIN);
    assert_int_equal(config->rank, 2);
    hpct_cluster_config_free(config);

    int fd = mkstemp(path);
    assert_int_equal(write(fd, design_json, strlen(design_json)), strlen(design_json));
    close(fd);
    snprintf(file, sizeof file, "HPC_TRAIN_CONFIG_FILE=%s", path);
    assert_int_equal(hpct_cluster_config_read_from(ENV(file, "HPC_TRAIN_CONFIG="), &config),
                     HPCT_OK);
    assert_string_equal(config->addresses[1], "node0:22001");
    hpct_cluster_config_free(config);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(hpct_cluster_config_read_from(ENV(file), &config), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), path));
    unlink(path);
    assert_int_equal(hpct_cluster_config_read_from(ENV(file), &config), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), path));
    assert_int_equal(hpct_cluster_config_read_from(ENV("HPC_TRAIN_CONFIG_FILE=/tmp"), &config),
                     HPCT_ERR_CONFIG);
}

TEST(config_from_slurm_variables)
{
    hpct_cluster_config *config = NULL;
    assert_int_equal(
        hpct_cluster_config_read_from(ENV(STEP, TASK2, "SLURM_TMPDIR=/scratch/42"), &config),
        HPCT_OK);
    assert_int_equal(config->source, HPCT_CLUSTER_CONFIG_SLURM);
    assert_int_equal(config->rank, 2);
    assert_int_equal(config->node_rank, 1);
    assert_int_equal(config->local_size, 2);
    assert_string_equal(config->job, "42.0");
    assert_string_equal(config->tmpdir, "/scratch/42");
    assert_string_equal(config->addresses[2], "node1:30304"); /* block 161 of 199 */
    hpct_cluster_config_free(config);
}

/* Rank 2's environment, with one variable before all others. */
static hpct_status read_with_variable(const parse_case *c, char *got, size_t size)
{
    hpct_cluster_config *config = NULL;
    return hpct_cluster_config_read_from(ENV(c->text, STEP, TASK2), &config);
}

TEST(invalid_slurm_variables_are_named)
{
    static const parse_case cases[] = {
        {"SLURM_PROCID=-1", HPCT_ERR_CONFIG, "SLURM_PROCID"},
        {"SLURM_PROCID=4", HPCT_ERR_CONFIG, "do not agree"},
        {"SLURM_PROCID=3", HPCT_ERR_CONFIG, "Slurm placed rank 3"},
        {"SLURM_NODEID=0", HPCT_ERR_CONFIG, "Slurm placed rank 2"},
        {"SLURM_LOCALID=1", HPCT_ERR_CONFIG, "Slurm placed rank 2"},
        {"SLURM_STEP_NUM_TASKS=5", HPCT_ERR_CONFIG, "do not agree"},
        {"SLURM_STEP_NODELIST=node[0-", HPCT_ERR_CONFIG, "SLURM_STEP_NODELIST"},
        {"SLURM_STEP_TASKS_PER_NODE=2(x3)", HPCT_ERR_CONFIG, "SLURM_STEP_TASKS_PER_NODE"},
        {"SLURM_DISTRIBUTION=hyper", HPCT_ERR_CONFIG, "SLURM_DISTRIBUTION"},
        {"SLURM_DISTRIBUTION=arbitrary", HPCT_ERR_CONFIG, "SLURM_HOSTFILE"},
        {"SLURM_STEP_ID=x", HPCT_ERR_CONFIG, "SLURM_STEP_ID"},
        {"SLURM_JOB_ID=99999999999", HPCT_ERR_CONFIG, "SLURM_JOB_ID"},
        {"SLURM_STEP_RESV_PORTS=a", HPCT_ERR_CONFIG, "SLURM_STEP_RESV_PORTS"},
    };
    RUN_CASES(read_with_variable, cases);
}

TEST(a_list_gives_arbitrary_placement)
{
    hpct_cluster_config *config = NULL;
    assert_int_equal(
        hpct_cluster_config_read_from(ENV("SLURM_DISTRIBUTION=arbitrary",
                                          "SLURM_ARBITRARY_NODELIST=node1,node1,node0,node0",
                                          "SLURM_NODEID=0", STEP, TASK2),
                                      &config),
        HPCT_OK);
    assert_int_equal(strncmp(config->addresses[0], "node1:", 6), 0);
    assert_int_equal(strncmp(config->addresses[2], "node0:", 6), 0);
    hpct_cluster_config_free(config);
    assert_int_equal(
        hpct_cluster_config_read_from(ENV("SLURM_DISTRIBUTION=arbitrary",
                                          "SLURM_ARBITRARY_NODELIST=node1,node0", STEP, TASK2),
                                      &config),
        HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "SLURM_ARBITRARY_NODELIST names 2 hosts"));
}

TEST(hostfile_gives_arbitrary_placement)
{
    char path[] = "/tmp/hpc-train-hosts.XXXXXX", variable[64];
    int fd = mkstemp(path);
    hpct_cluster_config *config = NULL;
    dprintf(fd, "# hosts\nnode1*2 # twice\nnode[0]\n\nnode0\n");
    snprintf(variable, sizeof variable, "SLURM_HOSTFILE=%s", path);
    assert_int_equal(
        hpct_cluster_config_read_from(
            ENV("SLURM_DISTRIBUTION=arbitrary", variable, "SLURM_NODEID=0", STEP, TASK2), &config),
        HPCT_OK);
    assert_int_equal(strncmp(config->addresses[0], "node1:", 6), 0);
    assert_int_equal(strncmp(config->addresses[2], "node0:", 6), 0);
    hpct_cluster_config_free(config);
    assert_int_equal(ftruncate(fd, 20), 0);
    assert_int_equal(hpct_cluster_config_read_from(
                         ENV("SLURM_DISTRIBUTION=arbitrary", variable, STEP, TASK2), &config),
                     HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), path));
    assert_int_equal(pwrite(fd, "host9\n", 6, 0), 6);
    assert_int_equal(hpct_cluster_config_read_from(
                         ENV("SLURM_DISTRIBUTION=arbitrary", variable, STEP, TASK2), &config),
                     HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "host9"));
    close(fd);
    unlink(path);
}

TEST(reserved_ports_are_preferred)
{
    hpct_cluster_config *config = NULL;
    assert_int_equal(hpct_cluster_config_read_from(
                         ENV("SLURM_STEP_RESV_PORTS=12000,12007", STEP, TASK2), &config),
                     HPCT_OK);
    assert_string_equal(config->addresses[3], "node1:12007");
    hpct_cluster_config_free(config);
    /* too few for two tasks on a node */
    assert_int_equal(
        hpct_cluster_config_read_from(ENV("SLURM_STEP_RESV_PORTS=12000", STEP, TASK2), &config),
        HPCT_OK);
    assert_int_not_equal(strncmp(config->addresses[0], "node0:12000", 11), 0);
    hpct_cluster_config_free(config);
}

TEST(mpirun_overrides_slurm_and_one_process_needs_neither)
{
    char variable[sizeof design_json + 32];
    hpct_cluster_config *config = NULL;
    snprintf(variable, sizeof variable, "HPC_TRAIN_CONFIG=%s", design_json);
#define MPIRUN                                                                                     \
    "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_LOCAL_RANK=1",            \
        "OMPI_COMM_WORLD_LOCAL_SIZE=2"
    assert_int_equal(hpct_cluster_config_read_from(ENV(MPIRUN), &config), HPCT_OK);
    assert_int_equal(config->source, HPCT_CLUSTER_CONFIG_MPI);
    assert_int_equal(config->rank, 1);
    assert_int_equal(config->size, 3);
    assert_int_equal(config->local_size, 2);
    assert_null(config->addresses);
    hpct_cluster_config_free(config);
    /* inside a step that started mpirun's daemons */
    assert_int_equal(hpct_cluster_config_read_from(ENV(MPIRUN, variable, STEP, TASK2), &config),
                     HPCT_OK);
    assert_int_equal(config->source, HPCT_CLUSTER_CONFIG_MPI);
    assert_int_equal(config->size, 3);
    hpct_cluster_config_free(config);
    assert_int_equal(hpct_cluster_config_read_from(ENV("OMPI_COMM_WORLD_RANK=3", MPIRUN), &config),
                     HPCT_ERR_CONFIG);
    assert_int_equal(hpct_cluster_config_read_from(ENV("PMI_RANK=1", "PMI_SIZE=2"), &config),
                     HPCT_OK);
    assert_int_equal(config->source, HPCT_CLUSTER_CONFIG_MPI);
    assert_int_equal(config->size, 2);
    hpct_cluster_config_free(config);
    /* a batch script: a process id, but no step */
    assert_int_equal(hpct_cluster_config_read_from(
                         ENV("SLURM_JOB_ID=1", "SLURM_PROCID=0", "HPC_TRAIN_DATA=/d"), &config),
                     HPCT_OK);
    assert_int_equal(config->source, HPCT_CLUSTER_CONFIG_ALONE);
    assert_int_equal(config->size, 1);
    assert_string_equal(config->data, "/d");
    hpct_cluster_config_free(config);
}
