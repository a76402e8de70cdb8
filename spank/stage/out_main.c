/* hpc-train-stage --out: a command of its own for users; with --record for the plugin when a step
 * ends, and with --all for the last try when a job has ended. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auth/key.h"
#include "base/clock.h"
#include "base/cluster/cluster.h"
#include "base/status.h"
#include "spank/agree/results.h"
#include "spank/spec/entry.h"
#include "spank/spec/out_entry.h"
#include "spank/stage/options.h"
#include "spank/stage/out/out.h"
#include "spank/stage/out_main.h"

#define REPORT_SECONDS 10.0
#define LINE_AFTER 2.0 /* seconds; what took less is not worth a line of each node */

static const char usage[] =
    "usage: hpc-train-stage --out [OPTION]... SRC:DST...\n"
    "Copies each file or folder SRC below $SLURM_TMPDIR to DST: first beside it, then renamed.\n"
    "A folder that is there already gets what is new or changed; what else is in it stays.\n"
    "  --from DIR        where to copy from instead of $SLURM_TMPDIR\n"
    "  --list LIST       more entries, with commas between them\n"
    "  --seconds N       end after N seconds\n"
    "  --grace N         go on for N seconds after a signal that asks to end\n"
    "  --record NAME     what NAME in DIR's records says; it is removed when all is copied\n"
    "  --all             what all such records say, as the last try\n"
    "  --progress-fd N   change the first byte of file descriptor N now and then while all goes\n"
    "                    well; write a byte, where it is a pipe\n"
    "  -v, --verbose     say what was copied\n"
    "  --help\n"
    "Names may hold %j (job), %A (job array), %a (number in it), %s (step), %n (number of the "
    "node),\n"
    "%N (its name), %t (task), %%. The last part of SRC may be a pattern, such as 'ckpt-*.pt', for "
    "all\n"
    "that it matches in one folder; DST is then the folder to put them into.\n"
    "A backslash before a comma or colon makes it part of a name.\n";

typedef struct arguments {
    hpct_stage_out_job job;
    const char *record;
    bool all, verbose;
    long progress_fd;
    double seconds, grace;
    char *list; /* what was given on the command line, as one list */
} arguments;

static hpct_status add_list(void *context, char *text)
{
    arguments *a = context;
    char *longer = NULL;
    if (asprintf(&longer, "%s%s%s", a->list == NULL ? "" : a->list, a->list == NULL ? "" : ",",
                 text) < 0)
        return hpct_fail_memory(strlen(text));
    free(a->list);
    a->list = longer;
    return HPCT_OK;
}

/* An entry that stands alone may hold commas. */
static hpct_status add_entry(arguments *a, const char *text)
{
    char *escaped = malloc(strlen(text) * 2 + 1), *out = escaped;
    if (escaped == NULL)
        return hpct_fail_memory(strlen(text));
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == ',')
            *out++ = '\\';
        else if (*p == '\\' && p[1] != '\0')
            *out++ = *p++;
        *out++ = *p;
    }
    *out = '\0';
    hpct_status status = add_list(a, escaped);
    free(escaped);
    return status;
}

static hpct_status read_entries(int argc, char **argv, arguments *a)
{
    for (; optind < argc; optind++)
        HPCT_TRY(add_entry(a, argv[optind]));
    if (a->job.from == NULL)
        a->job.from = getenv("SLURM_TMPDIR");
    if (a->job.from == NULL || *a->job.from == '\0')
        return hpct_fail(HPCT_ERR_USAGE, "$SLURM_TMPDIR is not set: give --from DIR");
    if ((a->list != NULL) + (a->record != NULL) + a->all != 1)
        return hpct_fail(HPCT_ERR_USAGE, "at least one SRC:DST is needed, and then neither "
                                         "--record nor --all; see hpc-train-stage --out --help");
    return HPCT_OK;
}

