/* spank/options: values on the command line, in the environment, by default. */
#include "base/cluster/variables.h"
#include "spank/options.h"
#include "tests/unit/cases.h"
#include "tests/unit/environment.h"
#include "tests/unit/spank/words.h"

static void free_options(hpct_spank_options *options)
{
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++)
        free(options->values[i]);
    *options = (hpct_spank_options){0};
}

/* "--hpc-train-port=22000 ..." */
static void set_options(hpct_spank_options *options, const char *line)
{
    words w;
    for (char *const *word = split_words(&w, line); *word != NULL; word++) {
        size_t length = strcspn(*word + 2, "=");
        int i = 0;
        while (strncmp(hpct_spank_option_table[i].name, *word + 2, length) != 0 ||
               hpct_spank_option_table[i].name[length] != '\0')
            assert_true(++i < HPCT_SPANK_NUM_OPTIONS);
        hpct_spank_options_set(options, (hpct_spank_option) i,
                               (*word)[2 + length] == '=' ? *word + 3 + length : NULL);
    }
}

/* Text: the command line; number: the administrator's default; with: the environment. */
static hpct_status resolve_on(const parse_case *c, char *got, size_t size)
{
    hpct_spank_options options = {0};
    hpct_spank_choices choices = {0};
    set_options(&options, c->text);
    HPCT_TRY(hpct_spank_options_resolve(&options, c->with, c->number != 0, &choices));
    snprintf(got, size, "%s", choices.on ? "on" : "off");
    hpct_spank_choices_free(&choices);
    free_options(&options);
    return HPCT_OK;
}

TEST(command_line_overrides_environment_overrides_default)
{
    const parse_case cases[] = {
        {"", HPCT_OK, "off", false, NO_ENV},
        {"", HPCT_OK, "on", true, NO_ENV},
        {"--hpc-train=on", HPCT_OK, "on", false, NO_ENV},
        {"--hpc-train", HPCT_OK, "on", false, NO_ENV},
        {"--hpc-train=off", HPCT_OK, "off", true, NO_ENV},
        {"--hpc-train-port=22000", HPCT_OK, "on", false, NO_ENV}, /* implied */
        {"--hpc-train=off --hpc-train-port=22000", HPCT_OK, "off", false, NO_ENV},
        {"", HPCT_OK, "on", false, ENV("HPC_TRAIN=on")},
        {"", HPCT_OK, "off", true, ENV("HPC_TRAIN=off")},
        {"", HPCT_OK, "on", false, ENV("HPC_TRAIN_STAGE=/data")},
        {"", HPCT_OK, "off", false, ENV("HPC_TRAIN_STAGE=")},
        {"", HPCT_OK, "off", true, ENV("HPC_TRAIN=off", "HPC_TRAIN_STAGE=/data")},
        {"--hpc-train-port=22000", HPCT_OK, "on", false, ENV("HPC_TRAIN=off")},
        {"--hpc-train=off", HPCT_OK, "off", true, ENV("HPC_TRAIN=on")},
        {"--hpc-train=on", HPCT_OK, "on", false, ENV("HPC_TRAIN=off")},
    };
    RUN_CASES(resolve_on, cases);
}

