/* spank: options, plugstack arguments, GPUs, sizes, and the config of one task. */
#include "spank/describe.h"
#include "spank/given.h"
#include "spank/nodes_asked.h"
#include "spank/options.h"
#include "spank/settings.h"
#include "spank/stage/bytes.h"
#include "tests/unit/unit.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/cluster/variables.h"

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
#define NO_ENV ENV(NULL)

static void free_options(hpct_options *options)
{
    for (int i = 0; i < HPCT_NUM_OPTIONS; i++)
        free(options->values[i]);
    *options = (hpct_options){0};
}

/* Whether it is on, given the command line ("option=value;…"), the environment and the default. */
static bool is_on(const hpct_option *given, const char *const *values, int count,
                  const hpct_environment *environment, bool by_default)
{
    hpct_options options = {0};
    hpct_choices choices = {0};
    for (int i = 0; i < count; i++)
        hpct_options_set(&options, given[i], values[i]);
    assert_int_equal(hpct_options_resolve(&options, environment, by_default, &choices), HPCT_OK);
    bool on = choices.on;
    hpct_choices_free(&choices);
    free_options(&options);
    return on;
}

static void the_nearest_word_decides(void **state)
{
    (void) state;
    const hpct_option on[] = {HPCT_OPTION_ON}, port[] = {HPCT_OPTION_PORT};
    const hpct_option both[] = {HPCT_OPTION_ON, HPCT_OPTION_PORT};
    const char *const yes[] = {"on"}, *const no[] = {"off"}, *const bare[] = {NULL};
    const char *const number[] = {"22000"}, *const off_and_port[] = {"off", "22000"};
    assert_false(is_on(NULL, NULL, 0, NO_ENV, false));
    assert_true(is_on(NULL, NULL, 0, NO_ENV, true));
    assert_true(is_on(on, yes, 1, NO_ENV, false));
    assert_true(is_on(on, bare, 1, NO_ENV, false));
    assert_false(is_on(on, no, 1, NO_ENV, true));
    assert_true(is_on(port, number, 1, NO_ENV, false)); /* implied */
    assert_false(is_on(both, off_and_port, 2, NO_ENV, false));
    assert_true(is_on(NULL, NULL, 0, ENV("HPC_TRAIN=on"), false));
    assert_false(is_on(NULL, NULL, 0, ENV("HPC_TRAIN=off"), true));
    assert_true(is_on(NULL, NULL, 0, ENV("HPC_TRAIN_STAGE=/data"), false));
    assert_false(is_on(NULL, NULL, 0, ENV("HPC_TRAIN_STAGE="), false));
    assert_false(is_on(NULL, NULL, 0, ENV("HPC_TRAIN=off", "HPC_TRAIN_STAGE=/data"), true));
    assert_true(is_on(port, number, 1, ENV("HPC_TRAIN=off"), false));
    assert_false(is_on(on, no, 1, ENV("HPC_TRAIN=on"), true));
    assert_true(is_on(on, yes, 1, ENV("HPC_TRAIN=off"), false));
}

static void the_command_line_wins_over_the_environment(void **state)
{
    (void) state;
    hpct_options options = {0};
    hpct_choices choices = {0};
    hpct_environment *environment =
        ENV("HPC_TRAIN_PORT=21000", "HPC_TRAIN_ENV=jax", "HPC_TRAIN_BIND=map:0",
            "HPC_TRAIN_STAGE=/a:b,/c", "HPC_TRAIN_HIDE=on");
    hpct_options_set(&options, HPCT_OPTION_PORT, "22000");
    hpct_options_set(&options, HPCT_OPTION_PORT, "23000-24000"); /* the last one */
    hpct_options_set(&options, HPCT_OPTION_ENV, "tf");
    assert_int_equal(hpct_options_resolve(&options, environment, false, &choices), HPCT_OK);
    assert_true(choices.has_port);
    assert_int_equal(choices.port.low, 23000);
    assert_int_equal(choices.frameworks, HPCT_FRAMEWORK_TF);
    assert_int_equal(choices.bind.kind, HPCT_GPU_BIND_MAP);
    assert_true(choices.hide);
    assert_int_equal(choices.stage.count, 2);
    assert_string_equal(choices.stage.entries[0].dst, "b");
    assert_string_equal(choices.stage.entries[1].dst, "c");
    hpct_choices_free(&choices);
    free_options(&options);
    assert_int_equal(hpct_options_resolve(&options, NO_ENV, true, &choices), HPCT_OK);
    assert_int_equal(choices.frameworks, HPCT_FRAMEWORK_ALL);
    assert_int_equal(choices.bind.kind, HPCT_GPU_BIND_CLOSEST);
    assert_false(choices.bind.asked);
    assert_false(choices.has_port || choices.hide);
    hpct_choices_free(&choices);
}

