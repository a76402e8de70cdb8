/* In srun, at its end: prints what the nodes reported about results and sets srun's exit status. */
#include <config.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/status.h"
#include "spank/agree/results.h"
#include "spank/arguments.h"
#include "spank/contexts.h"
#include "spank/slurm_release.h"
#include "spank/spec/out_record.h"
#include "spank/step_key.h"

/* State that outlives the plugin, until srun ends. */
static struct {
    hpct_agree_results_host *host;
    char *list;
    bool allocates; /* srun allocated the job */
    bool starts;    /* it has nodes, and starts the tasks */
} own;

/* The record of the script that srun runs in. *folder: a descriptor of the job's records, or -1. */
static bool read_script_record(int *folder, hpct_spec_out_record *record)
{
    const char *tmpdir = getenv("SLURM_TMPDIR");
    *record = (hpct_spec_out_record){0};
    *folder = tmpdir == NULL ? -1 : hpct_spec_records_open(tmpdir);
    return *folder >= 0 && hpct_spec_out_record_read(*folder, HPCT_SPEC_OUT_RECORD_PREFIX "batch",
                                                     record) == HPCT_OK;
}

static void free_script_record(int folder, hpct_spec_out_record *record)
{
    hpct_spec_out_record_free(record);
    hpct_fd_close(folder);
}

bool hpct_spank_client_script_array(bool *is_array)
{
    int folder;
    hpct_spec_out_record record;
    bool found = read_script_record(&folder, &record);
    *is_array = found && record.array.is;
    free_script_record(folder, &record);
    return found;
}

/* Notes for the script's slurmstepd which results a step has copied, on any node. False: it does
 * not check. */
static bool leave_to_script(const hpct_agree_results_sum *sum, int count)
{
    int folder;
    hpct_spec_out_record record;
    bool same = read_script_record(&folder, &record) && strcmp(record.list, own.list) == 0;
    for (int i = 0; same && i < count; i++) {
        if (sum->have[i] > 0)
            hpct_spec_out_found_mark(folder, i);
    }
    free_script_record(folder, &record);
    return same;
}

/* slurm_error may have been shut down already */
static void print_line(bool error, const char *text)
{
    fprintf(stderr, "srun: %shpc-train: %s\n", error ? "error: " : "", text);
}

/* An entry that some nodes had, as where rank 0 writes for all. */
static void describe_copied(char *text, size_t size, const char *src,
                            const hpct_agree_results_sum *sum, int entry)
{
    const bool copied = sum->status == HPCT_OK;
    const uint32_t have = sum->have[entry], others = sum->ended - have;
    char where[HPCT_NET_FRAME_NODE + 32];
    if (have > 1)
        snprintf(where, sizeof where, "%u of %u nodes", have, sum->ended);
    else
        snprintf(where, sizeof where, "%s", sum->where[entry]);
    snprintf(text, size, "%s '%.400s' %s %s; it was not on the other node%s",
             copied ? "copied" : "found", src, copied ? "from" : "on", where,
             others == 1 ? "" : "s");
}

static hpct_status report_results(const hpct_agree_results_sum *sum, const hpct_spec_out_list *list)
{
    hpct_status status = sum->status;
    char text[1024];
    bool later = leave_to_script(sum, list->count);
    for (int i = 0; i < list->count; i++) {
        const hpct_spec_out_entry *entry = &list->entries[i];
        const uint32_t have = sum->have[i];
        if (have == sum->ended || (have == 0 && sum->ended < sum->nodes))
            continue;
        if (have > 0)
            describe_copied(text, sizeof text, entry->src, sum, i);
        else if (later)
            snprintf(text, sizeof text, "'%.400s' is not there yet", entry->src);
        else
            snprintf(
                text, sizeof text,
                "--hpc-train-stage-out: '%.300s' was not in $SLURM_TMPDIR%s: nothing is copied "
                "to '%.300s'",
                entry->src, sum->nodes > 1 ? " of any node" : "", entry->dst);
        print_line(have == 0 && !later, text);
        if (have == 0 && !later && status == HPCT_OK)
            status = HPCT_ERR_NO_INPUT;
    }
    if (sum->ended < sum->nodes) {
        snprintf(text, sizeof text, "%u of %u nodes have not said that results are copied",
                 sum->nodes - sum->ended, sum->nodes);
        print_line(true, text);
        status = status == HPCT_OK ? HPCT_ERR_IO : status;
    }
    return status;
}

