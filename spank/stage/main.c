/* hpc-train-stage: copies or unpacks files and folders below a folder, whole or not at all. Started
 * by the plugin as the job's user; also a command of its own. */
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/cluster/number.h"
#include "base/status.h"
#include "spank/stage/bytes.h"
#include "spank/stage/out.h"
#include "spank/stage/place.h"

#define MAX_ALLOWED 64

static const char usage[] =
    "usage: hpc-train-stage [OPTION]... --to DIR SRC[:DST]...\n"
    "       hpc-train-stage --out [OPTION]... SRC:DST... (see --out --help)\n"
    "Copies each file or folder SRC to DIR/DST (default: its own name), whole or not at all.\n"
    "  --to DIR          the folder to copy to\n"
    "  --list LIST       more entries, with commas between them\n"
    "  --mode MODE       copy (default), or extract: put what is in the archive SRC into DIR/DST\n"
    "  --links MODE      links out of a folder SRC: refuse (default), or follow\n"
    "  --max BYTES       refuse to copy more than this (K, M, G, T may follow)\n"
    "  --memory BYTES    what the job may use, where DIR lies in memory\n"
    "  --allow PREFIX    copy only from below PREFIX; may be given several times\n"
    "  --progress-fd N   write a byte to file descriptor N now and then while all goes well\n"
    "  -v, --verbose     say what was copied and what was there already\n"
    "  --help, --version\n"
    "A backslash before a comma or colon makes it part of a name.\n";

typedef struct arguments {
    hpct_place place;
    hpct_stage_list list;
    char *allowed[MAX_ALLOWED];
    bool verbose;
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
    OPTION_PROGRESS,
    OPTION_HELP,
    OPTION_VERSION
};

static hpct_status take(arguments *a, int option, char *value)
{
    long number = 0;
    switch (option) {
    case OPTION_TO:
        a->place.to = value;
        return HPCT_OK;
    case OPTION_LIST:
        hpct_stage_list_free(&a->list);
        return hpct_stage_list_parse(value, &a->list);
    case OPTION_MODE:
        if (strcmp(value, "copy") != 0 && strcmp(value, "extract") != 0)
            return hpct_fail(HPCT_ERR_USAGE, "--mode: '%s' is neither copy nor extract", value);
        a->place.mode = *value == 'e' ? HPCT_STAGE_EXTRACT : HPCT_STAGE_COPY;
        return HPCT_OK;
    case OPTION_LINKS:
        if (strcmp(value, "refuse") != 0 && strcmp(value, "follow") != 0)
            return hpct_fail(HPCT_ERR_USAGE, "--links: '%s' is neither refuse nor follow", value);
        a->place.follow = *value == 'f';
        return HPCT_OK;
    case OPTION_MEMORY:
        if (!hpct_bytes_parse(value, &a->place.memory))
            return hpct_fail(HPCT_ERR_USAGE, "--memory: '%s' is no size such as 16G", value);
        return HPCT_OK;
    case OPTION_MAX:
        if (!hpct_bytes_parse(value, &a->place.max))
            return hpct_fail(HPCT_ERR_USAGE, "--max: '%s' is no size such as 500G", value);
        return HPCT_OK;
    case OPTION_ALLOW:
        if (a->place.num_allowed == MAX_ALLOWED)
            return hpct_fail(HPCT_ERR_USAGE, "--allow: more than %d prefixes", MAX_ALLOWED);
        a->allowed[a->place.num_allowed++] = value;
        return HPCT_OK;
    case OPTION_PROGRESS:
        if (!hpct_number_parse(value, 0, 1 << 20, &number))
            return hpct_fail(HPCT_ERR_USAGE, "--progress-fd: '%s' is no number", value);
        a->progress_fd = (int) number;
        return HPCT_OK;
    case 'v':
        a->verbose = true;
        return HPCT_OK;
    default:
        return hpct_fail(HPCT_ERR_USAGE, "see hpc-train-stage --help");
    }
}

/* -1: go on; else the exit status. */
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
        {"progress-fd", required_argument, NULL, OPTION_PROGRESS},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, OPTION_HELP},
        {"version", no_argument, NULL, OPTION_VERSION},
        {0},
    };
    hpct_status status = HPCT_OK;
    for (int option; (option = getopt_long(argc, argv, "v", options, NULL)) != -1;) {
        if (option == OPTION_HELP)
            return fputs(usage, stdout) < 0;
        if (option == OPTION_VERSION)
            return printf("hpc-train-stage %s\n", HPCT_VERSION) < 0;
        status = take(a, option, optarg);
        if (status != HPCT_OK)
            goto fail;
    }
    for (; optind < argc; optind++) {
        status = hpct_stage_list_add(&a->list, argv[optind]);
        if (status != HPCT_OK)
            goto fail;
    }
    if (a->place.to == NULL || a->list.count == 0) {
        status = hpct_fail(HPCT_ERR_USAGE, "--to DIR and at least one source are needed; see "
                                           "hpc-train-stage --help");
        goto fail;
    }
    return -1;
fail:
    fprintf(stderr, "hpc-train-stage: %s\n", hpct_last_error());
    return (int) status;
}

int main(int argc, char **argv)
{
    arguments a = {.progress_fd = -1};
    hpct_report report;
    a.place.allowed = a.allowed;
    hpct_report_catch_signals();
    setlocale(LC_CTYPE, "C.UTF-8"); /* libarchive keeps only names that the locale has */
    if (argc > 1 && strcmp(argv[1], "--out") == 0)
        return hpct_out_main(argc - 1, argv + 1);
    umask(0); /* every mode is said in full, and staged files keep theirs without a further call */
    int done = read_arguments(argc, argv, &a);
    if (done < 0) {
        hpct_report_start(&report, a.verbose, a.progress_fd);
        hpct_status status = hpct_place_all(&a.place, &a.list, &report);
        if (status == HPCT_OK)
            hpct_report_end(&report, a.place.to);
        else
            hpct_report_say("%s", hpct_last_error());
        done = (int) status;
    }
    hpct_stage_list_free(&a.list);
    return done;
}