static void bad_values_are_named(void **state)
{
    (void) state;
    static const struct {
        hpct_option option;
        const char *value, *says;
    } cases[] = {
        {HPCT_OPTION_ON, "maybe", "--hpc-train: 'maybe'"},
        {HPCT_OPTION_ENV, "tf,keras", "--hpc-train-env: 'keras'"},
        {HPCT_OPTION_ENV, "", "--hpc-train-env"},
        {HPCT_OPTION_PORT, "80", "--hpc-train-port: '80'"},
        {HPCT_OPTION_PORT, "", "--hpc-train-port"},
        {HPCT_OPTION_ROLES, "boss", "--hpc-train-roles: 'boss' is no role"},
        {HPCT_OPTION_BIND, "nearest", "--hpc-train-bind: 'nearest'"},
        {HPCT_OPTION_BIND, "map:", "--hpc-train-bind"},
        {HPCT_OPTION_BIND, "map:0,,1", "--hpc-train-bind"},
        {HPCT_OPTION_BIND, "map:-1", "--hpc-train-bind"},
        {HPCT_OPTION_HIDE, "yes", "--hpc-train-hide"},
        {HPCT_OPTION_STAGE, "", "without a source"},
        {HPCT_OPTION_STAGE, "/a,~/b:c", "no shell replaces '~'"},
        {HPCT_OPTION_STAGE_OUT, "a:~/b", "no shell replaces '~'"},
        {HPCT_OPTION_STAGE_OUT, "a:$HOME/b", "no shell replaces '$'"},
        {HPCT_OPTION_STAGE_OUT, "res:/shared/out-${SLURM_JOB_ID}/r", "no shell replaces '$'"},
        {HPCT_OPTION_STAGE_OUT, "res:/shared/out-${SLURM_JOB_ID}/r", "%j for the job"},
        {HPCT_OPTION_STAGE_OUT, "$name:/b", "no shell replaces '$'"},
        {HPCT_OPTION_STAGE_OUT, "a:/b/`date`", "no shell replaces '`'"},
        {HPCT_OPTION_STAGE_OUT, "a:~you/b", "no shell replaces '~'"},
        {HPCT_OPTION_STAGE, "/data/$SET", "no shell replaces '$'"},
        {HPCT_OPTION_STAGE, "/data/$1", "no shell replaces '$'"},
        {HPCT_OPTION_STAGE, "/data/$(pwd)", "no shell replaces '$'"},
        {HPCT_OPTION_STAGE, "/data:in-$USER", "no shell replaces '$'"},
        {HPCT_OPTION_STAGE, "/data/`pwd`", "write the whole path"},
        {HPCT_OPTION_STAGE, "http://example.com/x.tar", "'http://example.com/x.tar' is an address"},
        {HPCT_OPTION_STAGE, "/a,s3://bucket/x:b", "'s3://bucket/x:b' is an address"},
        {HPCT_OPTION_STAGE, "gs://bucket/x/", "such as curl, aws or rclone"},
        {HPCT_OPTION_STAGE, "file:///data", "is an address"},
        {HPCT_OPTION_STAGE_OUT, "https://example.com/x:/b", "is an address"},
        {HPCT_OPTION_STAGE_OUT, "res:s3://bucket/%j", "'s3://bucket/%j' is an address or on"},
        {HPCT_OPTION_STAGE_OUT, "res:me@host:/x", "write './me@host:/x' for a name with a colon"},
        {HPCT_OPTION_STAGE_OUT, "*/model.pt:/b", "only be behind the last slash"},
        {HPCT_OPTION_STAGE_OUT, "**/*.pt:/b", "only be behind the last slash"},
        {HPCT_OPTION_STAGE_OUT, "run[12]/x:/b", "only be behind the last slash"},
        {HPCT_OPTION_STAGE_OUT, "../*:/b", "below $SLURM_TMPDIR"},
        {HPCT_OPTION_STAGE_OUT, "a:/b-%A_%x", "'%x' in '/b-%A_%x' stands for nothing"},
        {HPCT_OPTION_STAGE, "/a,,/b", "without a source"},
        {HPCT_OPTION_STAGE, "/a:../b", "below $SLURM_TMPDIR"},
        {HPCT_OPTION_STAGE, "/a:/b", "below $SLURM_TMPDIR"},
        {HPCT_OPTION_STAGE, "/a:b//c", "below $SLURM_TMPDIR"},
        {HPCT_OPTION_STAGE, "/a:", "below $SLURM_TMPDIR"},
        {HPCT_OPTION_STAGE, "/", "below $SLURM_TMPDIR"},
        {HPCT_OPTION_STAGE, "..", "below $SLURM_TMPDIR"},
        {HPCT_OPTION_STAGE, "/a:.hpc-train/x", "kept for hpc-train"},
        {HPCT_OPTION_STAGE, "/a/x,/b/x", "would both be put at 'x'"},
        {HPCT_OPTION_STAGE, "/a:x,/b:x/y", "would both be put at 'x'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (hpct_option_check(cases[i].option, cases[i].value) != HPCT_ERR_USAGE &&
            !(cases[i].option == HPCT_OPTION_ON && *cases[i].value == '\0'))
            fail_msg("'%s' was not refused", cases[i].value);
        if (strstr(hpct_last_error(), cases[i].says) == NULL)
            fail_msg("'%s' does not say '%s'", hpct_last_error(), cases[i].says);
    }
    assert_int_equal(hpct_option_check(HPCT_OPTION_ON, NULL), HPCT_OK);
    assert_int_equal(hpct_option_check(HPCT_OPTION_HIDE, NULL), HPCT_OK);
    /* as Slurm hands an option without a value on to the steps of a job */
    assert_int_equal(hpct_option_check(HPCT_OPTION_ON, "(null)"), HPCT_OK);
    assert_int_equal(hpct_option_check(HPCT_OPTION_HIDE, "(null)"), HPCT_OK);
    /* no shell would have touched these */
    assert_int_equal(hpct_option_check(HPCT_OPTION_STAGE, "/a/b~,/a$/c$.d,/e\\:f"), HPCT_OK);
    /* a variable is named as such */
    hpct_options options = {0};
    hpct_choices choices = {0};
    assert_int_equal(hpct_options_resolve(&options, ENV("HPC_TRAIN_PORT=x"), false, &choices),
                     HPCT_ERR_USAGE);
    assert_int_equal(strncmp(hpct_last_error(), "HPC_TRAIN_PORT: ", 16), 0);
}