TEST(unset_values_come_from_the_environment_or_defaults)
{
    hpct_spank_options options = {0};
    hpct_spank_choices choices = {0};
    hpct_cluster_environment *environment =
        ENV("HPC_TRAIN_PORT=21000", "HPC_TRAIN_ENV=jax", "HPC_TRAIN_BIND=map:0",
            "HPC_TRAIN_STAGE=/a:b,/c", "HPC_TRAIN_HIDE=on");
    hpct_spank_options_set(&options, HPCT_SPANK_OPTION_PORT, "22000");
    hpct_spank_options_set(&options, HPCT_SPANK_OPTION_PORT, "23000-24000"); /* the last one */
    hpct_spank_options_set(&options, HPCT_SPANK_OPTION_ENV, "tf");
    assert_int_equal(hpct_spank_options_resolve(&options, environment, false, &choices), HPCT_OK);
    assert_true(choices.has_port);
    assert_int_equal(choices.port.low, 23000);
    assert_int_equal(choices.frameworks, HPCT_CLUSTER_FRAMEWORK_TF);
    assert_int_equal(choices.bind.kind, HPCT_SPANK_GPU_BIND_MAP);
    assert_true(choices.hide);
    assert_int_equal(choices.stage.count, 2);
    assert_string_equal(choices.stage.entries[0].dst, "b");
    assert_string_equal(choices.stage.entries[1].dst, "c");
    hpct_spank_choices_free(&choices);
    free_options(&options);
    assert_int_equal(hpct_spank_options_resolve(&options, NO_ENV, true, &choices), HPCT_OK);
    assert_int_equal(choices.frameworks, HPCT_CLUSTER_FRAMEWORK_ALL);
    assert_int_equal(choices.bind.kind, HPCT_SPANK_GPU_BIND_CLOSEST);
    assert_false(choices.bind.asked);
    assert_false(choices.has_port || choices.hide);
    hpct_spank_choices_free(&choices);
}

/* Number: the option. */
static hpct_status check_option(const parse_case *c, char *got, size_t size)
{
    return hpct_spank_option_check((hpct_spank_option) c->number, c->text);
}