/* -1: go on; else the exit status. */
static int read_arguments(int argc, char **argv, arguments *a)
{
    const hpct_stage_option options[] = {
        {"from", HPCT_STAGE_OPTION_TEXT, .sets = &a->job.from},
        {"list", HPCT_STAGE_OPTION_CALL, .sets = a, .call = add_list},
        {"seconds", HPCT_STAGE_OPTION_SECONDS, .sets = &a->seconds},
        {"grace", HPCT_STAGE_OPTION_SECONDS, .sets = &a->grace},
        {"record", HPCT_STAGE_OPTION_TEXT, .sets = &a->record},
        {"all", HPCT_STAGE_OPTION_FLAG, .sets = &a->all},
        {"progress-fd", HPCT_STAGE_OPTION_NUMBER, .sets = &a->progress_fd, .low = 0,
         .high = 1 << 20},
        {"verbose", HPCT_STAGE_OPTION_FLAG, .sets = &a->verbose, .letter = 'v'},
        {"help", HPCT_STAGE_OPTION_PRINT, .text = usage},
        {0},
    };
    int done = hpct_stage_options_read(argc, argv, options, "hpc-train-stage --out --help");
    if (done >= 0)
        return done;
    hpct_status status = read_entries(argc, argv, a);
    return status == HPCT_OK ? -1 : hpct_stage_options_fail(status);
}

/* ---- what to do ------------------------------------------------------------------------------ */

static uint32_t number_of(const char *variable)
{
    return (uint32_t) hpct_cluster_environment_number(&hpct_cluster_environment_own, variable,
                                                      UINT32_MAX, 0);
}

static hpct_status say_missing(const hpct_stage_out_job *job, const hpct_spec_out_record *record,
                               const hpct_stage_out_found found, int marks, hpct_status status)
{
    int missing = hpct_stage_out_say_missing(job, record, found, marks);
    if (status != HPCT_OK || missing == 0)
        return status;
    return hpct_fail(HPCT_ERR_NO_INPUT, "%d of the things to copy out %s not there", missing,
                     missing == 1 ? "was" : "were");
}

/* As a command, in a task or script of a job. */
static hpct_status run_list(const arguments *a, hpct_stage_report *report)
{
    char *step = getenv("SLURM_STEP_ID"), *cwd = getcwd(NULL, 0), batch[] = "batch";
    uint32_t task = number_of("SLURM_PROCID");
    mode_t mask = umask(0);
    const hpct_spec_out_record record = {
        .job = number_of("SLURM_JOB_ID"),
        .array = {.is = getenv("SLURM_ARRAY_TASK_ID") != NULL,
                  .job = number_of("SLURM_ARRAY_JOB_ID"),
                  .task = number_of("SLURM_ARRAY_TASK_ID")},
        .step = step == NULL || strchr(step, '/') != NULL ? batch : step,
        .node = hpct_cluster_node_in_job(&hpct_cluster_environment_own, number_of("SLURM_JOB_ID"),
                                         number_of("SLURM_NODEID")),
        .umask = mask,
        .start = hpct_now_ms(),
        .cwd = cwd,
        .list = a->list,
        .tasks = &task,
        .num_tasks = 1,
    };
    umask(mask);
    if (cwd == NULL)
        return hpct_fail(HPCT_ERR_IO, "the current folder cannot be told: %s", strerror(errno));
    hpct_stage_out_result result;
    hpct_status status = hpct_stage_out_run(&a->job, &record, report, &result);
    status = say_missing(&a->job, &record, result.found, -1, status);
    free(cwd);
    return status;
}

/* "node0 (with rank 0)": says why one node alone has results. */
static void name_node(const hpct_spec_out_record *record, char name[HPCT_NET_FRAME_NODE])
{
    char host[HPCT_NET_FRAME_NODE - 16] = "";
    bool first = false;
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    for (uint32_t i = 0; i < record->num_tasks; i++)
        first = first || record->tasks[i] == 0;
    snprintf(name, HPCT_NET_FRAME_NODE, "%s%s", host, first ? " (with rank 0)" : "");
}

/* srun is still there: it waits for this node's last task to be said to have ended. */
static bool report_to_srun(const hpct_spec_out_record *record, hpct_status status,
                           const char *found)
{
    hpct_auth_key *key = NULL;
    char name[HPCT_NET_FRAME_NODE];
    if (record->srun == NULL || record->key == NULL || hpct_auth_key_new(&key) != HPCT_OK)
        return false;
    const hpct_agree_results_way way = {.address = record->srun,
                                        .key = key,
                                        .node = record->node,
                                        .nodes = record->nodes,
                                        .name = name};
    name_node(record, name);
    bool reported = hpct_auth_key_from_text(key, record->key) &&
                    hpct_agree_results_tell(&way, status, found, REPORT_SECONDS);
    hpct_auth_key_free(key);
    return reported;
}

