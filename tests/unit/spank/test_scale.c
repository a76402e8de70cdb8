/* 10,000 nodes with 8 tasks each: what one task does before its program starts, in the plugin's own
 * code, in how much memory (make check-long: and time); and that the kernel starts a program with
 * what it sets. */
#include "base/cluster/variables.h"
#include "base/status.h"
#include "spank/describe.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NODES = 10000, EACH = 8, RANKS = NODES * EACH, MAX_VARIABLES = 64 };

static const char *const step[] = {"SLURM_STEP_NODELIST=rack[01-20]-node[001-500]",
                                   "SLURM_STEP_TASKS_PER_NODE=8(x10000)",
                                   "SLURM_DISTRIBUTION=cyclic",
                                   "SLURMD_NODENAME=rack20-node500",
                                   "CUDA_VISIBLE_DEVICES=0,1,2,3",
                                   NULL};

static const char *get(void *context, const char *name)
{
    size_t size = strlen(name);
    for (const char *const *entry = step; *entry != NULL; entry++) {
        if (strncmp(*entry, name, size) == 0 && (*entry)[size] == '=')
            return *entry + size + 1;
    }
    return NULL;
}

static char *address_of(const char *node)
{
    return strdup(node); /* Slurm's configuration names them as they are called */
}

typedef struct environment {
    char *list[MAX_VARIABLES + 1];
    int count;
} environment;

static hpct_status set(void *context, const char *name, const char *value)
{
    environment *e = context;
    if (value == NULL)
        return HPCT_OK;
    size_t size = strlen(name) + 1 + strlen(value) + 1;
    assert_true(e->count < MAX_VARIABLES);
    e->list[e->count] = malloc(size);
    snprintf(e->list[e->count++], size, "%s=%s", name, value);
    return HPCT_OK;
}

/* All that a task does, as spank/task.c does it. `most` receives the bytes in use at the end. */
static void prepare(const char *folder, uint32_t rank, environment *e, char **file, char **json,
                    size_t *most)
{
    hpct_cluster_environment of_step = {.get = get};
    hpct_spank_choices choices = {.frameworks = HPCT_CLUSTER_FRAMEWORK_ALL};
    hpct_spank_settings settings;
    hpct_spank_team_facts team = {0};
    hpct_cluster_config *config = NULL;
    const char *dropped = NULL;
    hpct_spank_task_facts facts = {.job = 42,
                                   .rank = rank,
                                   .local_rank = rank / NODES,
                                   .node = rank % NODES,
                                   .local_tasks = EACH,
                                   .total_tasks = RANKS,
                                   .tmpdir = folder,
                                   .address_of = address_of};
    assert_int_equal(hpct_spank_settings_read(0, NULL, &settings), HPCT_OK);
    assert_int_equal(
        hpct_spank_task_describe(&facts, &choices, &settings, &of_step, &team, &config), HPCT_OK);
    assert_int_equal(hpct_cluster_config_to_json(config, json), HPCT_OK);
    char name[32];
    snprintf(name, sizeof name, "config.0.%u.json", rank);
    assert_int_equal(hpct_spank_private_write(folder, name, *json, file), HPCT_OK);
    assert_int_equal(
        hpct_cluster_variables_emit(config, choices.frameworks, *json, *file, set, e, &dropped),
        HPCT_OK);
    assert_string_equal(dropped, "TF_CONFIG");
    *most = mallinfo2().uordblks + mallinfo2().hblkhd;
    hpct_cluster_config_free(config);
    hpct_spank_settings_free(&settings);
}

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

/* kB, from /proc/self/status. */
static long status_of(const char *key)
{
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), ": %ld", &value);
    }
    if (file != NULL)
        fclose(file);
    return value;
}

static void forget(environment *e)
{
    while (e->count > 0)
        free(e->list[--e->count]);
}

static int start_with(environment *e)
{
    int state = -1;
    pid_t child = fork();
    if (child == 0) {
        char name[] = "true", *arguments[] = {name, NULL};
        e->list[e->count] = NULL;
        execve("/bin/true", arguments, e->list);
        _exit(errno);
    }
    assert_int_equal(waitpid(child, &state, 0), child);
    return state;
}

TEST(a_step_of_eighty_thousand)
{
    char folder[] = "/tmp/hpc-train-scale.XXXXXX", command[64], *file = NULL, *json = NULL;
    environment e = {0};
    size_t heap = 0;
    double best = 1e9;
    struct stat info;
    hpct_cluster_config *again = NULL;
    assert_non_null(mkdtemp(folder));
    long before = status_of("VmRSS");
    for (int i = 0; i < 5; i++) {
        double start = milliseconds();
        prepare(folder, RANKS - 1, &e, &file, &json, &heap);
        double took = milliseconds() - start;
        best = took < best ? took : best;
        if (i < 4) {
            forget(&e);
            free(file);
            free(json);
        }
    }
    long peak = status_of("VmHWM") - before;
    print_message("# %.1f ms of processor time, %.1f MB at most, %zu bytes of JSON\n", best,
                  (double) peak / 1024, strlen(json));
    assert_true(getenv("HPC_TRAIN_LONG") == NULL || best < 100); /* on a quiet machine */
    assert_true(peak < 64 * 1024);
    /* the file is complete, the variables are not too long, and a program starts with them */
    assert_int_equal(stat(file, &info), 0);
    assert_int_equal((size_t) info.st_size, strlen(json));
    assert_int_equal(hpct_cluster_config_from_json(json, strlen(json), file, &again), HPCT_OK);
    assert_int_equal(again->size, RANKS);
    assert_int_equal(again->node_rank, NODES - 1);
    assert_int_equal(again->local_rank, EACH - 1);
    assert_true(strncmp(again->addresses[RANKS - 1], "rack20-node500:", 15) == 0);
    hpct_cluster_config_free(again);
    for (int i = 0; i < e.count; i++)
        assert_true(strncmp(e.list[i], "HPC_TRAIN_CONFIG=", 17) != 0 &&
                    strncmp(e.list[i], "TF_CONFIG=", 10) != 0);
    assert_int_equal(start_with(&e), 0);
    forget(&e);
    free(file);
    free(json);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* The largest that are still set: both texts just below their bounds. */
TEST(the_kernel_takes_the_largest_variables)
{
    environment e = {0};
    char *json = malloc(HPCT_CLUSTER_MAX_CONFIG_VARIABLE + 1),
         *tf = malloc(HPCT_CLUSTER_MAX_VARIABLE);
    memset(json, 'x', HPCT_CLUSTER_MAX_CONFIG_VARIABLE);
    json[HPCT_CLUSTER_MAX_CONFIG_VARIABLE] = '\0';
    size_t room = HPCT_CLUSTER_MAX_VARIABLE - strlen("TF_CONFIG=") - 2;
    memset(tf, 'x', room);
    tf[room] = '\0';
    set(&e, "HPC_TRAIN_CONFIG", json);
    set(&e, "TF_CONFIG", tf);
    assert_int_equal(strlen(e.list[1]) + 1, HPCT_CLUSTER_MAX_VARIABLE - 1);
    assert_int_equal(start_with(&e), 0);
    forget(&e);
    free(json);
    free(tf);
}