#define WORDS(...) ((char *[]){(char[]){"srun"}, __VA_ARGS__, NULL})
#define WORD(text) ((char[]){text})

/* Values of one option in the order in which Slurm hands them on. */
static hpct_status given(hpct_option option, const char *const *values, char *const *arguments,
                         const hpct_environment *environment, bool script)
{
    hpct_given all = {0};
    for (; *values != NULL; values++)
        assert_int_equal(hpct_given_add(&all, option, *values), HPCT_OK);
    hpct_status status = hpct_given_check(&all, arguments, environment, script);
    hpct_given_free(&all);
    return status;
}
#define VALUES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void values_that_would_be_lost_are_refused(void **state)
{
    (void) state;
    char *const *none = WORDS(WORD("job.sh"));
    char *const *line = WORDS(WORD("--hpc-train-stage=/b"), WORD("job.sh"));
    char *const *apart = WORDS(WORD("--hpc-train-stage"), WORD("/b"), WORD("job.sh"));
    char *const *twice = WORDS(WORD("--hpc-train-stage=/a"), WORD("--hpc-train-stage"), WORD("/b"));
    const hpct_environment *job =
        ENV("SLURM_SPANK__SLURM_SPANK_OPTION_spank_hpc_train_hpc_train_stage=/a");
    const hpct_option stage = HPCT_OPTION_STAGE;
    /* one, or the same again */
    assert_int_equal(given(stage, VALUES("/a"), none, NO_ENV, true), HPCT_OK);
    assert_int_equal(given(stage, VALUES("/b", "/b"), twice, NO_ENV, false), HPCT_OK);
    /* two #SBATCH lines, two words */
    assert_int_equal(given(stage, VALUES("/a", "/c"), none, NO_ENV, true), HPCT_ERR_USAGE);
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-stage is given twice, as '/a' and as "
                                              "'/c'"));
    assert_non_null(strstr(hpct_last_error(), "'/a,/c'"));
    assert_int_equal(given(stage, VALUES("/a", "/c", "/b"), line, NO_ENV, true), HPCT_ERR_USAGE);
    assert_int_equal(given(stage, VALUES("/a", "/b"), twice, NO_ENV, true), HPCT_ERR_USAGE);
    assert_int_equal(given(stage, VALUES("/a", "/b"), twice, NO_ENV, false), HPCT_ERR_USAGE);
    assert_int_equal(given(HPCT_OPTION_PORT, VALUES("22000", "23000"), none, NO_ENV, true),
                     HPCT_ERR_USAGE);
    assert_null(strstr(hpct_last_error(), "list"));
    /* a command line overrides a script, and both the job's environment */
    assert_int_equal(given(stage, VALUES("/a", "/b"), line, NO_ENV, true), HPCT_OK);
    assert_int_equal(given(stage, VALUES("/a", "/b"), apart, NO_ENV, true), HPCT_OK);
    assert_int_equal(given(stage, VALUES("/a", "/b"), line, job, false), HPCT_OK);
    assert_int_equal(given(stage, VALUES("/c", "/a", "/b"), line, job, true), HPCT_OK);
    /* an option without a value is what it implies */
    char *const *bare = WORDS(WORD("--hpc-train"));
    assert_int_equal(given(HPCT_OPTION_ON, VALUES("off", "on"), bare, NO_ENV, true), HPCT_OK);
    assert_int_equal(given(HPCT_OPTION_ON, VALUES("on", "off"), bare, NO_ENV, false),
                     HPCT_ERR_USAGE);
}