/* Who says what is missing, and whether that is a failure: srun, of all nodes; where there is none,
 * as at a script's end, this node. */
static hpct_status run_step(const hpct_stage_out_job *job, int folder,
                            const hpct_spec_out_record *record, hpct_stage_report *report,
                            bool *all_copied)
{
    hpct_stage_out_result result;
    bool reached = report_to_srun(record, HPCT_OK, NULL),
         script = strcmp(record->step, "batch") == 0;
    hpct_status status = hpct_stage_out_run(job, record, report, &result);
    *all_copied = result.all_copied;
    if (reached && report_to_srun(record, status, result.found))
        return status;
    hpct_status with_missing = say_missing(job, record, result.found, script ? folder : -1, status);
    if (!script || with_missing == status)
        return status;
    *all_copied = false; /* something may still come until the epilog */
    return with_missing;
}

static hpct_status run_last(const hpct_stage_out_job *job, const hpct_spec_out_record *record,
                            hpct_stage_report *report, bool *all_copied)
{
    hpct_stage_out_result result;
    hpct_status status = hpct_stage_out_run(job, record, report, &result);
    *all_copied = result.all_copied;
    hpct_stage_out_say_missing(job, record, result.found, -1);
    return status;
}

static hpct_status run_record(const hpct_stage_out_job *job, int folder, const char *name,
                              hpct_stage_report *report)
{
    hpct_spec_out_record record;
    bool all_copied = false;
    HPCT_TRY(hpct_spec_out_record_read(folder, name, &record));
    hpct_status status = job->note ? run_last(job, &record, report, &all_copied)
                                   : run_step(job, folder, &record, report, &all_copied);
    if (all_copied)
        unlinkat(folder, name, 0);
    hpct_spec_out_record_free(&record);
    return status;
}

static hpct_status run_all(hpct_stage_out_job *job, int folder, hpct_stage_report *report)
{
    hpct_status status = HPCT_OK;
    DIR *entries = fdopendir(dup(folder));
    if (entries == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", job->from, strerror(errno));
    for (struct dirent *found; (found = readdir(entries)) != NULL;) {
        if (strncmp(found->d_name, HPCT_SPEC_OUT_RECORD_PREFIX,
                    strlen(HPCT_SPEC_OUT_RECORD_PREFIX)) != 0)
            continue;
        hpct_status this = run_record(job, folder, found->d_name, report);
        if (this != HPCT_OK)
            hpct_stage_report_say("%s: %s", found->d_name, hpct_last_error());
        status = status == HPCT_OK ? this : status;
    }
    closedir(entries);
    return status == HPCT_OK ? HPCT_OK
                             : hpct_fail(status, "not all results of the job were copied");
}

static hpct_status run_records(arguments *a, hpct_stage_report *report)
{
    int folder = hpct_spec_records_open(a->job.from);
    if (folder < 0 && a->all && errno == ENOENT)
        return HPCT_OK;
    if (folder < 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "the records of %s cannot be read: %s", a->job.from,
                         strerror(errno));
    hpct_status status =
        a->all ? run_all(&a->job, folder, report) : run_record(&a->job, folder, a->record, report);
    close(folder);
    return status;
}

int hpct_stage_out_main(int argc, char **argv)
{
    arguments a = {.progress_fd = -1};
    hpct_stage_report report;
    int done = read_arguments(argc, argv, &a);
    if (done < 0) {
        hpct_stage_report_start(&report, a.verbose, (int) a.progress_fd);
        report.grace = a.grace;
        report.limit = a.seconds;
        a.job.again = a.job.note = a.all;
        a.job.last = a.record == NULL;
        a.job.process = a.list != NULL ? (int) getpid() : 0;
        hpct_status status = a.list != NULL ? run_list(&a, &report) : run_records(&a, &report);
        if (status != HPCT_OK)
            hpct_stage_report_say("%s", hpct_last_error());
        else
            hpct_stage_report_end(&report, "where they belong", LINE_AFTER);
        done = (int) status;
    }
    free(a.list);
    return done;
}
