/* hpc-train-stage: copies files and folders, or unpacks archives, below a folder, each atomically.
 * Started by the plugin as the job's user; also a command of its own. */
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "spank/stage/options.h"
#include "spank/stage/out_main.h"
#include "spank/stage/protocol.h"

#define MAX_ALLOWED 64

static const char usage[] =
    "usage: hpc-train-stage [OPTION]... --to DIR SRC[:DST]...\n"
    "       hpc-train-stage --out [OPTION]... SRC:DST... (see --out --help)\n"
    "Copies each file or folder SRC to DIR/DST (default: its own name), whole or not at all.\n"
    "  --to DIR          the folder to copy to\n"
    "  --list LIST       more entries, with commas between them\n"
    "  --mode MODE       auto (default), copy: each node reads; broadcast: one reads and sends;\n"
    "                    extract: put what is in the archive SRC into DIR/DST, in the best way,\n"
    "                    or as said in extract,copy or extract,broadcast\n"
    "  --links MODE      links out of a folder SRC: refuse (default), or follow\n"
    "  --max BYTES       refuse to copy more than this (K, M, G, T may follow)\n"
    "  --memory BYTES    what the job may use, where DIR lies in memory\n"
    "  --allow PREFIX    copy only from below PREFIX; may be given several times\n"
    "  --nodes FILE      the nodes that stage the same at the same time, one HOST[:PORT] per line\n"
    "  --index I         which line of it this node is, from 0\n"
    "  --port P          where nodes without a PORT of their own listen\n"
    "  --job NAME        what tells this run from others of the same user (such as 42.0)\n"
    "  --key FILE        what they prove to each other: 64 hexadecimal digits (default: munge)\n"
    "  --wait SECONDS    how long the other nodes may take to come (default 600)\n"
    "  --progress-fd N   change the first byte of file descriptor N now and then while all goes\n"
    "                    well; write a byte, where it is a pipe\n"
    "  -q, --quiet       say nothing but what fails\n"
    "  -v, --verbose     say also what was there already, how it is copied and why\n"
    "  --help, --version\n"
    "A backslash before a comma or colon makes it part of a name.\n";

typedef struct arguments {
    hpct_stage_job job;
    const char *nodes;
    hpct_auth_key *key;
    long index, port, wait, progress_fd;
    hpct_spec_stage_list list;
    char *allowed[MAX_ALLOWED];
    bool verbose, quiet;
} arguments;

static hpct_status set_list(void *context, char *value)
{
    hpct_spec_stage_list *list = context;
    hpct_spec_stage_list_free(list);
    return hpct_spec_stage_list_parse(value, list);
}

static hpct_status set_mode(void *context, char *value)
{
    hpct_status status = hpct_spec_stage_request_parse(value, context);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, "--mode");
}

static hpct_status set_links(void *context, char *value)
{
    bool *follow = context;
    if (strcmp(value, "refuse") != 0 && strcmp(value, "follow") != 0)
        return hpct_fail(HPCT_ERR_USAGE, "--links: '%s' is neither refuse nor follow", value);
    *follow = *value == 'f';
    return HPCT_OK;
}

static hpct_status add_allowed(void *context, char *value)
{
    arguments *a = context;
    if (a->job.num_allowed == MAX_ALLOWED)
        return hpct_fail(HPCT_ERR_USAGE, "--allow: more than %d prefixes", MAX_ALLOWED);
    a->allowed[a->job.num_allowed++] = value;
    return HPCT_OK;
}

static hpct_status set_job(void *context, char *value)
{
    const char **run = context;
    if (*value == '\0' || strlen(value) > HPCT_STAGE_MAX_RUN_NAME)
        return hpct_fail(HPCT_ERR_USAGE, "--job: '%s' is empty or longer than %d characters", value,
                         HPCT_STAGE_MAX_RUN_NAME);
    *run = value;
    return HPCT_OK;
}

static hpct_status read_key(void *context, char *value)
{
    arguments *a = context;
    hpct_auth_key_free(a->key);
    a->key = NULL;
    hpct_status status = hpct_auth_key_read(&a->key, value);
    a->job.team.key = a->key;
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, "--key");
}

/* Reads --nodes, the list of nodes, if it is given. */
static hpct_status read_team(arguments *a)
{
    hpct_stage_team *team = &a->job.team;
    team->wait_seconds = (int) a->wait;
    if (a->nodes == NULL)
        return HPCT_OK;
    HPCT_TRY(hpct_stage_team_read(a->nodes, (int) a->port, team));
    if (a->index < 0 || a->index >= team->count)
        return hpct_fail(HPCT_ERR_USAGE, "--index, the line of %s for this node, must be 0 to %d",
                         a->nodes, team->count - 1);
    if (team->run == NULL)
        return hpct_fail(HPCT_ERR_USAGE, "--nodes needs --job NAME, the same on all nodes and "
                                         "another one for each run");
    team->index = (int) a->index;
    return HPCT_OK;
}