static void nodes_are_found_in_a_command_line(void **state)
{
    (void) state;
    assert_true(hpct_nodes_asked_several(WORDS(WORD("-N2"), WORD("true"))));
    assert_true(hpct_nodes_asked_several(WORDS(WORD("-lN"), WORD("2-4"), WORD("true"))));
    assert_true(hpct_nodes_asked_several(WORDS(WORD("-p"), WORD("main"), WORD("--nodes=3"))));
    assert_true(hpct_nodes_asked_several(WORDS(WORD("--mem=4G"), WORD("--nodes"), WORD("3"))));
    assert_true(hpct_nodes_asked_several(WORDS(WORD("-K"), WORD("--label"), WORD("-N4"))));
    /* one, or not known */
    assert_false(hpct_nodes_asked_several(WORDS(WORD("-N1"), WORD("true"))));
    assert_false(hpct_nodes_asked_several(WORDS(WORD("-N1-4"), WORD("true"))));
    assert_false(hpct_nodes_asked_several(WORDS(WORD("-n8"), WORD("true"))));
    assert_false(hpct_nodes_asked_several(WORDS(WORD("--nodes"))));
    assert_false(hpct_nodes_asked_several(WORDS(WORD("-N"))));
    /* the program's own, or perhaps */
    assert_false(hpct_nodes_asked_several(WORDS(WORD("-l"), WORD("prog"), WORD("-N4"))));
    assert_false(hpct_nodes_asked_several(WORDS(WORD("--label"), WORD("prog"), WORD("-N4"))));
    assert_false(hpct_nodes_asked_several(WORDS(WORD("-JN4"), WORD("prog"), WORD("--nodes=4"))));
    assert_false(hpct_nodes_asked_several(WORDS(WORD("--"), WORD("-N4"))));
    assert_true(hpct_nodes_asked_parts(WORDS(WORD("-N1"), WORD("a"), WORD(":"), WORD("b"))));
    assert_false(hpct_nodes_asked_parts(WORDS(WORD("-N1"), WORD("a:b"))));
}