/* Tasks have ended with 0 on nodes that have told nothing, as where the plugin is missing. */
static hpct_status judge_silence(int status)
{
    if (!own.starts || status != 0)
        return HPCT_OK;
    print_line(true,
               "no node has said what becomes of results: they may be lost; hpc-train-check on the "
               "nodes says whether the plugin is there");
    return HPCT_ERR_IO;
}

void hpct_spank_client_results_start(void)
{
    own.starts = true;
}

static void at_end(int status, void *context)
{
    hpct_agree_results_sum sum;
    hpct_spec_out_list list;
    (void) context;
    hpct_agree_results_end(own.host, &sum);
    if (hpct_spec_out_list_parse(own.list, &list) != HPCT_OK)
        return;
    hpct_status result = sum.nodes > 0 ? report_results(&sum, &list) : judge_silence(status);
    hpct_spec_out_list_free(&list);
    if (status != 0 || result == HPCT_OK)
        return;
    const char *job = getenv("SLURM_JOB_ID");
    if (own.allocates && job != NULL)
        hpct_slurm_end_job((uint32_t) strtoul(job, NULL, 10), result);
    exit(result); /* goes on with the other handlers */
}

/* another job's exit code must not be changed */
static bool allocates(void)
{
    char *const *arguments = hpct_spank_arguments_here();
    bool alone =
        arguments[0] != NULL && getenv("SLURM_JOB_ID") == NULL && getenv("SLURM_JOBID") == NULL;
    for (int i = 1; alone && arguments[i] != NULL; i++)
        alone =
            strncmp(arguments[i], "--jobi", 6) != 0; /* in all forms getopt accepts for --jobid */
    return alone;
}

bool hpct_spank_client_stay_loaded(void)
{
    Dl_info info;
    return dladdr(&own, &info) != 0 &&
           dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
}

/* Of the script's own option, which its steps have, too, relative destinations are the same for
 * all, wherever the script has gone meanwhile. */
static hpct_status send_folder(void)
{
    int folder;
    hpct_spec_out_record record;
    bool same = read_script_record(&folder, &record) && strcmp(record.list, own.list) == 0;
    bool sent = !same || setenv(HPCT_SPANK_STEP_FOLDER_SENT, record.cwd, 1) == 0;
    free_script_record(folder, &record);
    return sent ? HPCT_OK : hpct_fail_memory(0);
}

void hpct_spank_client_hear_results(const hpct_spank_plugin *plugin,
                                    const hpct_spank_choices *choices)
{
    int low = 0, high = 0, port = 0;
    if (own.host != NULL || choices->out.count == 0 || !hpct_spank_client_stay_loaded())
        return;
    const char *list = plugin->options.values[HPCT_SPANK_OPTION_STAGE_OUT];
    if (list == NULL)
        list = getenv(hpct_spank_option_table[HPCT_SPANK_OPTION_STAGE_OUT].variable);
    own.list = list == NULL ? NULL : strdup(list);
    own.allocates = allocates();
    if (own.list == NULL)
        return;
    if (send_folder() != HPCT_OK)
        hpct_slurm_error("relative destinations start from the step's folder: %s",
                         hpct_last_error());
    hpct_slurm_srun_ports(&low, &high);
    hpct_status status = hpct_agree_results_serve(&own.host, &plugin->key, low, high, &port);
    if (status == HPCT_OK && on_exit(at_end, NULL) != 0)
        status = hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = hpct_spank_step_port_send(HPCT_SPANK_STEP_RESULTS_SENT, port);
    if (status != HPCT_OK)
        hpct_slurm_error("the nodes cannot tell srun what becomes of results: %s",
                         hpct_last_error());
}