static hpct_status read_sources(int argc, char **argv, arguments *a)
{
    for (; optind < argc; optind++)
        HPCT_TRY(hpct_spec_stage_list_add(&a->list, argv[optind]));
    if (a->job.to == NULL || a->list.count == 0)
        return hpct_fail(HPCT_ERR_USAGE, "--to DIR and at least one source are needed; see "
                                         "hpc-train-stage --help");
    return read_team(a);
}

/* Returns -1 to continue, else the exit status. */
static int read_arguments(int argc, char **argv, arguments *a)
{
    const hpct_stage_option options[] = {
        {"to", HPCT_STAGE_OPTION_TEXT, .sets = &a->job.to},
        {"list", HPCT_STAGE_OPTION_CALL, .sets = &a->list, .call = set_list},
        {"mode", HPCT_STAGE_OPTION_CALL, .sets = &a->job.request, .call = set_mode},
        {"links", HPCT_STAGE_OPTION_CALL, .sets = &a->job.follow, .call = set_links},
        {"memory", HPCT_STAGE_OPTION_BYTES, .sets = &a->job.memory, .text = "16G"},
        {"max", HPCT_STAGE_OPTION_BYTES, .sets = &a->job.max, .text = "500G"},
        {"allow", HPCT_STAGE_OPTION_CALL, .sets = a, .call = add_allowed},
        {"nodes", HPCT_STAGE_OPTION_TEXT, .sets = &a->nodes},
        {"index", HPCT_STAGE_OPTION_NUMBER, .sets = &a->index, .low = 0,
         .high = HPCT_STAGE_MAX_TEAM - 1},
        {"port", HPCT_STAGE_OPTION_NUMBER, .sets = &a->port, .low = 1, .high = 65535},
        {"job", HPCT_STAGE_OPTION_CALL, .sets = &a->job.team.run, .call = set_job},
        {"key", HPCT_STAGE_OPTION_CALL, .sets = a, .call = read_key},
        {"wait", HPCT_STAGE_OPTION_NUMBER, .sets = &a->wait, .low = 1, .high = 86400},
        {"progress-fd", HPCT_STAGE_OPTION_NUMBER, .sets = &a->progress_fd, .low = 0,
         .high = 1 << 20},
        {"quiet", HPCT_STAGE_OPTION_FLAG, .sets = &a->quiet, .letter = 'q'},
        {"verbose", HPCT_STAGE_OPTION_FLAG, .sets = &a->verbose, .letter = 'v'},
        {"help", HPCT_STAGE_OPTION_PRINT, .text = usage},
        {"version", HPCT_STAGE_OPTION_PRINT, .text = "hpc-train-stage " HPCT_VERSION "\n"},
        {0},
    };
    int done = hpct_stage_options_read(argc, argv, options, "hpc-train-stage --help");
    if (done >= 0)
        return done;
    hpct_status status = read_sources(argc, argv, a);
    return status == HPCT_OK ? -1 : hpct_stage_options_fail(status);
}

int main(int argc, char **argv)
{
    arguments a = {.progress_fd = -1, .index = -1, .wait = 600};
    hpct_stage_report report;
    a.job.allowed = a.allowed;
    hpct_stage_report_catch_signals();
    setlocale(LC_CTYPE, "C.UTF-8"); /* libarchive drops names that the locale cannot represent */
    if (argc > 1 && strcmp(argv[1], "--out") == 0)
        return hpct_stage_out_main(argc - 1, argv + 1);
    umask(0); /* every mode is explicit; with umask 0 no chmod is needed for staged files */
    int done = read_arguments(argc, argv, &a);
    if (done < 0) {
        hpct_stage_report_start(&report, a.verbose, (int) a.progress_fd);
        report.quiet = a.quiet;
        hpct_status status = hpct_stage_all(&a.job, &a.list, &report);
        if (status == HPCT_OK)
            hpct_stage_report_end(&report, a.job.to, 0);
        else if (!report.reported)
            hpct_stage_report_say("%s", hpct_last_error());
        done = (int) status;
    }
    hpct_spec_stage_list_free(&a.list);
    hpct_stage_team_free(&a.job.team);
    hpct_auth_key_free(a.key);
    return done;
}