static char *write_script(char *path, const char *text)
{
    int fd = mkstemp(path);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

#define SBATCH(...) ((char *[]){(char[]){"/usr/bin/sbatch"}, __VA_ARGS__, NULL})

static void arrays_are_found_in_a_command_line(void **state)
{
    (void) state;
    char *array =
        write_script(WORD("/tmp/hpc-train-options-XXXXXX"),
                     "#!/bin/bash\n# a job\n\n#SBATCH -N1\n#SBATCH -J x --array=1-3%2\ntrue\n");
    char *other = write_script(WORD("/tmp/hpc-train-options-XXXXXX"),
                               "#!/bin/bash\n#SBATCH -A acct -Ja\ntrue\n#SBATCH --array=1-3\n");
    assert_int_equal(hpct_nodes_asked_array(SBATCH(array)), 1);
    assert_int_equal(hpct_nodes_asked_array(SBATCH(WORD("-N1"), array, WORD("x"))), 1);
    assert_int_equal(hpct_nodes_asked_array(SBATCH(WORD("-a"), WORD("1-3"), other)), 1);
    assert_int_equal(hpct_nodes_asked_array(SBATCH(WORD("-Wa1-3"), other)), 1);
    assert_int_equal(hpct_nodes_asked_array(SBATCH(WORD("--array=1-3"), WORD("--wrap=true"))), 1);
    assert_int_equal(hpct_nodes_asked_array(SBATCH(WORD("--arr"), WORD("1"), other)), 1);
    /* none, also where the script has words like it */
    assert_int_equal(hpct_nodes_asked_array(SBATCH(other, WORD("-a"), WORD("--array=1"))), 0);
    assert_int_equal(hpct_nodes_asked_array(SBATCH(WORD("-A"), WORD("acct"), other)), 0);
    assert_int_equal(hpct_nodes_asked_array(SBATCH(WORD("--wrap=run -a 1"))), 0);
    assert_int_equal(
        hpct_nodes_asked_array(((char *[]){WORD("salloc"), WORD("x"), WORD("-a"), NULL})), 0);
    /* the script comes from standard input */
    assert_int_equal(hpct_nodes_asked_array(SBATCH(WORD("-N1"))), -1);
    unlink(array);
    unlink(other);
}

static hpct_status check_array(const char *text, const hpct_out_array *array, uint32_t job,
                               const char *cwd)
{
    hpct_out_list list;
    assert_int_equal(hpct_out_list_parse(text, &list), HPCT_OK);
    hpct_status status = hpct_out_list_check_array(&list, array, job, cwd);
    hpct_out_list_free(&list);
    return status;
}

static void jobs_of_an_array_have_names_of_their_own(void **state)
{
    (void) state;
    const hpct_out_array none = {0}, asked = {.is = true}, third = {true, 40, 3};
    assert_int_equal(check_array("a:/b/%A_%a,c.%t:/d/%j.%t", &asked, 0, NULL), HPCT_OK);
    assert_int_equal(check_array("a:/b/%4a", &asked, 0, NULL), HPCT_OK);
    assert_int_equal(check_array("a:/b,c:/d-%j", &asked, 0, NULL), HPCT_ERR_USAGE);
    assert_non_null(strstr(hpct_last_error(), "each job of the array would write to '/b', one over "
                                              "the other: add %a"));
    assert_int_equal(check_array("a.%t:/b.%t", &asked, 0, NULL), HPCT_ERR_USAGE);
    assert_int_equal(check_array("a:/b-%A-%n-%N-%s", &asked, 0, "/w/3"), HPCT_ERR_USAGE);
    assert_int_equal(check_array("a:/b-%%a", &asked, 0, NULL), HPCT_ERR_USAGE);
    /* within the array, what a shell has written out will do */
    assert_int_equal(check_array("a:/b/run-003", &third, 43, "/w"), HPCT_OK);
    assert_int_equal(check_array("a:/b/43.out", &third, 43, "/w"), HPCT_OK);
    assert_int_equal(check_array("a:out", &third, 43, "/w/run3"), HPCT_OK);
    assert_int_equal(check_array("a:/out", &third, 43, "/w/run3"), HPCT_ERR_USAGE);
    assert_int_equal(check_array("a:/b/40-33", &third, 43, "/w"), HPCT_ERR_USAGE);
    /* letters that mean nothing elsewhere */
    assert_int_equal(check_array("a:/b,c:/d-%j", &none, 7, NULL), HPCT_OK);
    assert_int_equal(check_array("a:/b-%a", &none, 0, NULL), HPCT_ERR_USAGE);
    assert_non_null(strstr(hpct_last_error(), "write %j for the job, or submit it with --array"));
    assert_int_equal(check_array("a-%A:/b", &none, 0, NULL), HPCT_ERR_USAGE);
    const hpct_out_names names = {.job = 43, .array = third, .step = "0", .host = "n"};
    char *name = hpct_out_name("%A_%a/%3a-%j", &names);
    assert_string_equal(name, "40_3/003-43");
    free(name);
}

static void stage_lists_are_cut(void **state)
{
    (void) state;
    hpct_stage_list list;
    assert_int_equal(hpct_stage_list_parse("/a/b/,c\\,d\\:e:x/y,/data/my set:z\\\\", &list),
                     HPCT_OK);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.entries[0].src, "/a/b");
    assert_string_equal(list.entries[0].dst, "b");
    assert_string_equal(list.entries[1].src, "c,d:e");
    assert_string_equal(list.entries[1].dst, "x/y");
    assert_string_equal(list.entries[2].src, "/data/my set");
    assert_string_equal(list.entries[2].dst, "z\\");
    hpct_stage_list_free(&list);
}

/* ---- plugstack.conf ---- */

static hpct_status read_settings(char *const *arguments, hpct_settings *settings)
{
    int count = 0;
    while (arguments[count] != NULL)
        count++;
    return hpct_settings_read(count, arguments, settings);
}

#define ARGUMENTS(...) ((char *const[]){__VA_ARGS__, NULL})
#define S(text) ((char[]){text})