TEST(invalid_values_are_rejected)
{
#define WRONG(option, text, words)                                                                 \
    {                                                                                              \
        text, HPCT_ERR_USAGE, words, HPCT_SPANK_OPTION_##option                                    \
    }
    static const parse_case cases[] = {
        WRONG(ON, "maybe", "--hpc-train: 'maybe'"),
        WRONG(ENV, "tf,keras", "--hpc-train-env: 'keras'"),
        WRONG(ENV, "", "--hpc-train-env"),
        WRONG(PORT, "80", "--hpc-train-port: '80'"),
        WRONG(PORT, "", "--hpc-train-port"),
        WRONG(ROLES, "boss", "--hpc-train-roles: 'boss' is not a role"),
        WRONG(BIND, "nearest", "--hpc-train-bind: 'nearest'"),
        WRONG(BIND, "map:", "--hpc-train-bind"),
        WRONG(BIND, "map:0,,1", "--hpc-train-bind"),
        WRONG(BIND, "map:-1", "--hpc-train-bind"),
        WRONG(NETWORK, "", "--hpc-train-network: '' is not a network"),
        WRONG(NETWORK, "eth0,10.0.0.0/8", "--hpc-train-network"),
        WRONG(HIDE, "yes", "--hpc-train-hide"),
        WRONG(REQUEUE, "0", "--hpc-train-requeue: '0' is not a number from 1 to 1000"),
        WRONG(REQUEUE, "1001", "--hpc-train-requeue"),
        WRONG(REQUEUE, "ten", "--hpc-train-requeue"),
        WRONG(STAGE, "", "without a source"),
        WRONG(STAGE, "/a,~/b:c", "no shell replaces '~'"),
        WRONG(STAGE_OUT, "a:~/b", "no shell replaces '~'"),
        WRONG(STAGE_OUT, "a:$HOME/b", "no shell replaces '$'"),
        WRONG(STAGE_OUT, "res:/shared/out-${SLURM_JOB_ID}/r", "no shell replaces '$'"),
        WRONG(STAGE_OUT, "res:/shared/out-${SLURM_JOB_ID}/r", "%j for the job"),
        WRONG(STAGE_OUT, "$name:/b", "no shell replaces '$'"),
        WRONG(STAGE_OUT, "a:/b/`date`", "no shell replaces '`'"),
        WRONG(STAGE_OUT, "a:~you/b", "no shell replaces '~'"),
        WRONG(STAGE, "/data/$SET", "no shell replaces '$'"),
        WRONG(STAGE, "/data/$1", "no shell replaces '$'"),
        WRONG(STAGE, "/data/$(pwd)", "no shell replaces '$'"),
        WRONG(STAGE, "/data:in-$USER", "no shell replaces '$'"),
        WRONG(STAGE, "/data/`pwd`", "write the whole path"),
        WRONG(STAGE, "http://example.com/x.tar", "'http://example.com/x.tar' is an address"),
        WRONG(STAGE, "/a,s3://bucket/x:b", "'s3://bucket/x:b' is an address"),
        WRONG(STAGE, "gs://bucket/x/", "such as curl, aws or rclone"),
        WRONG(STAGE, "file:///data", "is an address"),
        WRONG(STAGE_OUT, "https://example.com/x:/b", "is an address"),
        WRONG(STAGE_OUT, "res:s3://bucket/%j", "'s3://bucket/%j' is an address or on"),
        WRONG(STAGE_OUT, "res:me@host:/x", "write './me@host:/x' for a name with a colon"),
        WRONG(STAGE_OUT, "*/model.pt:/b", "only be behind the last slash"),
        WRONG(STAGE_OUT, "**/*.pt:/b", "only be behind the last slash"),
        WRONG(STAGE_OUT, "run[12]/x:/b", "only be behind the last slash"),
        WRONG(STAGE_OUT, "../*:/b", "below $SLURM_TMPDIR"),
        WRONG(STAGE_OUT, "a:/b-%A_%x", "'%x' in '/b-%A_%x' stands for nothing"),
        WRONG(STAGE, "/a,,/b", "without a source"),
        WRONG(STAGE, "/a:../b", "below $SLURM_TMPDIR"),
        WRONG(STAGE, "/a:/b", "below $SLURM_TMPDIR"),
        WRONG(STAGE, "/a:b//c", "below $SLURM_TMPDIR"),
        WRONG(STAGE, "/a:", "below $SLURM_TMPDIR"),
        WRONG(STAGE, "/", "below $SLURM_TMPDIR"),
        WRONG(STAGE, "..", "below $SLURM_TMPDIR"),
        WRONG(STAGE, "/a:.hpc-train/x", "kept for hpc-train"),
        WRONG(STAGE, "/a/x,/b/x", "would both be put at 'x'"),
        WRONG(STAGE, "/data\r", "ends with a carriage return"),
        WRONG(STAGE_OUT, "a:/b\r", "ends with a carriage return"),
        WRONG(STAGE, "/a:x,/b:x/y", "would both be put at 'x'"),
        {NULL, HPCT_OK, NULL, HPCT_SPANK_OPTION_ON},
        {NULL, HPCT_OK, NULL, HPCT_SPANK_OPTION_HIDE},
        /* as Slurm hands an option without a value on to the steps of a job */
        {"(null)", HPCT_OK, NULL, HPCT_SPANK_OPTION_ON},
        {"(null)", HPCT_OK, NULL, HPCT_SPANK_OPTION_HIDE},
        /* no shell would have expanded these */
        {"/a/b~,/a$/c$.d,/e\\:f", HPCT_OK, NULL, HPCT_SPANK_OPTION_STAGE},
    };
    RUN_CASES(check_option, cases);
}

TEST(errors_name_the_variable)
{
    hpct_spank_options options = {0};
    hpct_spank_choices choices = {0};
    assert_int_equal(hpct_spank_options_resolve(&options, ENV("HPC_TRAIN_PORT=x"), false, &choices),
                     HPCT_ERR_USAGE);
    assert_int_equal(strncmp(hpct_last_error(), "HPC_TRAIN_PORT: ", 16), 0);
}

TEST(hide_conflicts_with_bind_none)
{
    hpct_spank_options options = {0};
    hpct_spank_choices choices = {0};
    hpct_cluster_environment *environment = ENV("HPC_TRAIN_BIND=none");
    hpct_spank_options_set(&options, HPCT_SPANK_OPTION_HIDE, NULL);
    assert_int_equal(hpct_spank_options_resolve(&options, environment, false, &choices),
                     HPCT_ERR_USAGE);
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-hide"));
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-bind=none"));
    free_options(&options);
}
