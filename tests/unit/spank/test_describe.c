/* spank/describe: the config of one task, and its file. */
#include "spank/describe.h"
#include "spank/options.h"
#include "spank/settings.h"
#include "tests/unit/cases.h"
#include "tests/unit/environment.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP                                                                                       \
    "SLURM_STEP_NODELIST=node[0-1]", "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_DISTRIBUTION=cyclic"

static hpct_status describe(const hpct_cluster_environment *environment,
                            hpct_spank_task_facts facts, const char *stage,
                            hpct_cluster_config **config)
{
    hpct_spank_options options = {0};
    hpct_spank_choices choices = {0};
    hpct_spank_settings settings;
    hpct_spank_team_facts team = {0};
    if (stage != NULL)
        hpct_spank_options_set(&options, HPCT_SPANK_OPTION_STAGE, stage);
    assert_int_equal(hpct_spank_settings_read(0, NULL, &settings), HPCT_OK);
    assert_int_equal(hpct_spank_options_resolve(&options, environment, true, &choices), HPCT_OK);
    facts.tmpdir = "/tmp/hpc-train/42";
    hpct_status status =
        hpct_spank_task_describe(&facts, &choices, &settings, environment, &team, config);
    free(team.hosts);
    hpct_spank_choices_free(&choices);
    hpct_spank_settings_free(&settings);
    free(options.values[HPCT_SPANK_OPTION_STAGE]);
    return status;
}

static const hpct_spank_task_facts task3 = {
    .job = 42, .rank = 3, .local_rank = 1, .node = 1, .local_tasks = 2, .total_tasks = 4};

TEST(task_config_has_gpu_data_and_tmpdir)
{
    hpct_cluster_config *config = NULL;
    assert_int_equal(describe(ENV(STEP, "SLURMD_NODENAME=node1", "CUDA_VISIBLE_DEVICES=0,1"), task3,
                              "/data/mnist:d/m,/x", &config),
                     HPCT_OK);
    assert_string_equal(config->gpu, "1");
    assert_int_equal(config->nodes[0].gpus, 2);
    assert_string_equal(config->data, "/tmp/hpc-train/42/d/m");
    assert_string_equal(config->tmpdir, "/tmp/hpc-train/42");
    assert_string_equal(config->job, "42.0");
    assert_int_equal(config->local_rank, 1);
    hpct_cluster_config_free(config);
    assert_int_equal(describe(ENV(STEP), task3, NULL, &config), HPCT_OK);
    assert_null(config->data);
    assert_null(config->gpu);
    hpct_cluster_config_free(config);
}

TEST(layouts_that_slurm_contradicts_are_rejected)
{
    hpct_cluster_config *config = NULL;
    hpct_spank_task_facts facts = task3;
    facts.node = 0;
    assert_int_equal(describe(ENV(STEP), facts, NULL, &config), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "use --distribution=block"));
    facts = task3;
    facts.local_rank = 0;
    assert_int_equal(describe(ENV(STEP), facts, NULL, &config), HPCT_ERR_CONFIG);
    facts = task3;
    facts.local_tasks = 3;
    assert_int_equal(describe(ENV(STEP), facts, NULL, &config), HPCT_ERR_CONFIG);
    facts = task3;
    facts.total_tasks = 5;
    assert_int_equal(describe(ENV(STEP), facts, NULL, &config), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "do not set SLURM_*"));
    assert_int_equal(describe(ENV(STEP, "SLURMD_NODENAME=node7"), task3, NULL, &config),
                     HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "node7"));
}

/* Text: HPC_TRAIN_STAGE_MODE; number: whether the nodes can prove who they are. */
static hpct_status stage_together(const parse_case *c, char *got, size_t size)
{
    char variable[64];
    hpct_spank_task_facts facts = task3;
    hpct_spank_choices choices = {0};
    hpct_spank_settings settings;
    hpct_spank_team_facts team = {0};
    hpct_spank_options options = {0};
    hpct_cluster_config *config = NULL;
    snprintf(variable, sizeof variable, "HPC_TRAIN_STAGE_MODE=%s", c->text);
    hpct_cluster_environment *environment = ENV(STEP, "HPC_TRAIN_STAGE=/data", variable);
    facts.trusted = c->number != 0;
    facts.tmpdir = "/tmp/hpc-train/42";
    assert_int_equal(hpct_spank_settings_read(0, NULL, &settings), HPCT_OK);
    assert_int_equal(hpct_spank_options_resolve(&options, environment, true, &choices), HPCT_OK);
    assert_int_equal(
        hpct_spank_task_describe(&facts, &choices, &settings, environment, &team, &config),
        HPCT_OK);
    snprintf(got, size, "%s", team.hosts != NULL ? "together" : "each");
    free(team.hosts);
    hpct_cluster_config_free(config);
    hpct_spank_choices_free(&choices);
    hpct_spank_settings_free(&settings);
    return HPCT_OK;
}

TEST(nodes_stage_together_if_trusted_or_asked)
{
    static const parse_case cases[] = {
        {"auto", HPCT_OK, "together", true},
        {"extract", HPCT_OK, "together", true},
        {"copy", HPCT_OK, "each", true},
        {"auto", HPCT_OK, "each", false},
        {"extract", HPCT_OK, "each", false},
        {"broadcast", HPCT_OK, "together", false},
        {"extract,broadcast", HPCT_OK, "together", false},
    };
    RUN_CASES(stage_together, cases);
}

/* SPANK counts within the component, the variables through all of them. */
TEST(task_config_of_a_heterogeneous_component)
{
    hpct_cluster_config *config = NULL;
    hpct_spank_task_facts second = {
        .job = 43, .rank = 1, .local_rank = 1, .node = 0, .local_tasks = 2, .total_tasks = 2};
    hpct_cluster_environment *step =
        ENV("SLURM_STEP_NODELIST=node[0-1]", "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_PROCID=3",
            "SLURM_NODEID=1", "SLURM_JOB_ID=42", "SLURMD_NODENAME=node0",
            "SLURM_PMIX_MAPPING_SERV=(vector,(1,1,2),(0,1,2))");
    assert_int_equal(describe(step, second, NULL, &config), HPCT_OK);
    assert_string_equal(config->job, "42.0");
    assert_int_equal(config->rank, 3);
    assert_int_equal(config->node_rank, 1);
    assert_int_equal(config->local_rank, 1);
    assert_string_equal(config->nodes[1].name, "node0");
    hpct_cluster_config_free(config);
    second.local_rank = 0;
    assert_int_equal(describe(step, second, NULL, &config), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "cannot be worked out"));
    second.local_rank = 1;
    second.rank = 4;
    assert_int_equal(describe(step, second, NULL, &config), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "of a component"));
}

TEST(config_file_is_written_with_mode_0600)
{
    char folder[] = "/tmp/hpc-train-write.XXXXXX", command[PATH_MAX], *path = NULL, text[64];
    struct stat info;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) { /* also over an earlier one */
        assert_int_equal(hpct_spank_private_write(folder, "config.3.7.json", "{\"a\":1}", &path),
                         HPCT_OK);
        assert_non_null(strstr(path, "/.hpc-train/config.3.7.json"));
        FILE *file = fopen(path, "r");
        assert_non_null(fgets(text, sizeof text, file));
        fclose(file);
        assert_string_equal(text, "{\"a\":1}");
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
        free(path);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(hpct_spank_private_write(folder, "config.3.7.json", "{}", &path), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), folder));
}