static void settings_are_read(void **state)
{
    (void) state;
    hpct_settings settings;
    assert_int_equal(hpct_settings_read(0, NULL, &settings), HPCT_OK);
    assert_string_equal(settings.tmpdir, "/tmp/hpc-train");
    assert_false(settings.on_by_default || settings.has_ports || settings.verbose);
    assert_int_equal(settings.stage_max, 0);
    hpct_settings_free(&settings);
    assert_int_equal(
        read_settings(ARGUMENTS(S("tmpdir=/local/jobs"), S("ports=21000-21999"), S("default=on"),
                                S("stage_max=2G"), S("stage_src=/home,/project"),
                                S("stage_links=follow"), S("helper=/opt/x/hpc-train-stage"),
                                S("gpu_helper=/opt/y/gpus"), S("log=info")),
                      &settings),
        HPCT_OK);
    assert_string_equal(settings.tmpdir, "/local/jobs");
    assert_int_equal(settings.ports.high, 21999);
    assert_true(settings.on_by_default && settings.verbose);
    assert_int_equal(settings.stage_max, 2ul << 30);
    assert_true(settings.stage_follow);
    assert_int_equal(settings.num_stage_src, 2);
    assert_string_equal(settings.stage_src[1], "/project");
    assert_string_equal(settings.helper, "/opt/x/hpc-train-stage");
    assert_string_equal(settings.gpu_helper, "/opt/y/gpus");
    hpct_settings_free(&settings);
    /* as people write folders */
    assert_int_equal(
        read_settings(ARGUMENTS(S("tmpdir=/local//"), S("stage_src=/a/,/b")), &settings), HPCT_OK);
    assert_string_equal(settings.tmpdir, "/local");
    assert_string_equal(settings.stage_src[0], "/a");
    hpct_settings_free(&settings);
}

/* The comments of hpc-train.conf: what is written there is right, and what bounds nothing is the
 * default. */
static void the_administrators_file_is_right(void **state)
{
    (void) state;
    char path[512], line[512], *examples[32], *defaults[32];
    int count = 0, kept = 0;
    hpct_settings plain, given;
    const char *top = getenv("top_builddir");
    snprintf(path, sizeof path, "%s/etc/plugstack.conf.d/hpc-train.conf", top != NULL ? top : ".");
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (count < 32 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "#   ", 4) != 0 || line[4] == ' ')
            continue;
        examples[count] = strndup(line + 4, strcspn(line + 4, " \n"));
        if (strncmp(examples[count], "stage_max=", 10) != 0 &&
            strncmp(examples[count], "stage_src=", 10) != 0)
            defaults[kept++] = examples[count];
        count++;
    }
    fclose(file);
    assert_true(kept > 5 && kept == count - 2);
    if (hpct_settings_read(count, examples, &given) != HPCT_OK)
        fail_msg("%s", hpct_last_error());
    assert_true(given.stage_max > 0 && given.num_stage_src > 1);
    hpct_settings_free(&given);
    assert_int_equal(hpct_settings_read(0, NULL, &plain), HPCT_OK);
    assert_int_equal(hpct_settings_read(kept, defaults, &given), HPCT_OK);
    hpct_port_range ports = hpct_port_range_default();
    assert_true(given.ports.low == ports.low && given.ports.high == ports.high);
    assert_string_equal(given.tmpdir, plain.tmpdir);
    assert_string_equal(given.helper, plain.helper);
    assert_string_equal(given.gpu_helper, plain.gpu_helper);
    assert_int_equal(given.on_by_default, plain.on_by_default);
    assert_int_equal(given.stage_follow, plain.stage_follow);
    assert_int_equal(given.last_try, plain.last_try);
    assert_int_equal(given.verbose, plain.verbose);
    hpct_settings_free(&plain);
    hpct_settings_free(&given);
    for (int i = 0; i < count; i++)
        free(examples[i]);
}

static void wrong_settings_are_refused(void **state)
{
    (void) state;
    static const char *const bad[] = {
        "tmpdir",         "tmpdir=",
        "tmpdir=tmp",     "tmpdir=/",
        "tmpdir=/a/../b", "tmpdir=/a//b",
        "tmpdir=//",      "ports=22000",
        "ports=80-90",    "default=yes",
        "stage_max=0",    "stage_max=1X",
        "stage_max=-1",   "stage_links=maybe",
        "stage_src=home", "stage_src=,",
        "helper=sh",      "log=debug",
        "tmp_dir=/a",     "=x",
        "unknown",        "stage_max=99999999T",
        "gpu_helper=x",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hpct_settings settings;
        char *argument = strdup(bad[i]);
        if (read_settings(ARGUMENTS(argument), &settings) != HPCT_ERR_CONFIG)
            fail_msg("'%s' was not refused", bad[i]);
        assert_non_null(strstr(hpct_last_error(), "plugstack.conf"));
        hpct_settings_free(&settings);
        free(argument);
    }
    hpct_settings settings;
    assert_int_equal(read_settings(ARGUMENTS(S("log=info"), S("log=info")), &settings),
                     HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "twice"));
    hpct_settings_free(&settings);
}

static void sizes_are_shown(void **state)
{
    (void) state;
    char text[32];
    uint64_t bytes = 0;
    assert_string_equal(hpct_bytes_show(0, text, sizeof text), "0 B");
    assert_string_equal(hpct_bytes_show(999, text, sizeof text), "999 B");
    assert_string_equal(hpct_bytes_show(1500, text, sizeof text), "1.5 kB");
    assert_string_equal(hpct_bytes_show(130000000000, text, sizeof text), "130 GB");
    assert_string_equal(hpct_bytes_show(UINT64_MAX, text, sizeof text), "18 EB");
    assert_true(hpct_bytes_parse("3K", &bytes) && bytes == 3072);
    assert_true(hpct_bytes_parse("1T", &bytes) && bytes == 1ul << 40);
    assert_false(hpct_bytes_parse("", &bytes) || hpct_bytes_parse("K", &bytes) ||
                 hpct_bytes_parse("1KB", &bytes));
}

