/* hpc-train-stage: copies files and folders, or unpacks archives, below a folder, each atomically.
 * Started by the plugin as the job's user; also a command of its own. */
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"
#include "spank/spec/bytes.h"
#include "spank/stage/out_main.h"
#include "spank/stage/protocol.h"
#include "spank/stage/refuse.h"

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
    long index, port, wait;
    hpct_spec_stage_list list;
    char *allowed[MAX_ALLOWED];
    bool verbose, quiet;
    int progress_fd;
} arguments;

enum {
    OPTION_TO = 256,
    OPTION_LIST,
    OPTION_MODE,
    OPTION_LINKS,
    OPTION_MAX,
    OPTION_MEMORY,
    OPTION_ALLOW,
    OPTION_NODES,
    OPTION_INDEX,
    OPTION_PORT,
    OPTION_JOB,
    OPTION_KEY,
    OPTION_WAIT,
    OPTION_PROGRESS,
    OPTION_HELP,
    OPTION_VERSION
};

static hpct_status set_option(arguments *a, int option, char *value)
{
    long number = 0;
    hpct_status status;
    switch (option) {
    case OPTION_TO:
        a->job.to = value;
        return HPCT_OK;
    case OPTION_LIST:
        hpct_spec_stage_list_free(&a->list);
        return hpct_spec_stage_list_parse(value, &a->list);
    case OPTION_LINKS:
        if (strcmp(value, "refuse") != 0 && strcmp(value, "follow") != 0)
            return hpct_fail(HPCT_ERR_USAGE, "--links: '%s' is neither refuse nor follow", value);
        a->job.follow = *value == 'f';
        return HPCT_OK;
    case OPTION_MEMORY:
        if (!hpct_spec_bytes_parse(value, &a->job.memory))
            return hpct_fail(HPCT_ERR_USAGE, "--memory: '%s' is not a size such as 16G", value);
        return HPCT_OK;
    case OPTION_MAX:
        if (!hpct_spec_bytes_parse(value, &a->job.max))
            return hpct_fail(HPCT_ERR_USAGE, "--max: '%s' is not a size such as 500G", value);
        return HPCT_OK;
    case OPTION_ALLOW:
        if (a->job.num_allowed == MAX_ALLOWED)
            return hpct_fail(HPCT_ERR_USAGE, "--allow: more than %d prefixes", MAX_ALLOWED);
        a->allowed[a->job.num_allowed++] = value;
        return HPCT_OK;
    case OPTION_MODE:
        status = hpct_spec_stage_request_parse(value, &a->job.request);
        return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, "--mode");
    case OPTION_NODES:
        a->nodes = value;
        return HPCT_OK;
    case OPTION_INDEX:
        return hpct_stage_number("--index", value, 0, HPCT_STAGE_MAX_TEAM - 1, &a->index);
    case OPTION_PORT:
        return hpct_stage_number("--port", value, 1, 65535, &a->port);
    case OPTION_WAIT:
        return hpct_stage_number("--wait", value, 1, 86400, &a->wait);
    case OPTION_JOB:
        if (*value == '\0' || strlen(value) > HPCT_STAGE_MAX_RUN_NAME)
            return hpct_fail(HPCT_ERR_USAGE, "--job: '%s' is empty or longer than %d characters",
                             value, HPCT_STAGE_MAX_RUN_NAME);
        a->job.team.run = value;
        return HPCT_OK;
    case OPTION_KEY:
        hpct_auth_key_free(a->key);
        a->key = NULL;
        status = hpct_auth_key_read(&a->key, value);
        a->job.team.key = a->key;
        return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, "--key");
    case OPTION_PROGRESS:
        status = hpct_stage_number("--progress-fd", value, 0, 1 << 20, &number);
        a->progress_fd = (int) number;
        return status;
    case 'q':
        a->quiet = true;
        return HPCT_OK;
    case 'v':
        a->verbose = true;
        return HPCT_OK;
    default:
        return hpct_fail(HPCT_ERR_INTERNAL, "an option without a meaning");
    }
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

/* Returns -1 to continue, else the exit status. */
static int read_arguments(int argc, char **argv, arguments *a)
{
    static const struct option options[] = {
        {"to", required_argument, NULL, OPTION_TO},
        {"list", required_argument, NULL, OPTION_LIST},
        {"mode", required_argument, NULL, OPTION_MODE},
        {"links", required_argument, NULL, OPTION_LINKS},
        {"memory", required_argument, NULL, OPTION_MEMORY},
        {"max", required_argument, NULL, OPTION_MAX},
        {"allow", required_argument, NULL, OPTION_ALLOW},
        {"nodes", required_argument, NULL, OPTION_NODES},
        {"index", required_argument, NULL, OPTION_INDEX},
        {"port", required_argument, NULL, OPTION_PORT},
        {"job", required_argument, NULL, OPTION_JOB},
        {"key", required_argument, NULL, OPTION_KEY},
        {"wait", required_argument, NULL, OPTION_WAIT},
        {"progress-fd", required_argument, NULL, OPTION_PROGRESS},
        {"quiet", no_argument, NULL, 'q'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, OPTION_HELP},
        {"version", no_argument, NULL, OPTION_VERSION},
        {0},
    };
    hpct_status status = HPCT_OK;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":qv", options, NULL)) != -1;) {
        if (option == OPTION_HELP)
            return fputs(usage, stdout) < 0;
        if (option == OPTION_VERSION)
            return printf("hpc-train-stage %s\n", HPCT_VERSION) < 0;
        status = option == '?' || option == ':'
                     ? hpct_stage_refuse(option, argv, options, "hpc-train-stage --help")
                     : set_option(a, option, optarg);
        if (status != HPCT_OK)
            goto fail;
    }
    for (; optind < argc; optind++) {
        status = hpct_spec_stage_list_add(&a->list, argv[optind]);
        if (status != HPCT_OK)
            goto fail;
    }
    if (a->job.to == NULL || a->list.count == 0) {
        status = hpct_fail(HPCT_ERR_USAGE, "--to DIR and at least one source are needed; see "
                                           "hpc-train-stage --help");
        goto fail;
    }
    status = read_team(a);
    if (status != HPCT_OK)
        goto fail;
    return -1;
fail:
    fprintf(stderr, "hpc-train-stage: %s\n", hpct_last_error());
    return (int) status;
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
        hpct_stage_report_start(&report, a.verbose, a.progress_fd);
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
