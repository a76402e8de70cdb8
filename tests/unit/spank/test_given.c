/* spank/given: options given more than once. */
#include "spank/given.h"
#include "tests/unit/cases.h"
#include "tests/unit/environment.h"
#include "tests/unit/spank/words.h"

typedef struct command {
    const char *line;
    const hpct_cluster_environment *environment;
    bool script;
} command;

/* Text: the values in the order in which Slurm hands them on; number: the option. */
static hpct_status check_given(const parse_case *c, char *got, size_t size)
{
    const command *call = c->with;
    hpct_spank_given given = {0};
    words values, line;
    for (char *const *value = split_words(&values, c->text); *value != NULL; value++)
        assert_int_equal(hpct_spank_given_add(&given, (hpct_spank_option) c->number, *value),
                         HPCT_OK);
    hpct_status status = hpct_spank_given_check(&given, split_words(&line, call->line),
                                                call->environment, call->script);
    hpct_spank_given_free(&given);
    return status;
}

#define IN_SCRIPT(line) (&(const command){"srun " line, NO_ENV, true})
#define NO_SCRIPT(line) (&(const command){"srun " line, NO_ENV, false})
#define STAGE HPCT_SPANK_OPTION_STAGE
#define ON HPCT_SPANK_OPTION_ON
#define LINE "--hpc-train-stage=/b job.sh"
#define TWICE "--hpc-train-stage=/a --hpc-train-stage /b"

TEST(second_values_in_one_place_are_rejected)
{
    const hpct_cluster_environment *job =
        ENV("SLURM_SPANK__SLURM_SPANK_OPTION_spank_hpc_train_hpc_train_stage=/a");
    const parse_case cases[] = {
        /* one, or the same again */
        {"/a", HPCT_OK, NULL, STAGE, IN_SCRIPT("job.sh")},
        {"/b /b", HPCT_OK, NULL, STAGE, NO_SCRIPT(TWICE)},
        /* two #SBATCH lines, two words */
        {"/a /c", HPCT_ERR_USAGE, "--hpc-train-stage is given twice, as '/a' and as '/c'|'/a,/c'",
         STAGE, IN_SCRIPT("job.sh")},
        {"/a /c /b", HPCT_ERR_USAGE, NULL, STAGE, IN_SCRIPT(LINE)},
        {"/a /b", HPCT_ERR_USAGE, NULL, STAGE, IN_SCRIPT(TWICE)},
        {"/a /b", HPCT_ERR_USAGE, NULL, STAGE, NO_SCRIPT(TWICE)},
        /* the command line overrides the script, and both the job's environment */
        {"/a /b", HPCT_OK, NULL, STAGE, IN_SCRIPT(LINE)},
        {"/a /b", HPCT_OK, NULL, STAGE, IN_SCRIPT("--hpc-train-stage /b job.sh")},
        {"/a /b", HPCT_OK, NULL, STAGE, &(const command){"srun " LINE, job, false}},
        {"/c /a /b", HPCT_OK, NULL, STAGE, &(const command){"srun " LINE, job, true}},
        /* an option without a value is what it implies */
        {"off on", HPCT_OK, NULL, ON, IN_SCRIPT("--hpc-train")},
        {"on off", HPCT_ERR_USAGE, NULL, ON, NO_SCRIPT("--hpc-train")},
        /* ports are not a list to which the second could be added */
        {"22000 23000", HPCT_ERR_USAGE, NULL, HPCT_SPANK_OPTION_PORT, IN_SCRIPT("job.sh")},
    };
    RUN_CASES(check_given, cases);
    assert_null(strstr(hpct_last_error(), "list"));
}