/* ---- GPUs ---- */

static void chosen(const char *bind_text, const char *visible, int local_rank, const char *want)
{
    hpct_gpu_bind bind = {0};
    char *gpu = NULL;
    assert_int_equal(hpct_gpu_bind_parse(bind_text, &bind), HPCT_OK);
    hpct_status status = hpct_gpu_choose(&bind, visible, local_rank, &gpu);
    if (want != NULL && strcmp(want, "refused") == 0) {
        assert_int_equal(status, HPCT_ERR_CONFIG);
    } else {
        assert_int_equal(status, HPCT_OK);
        if (want == NULL)
            assert_null(gpu);
        else
            assert_string_equal(gpu, want);
    }
    free(gpu);
    hpct_gpu_bind_free(&bind);
}

static void gpus_are_chosen(void **state)
{
    (void) state;
    chosen("rank", "0,1", 0, "0");
    chosen("rank", "0,1", 1, "1");
    chosen("rank", "2,5", 3, "5");
    chosen("rank", "GPU-1a,MIG-2b", 1, "MIG-2b");
    chosen("rank", "3", 7, "3");
    chosen("rank", NULL, 0, NULL);
    chosen("rank", "", 0, NULL);
    chosen("rank", "NoDevFiles", 0, NULL);
    chosen("closest", "4,6", 3, "6"); /* where nothing better is known */
    chosen("none", "0,1", 1, NULL);
    chosen("map:1,0", "4,6", 0, "6");
    chosen("map:1,0", "4,6", 2, "6");
    chosen("map:0,2", "4,6", 1, "refused");
    chosen("map:0", NULL, 0, "refused");
}

/* ---- one task ---- */

#define STEP                                                                                       \
    "SLURM_STEP_NODELIST=node[0-1]", "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_DISTRIBUTION=cyclic"

static hpct_status describe(const hpct_environment *environment, hpct_task_facts facts,
                            const char *stage, hpct_config **config)
{
    hpct_options options = {0};
    hpct_choices choices = {0};
    hpct_settings settings;
    hpct_team_facts team = {0};
    if (stage != NULL)
        hpct_options_set(&options, HPCT_OPTION_STAGE, stage);
    assert_int_equal(hpct_settings_read(0, NULL, &settings), HPCT_OK);
    assert_int_equal(hpct_options_resolve(&options, environment, true, &choices), HPCT_OK);
    facts.tmpdir = "/tmp/hpc-train/42";
    hpct_status status =
        hpct_task_describe(&facts, &choices, &settings, environment, &team, config);
    free(team.hosts);
    hpct_choices_free(&choices);
    hpct_settings_free(&settings);
    free_options(&options);
    return status;
}

static const hpct_task_facts task3 = {
    .job = 42, .rank = 3, .local_rank = 1, .node = 1, .local_tasks = 2, .total_tasks = 4};

static void a_task_is_described(void **state)
{
    (void) state;
    hpct_config *config = NULL;
    assert_int_equal(describe(ENV(STEP, "SLURMD_NODENAME=node1", "CUDA_VISIBLE_DEVICES=0,1"), task3,
                              "/data/mnist:d/m,/x", &config),
                     HPCT_OK);
    assert_string_equal(config->gpu, "1");
    assert_int_equal(config->nodes[0].gpus, 2);
    assert_string_equal(config->data, "/tmp/hpc-train/42/d/m");
    assert_string_equal(config->tmpdir, "/tmp/hpc-train/42");
    assert_string_equal(config->job, "42.0");
    assert_int_equal(config->local_rank, 1);
    hpct_config_free(config);
    assert_int_equal(describe(ENV(STEP), task3, NULL, &config), HPCT_OK);
    assert_null(config->data);
    assert_null(config->gpu);
    hpct_config_free(config);
}

static void a_layout_that_slurm_contradicts_is_refused(void **state)
{
    (void) state;
    hpct_config *config = NULL;
    hpct_task_facts facts = task3;
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

/* Whether the nodes are to stage together. */
static bool together(bool trusted, const char *mode)
{
    char variable[64];
    hpct_task_facts facts = task3;
    hpct_choices choices = {0};
    hpct_settings settings;
    hpct_team_facts team = {0};
    hpct_options options = {0};
    hpct_config *config = NULL;
    snprintf(variable, sizeof variable, "HPC_TRAIN_STAGE_MODE=%s", mode);
    hpct_environment *environment = ENV(STEP, "HPC_TRAIN_STAGE=/data", variable);
    facts.trusted = trusted;
    facts.tmpdir = "/tmp/hpc-train/42";
    assert_int_equal(hpct_settings_read(0, NULL, &settings), HPCT_OK);
    assert_int_equal(hpct_options_resolve(&options, environment, true, &choices), HPCT_OK);
    assert_int_equal(hpct_task_describe(&facts, &choices, &settings, environment, &team, &config),
                     HPCT_OK);
    bool result = team.hosts != NULL;
    free(team.hosts);
    hpct_config_free(config);
    hpct_choices_free(&choices);
    hpct_settings_free(&settings);
    return result;
}

static void nodes_stage_together_where_they_can_prove_it_or_on_demand(void **state)
{
    (void) state;
    assert_true(together(true, "auto"));
    assert_true(together(true, "extract"));
    assert_false(together(true, "copy"));
    assert_false(together(false, "auto"));
    assert_false(together(false, "extract"));
    assert_true(together(false, "broadcast"));
    assert_true(together(false, "extract,broadcast"));
}

/* SPANK counts within the component, the variables through all of them. */
static void a_task_of_a_component_is_described(void **state)
{
    (void) state;
    hpct_config *config = NULL;
    hpct_task_facts second = {
        .job = 43, .rank = 1, .local_rank = 1, .node = 0, .local_tasks = 2, .total_tasks = 2};
    hpct_environment *step =
        ENV("SLURM_STEP_NODELIST=node[0-1]", "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_PROCID=3",
            "SLURM_NODEID=1", "SLURM_JOB_ID=42", "SLURMD_NODENAME=node0",
            "SLURM_PMIX_MAPPING_SERV=(vector,(1,1,2),(0,1,2))");
    assert_int_equal(describe(step, second, NULL, &config), HPCT_OK);
    assert_string_equal(config->job, "42.0");
    assert_int_equal(config->rank, 3);
    assert_int_equal(config->node_rank, 1);
    assert_int_equal(config->local_rank, 1);
    assert_string_equal(config->nodes[1].name, "node0");
    hpct_config_free(config);
    second.local_rank = 0;
    assert_int_equal(describe(step, second, NULL, &config), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "cannot be worked out"));
    second.local_rank = 1;
    second.rank = 4;
    assert_int_equal(describe(step, second, NULL, &config), HPCT_ERR_CONFIG);
    assert_non_null(strstr(hpct_last_error(), "of a component"));
}

static void nothing_to_hide_is_no_hiding(void **state)
{
    (void) state;
    hpct_options options = {0};
    hpct_choices choices = {0};
    hpct_environment *environment = ENV("HPC_TRAIN_BIND=none");
    hpct_options_set(&options, HPCT_OPTION_HIDE, NULL);
    assert_int_equal(hpct_options_resolve(&options, environment, false, &choices), HPCT_ERR_USAGE);
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-hide"));
    assert_non_null(strstr(hpct_last_error(), "--hpc-train-bind=none"));
    free_options(&options);
}

static void the_config_file_is_written(void **state)
{
    (void) state;
    char folder[] = "/tmp/hpc-train-write.XXXXXX", command[PATH_MAX], *path = NULL, text[64];
    struct stat info;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) { /* also over an earlier one */
        assert_int_equal(hpct_private_write(folder, "config.3.7.json", "{\"a\":1}", &path),
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
    assert_int_equal(hpct_private_write(folder, "config.3.7.json", "{}", &path), HPCT_ERR_IO);
    assert_non_null(strstr(hpct_last_error(), folder));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_word_decides),
        cmocka_unit_test(the_command_line_wins_over_the_environment),
        cmocka_unit_test(bad_values_are_named),
        cmocka_unit_test(arrays_are_found_in_a_command_line),
        cmocka_unit_test(jobs_of_an_array_have_names_of_their_own),
        cmocka_unit_test(stage_lists_are_cut),
        cmocka_unit_test(values_that_would_be_lost_are_refused),
        cmocka_unit_test(nodes_are_found_in_a_command_line),
        cmocka_unit_test(settings_are_read),
        cmocka_unit_test(the_administrators_file_is_right),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(sizes_are_shown),
        cmocka_unit_test(gpus_are_chosen),
        cmocka_unit_test(a_task_is_described),
        cmocka_unit_test(a_layout_that_slurm_contradicts_is_refused),
        cmocka_unit_test(a_task_of_a_component_is_described),
        cmocka_unit_test(nodes_stage_together_where_they_can_prove_it_or_on_demand),
        cmocka_unit_test(nothing_to_hide_is_no_hiding),
        cmocka_unit_test(the_config_file_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
