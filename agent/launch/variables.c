/* What srun's variables would do to a restart. */
#include "agent/launch/variables.h"

#include "agent/launch/command.h"
#include "base/ask.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_SECONDS 10
#define MOST_BYTES (1 << 20)

/* Of one node's "gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:2),nic:1" the number of GPUs, of all types or
 * of `type`. */
static long count_gpus(const char *gres, const char *type, size_t type_size)
{
    long count = 0;
    for (const char *at = gres; (at = strstr(at, "gpu:")) != NULL;) {
        bool begins = at == gres || at[-1] == ',';
        const char *rest = at += strlen("gpu:");
        size_t size = strcspn(rest, ":( ,");
        bool typed = rest[size] == ':';
        if (begins &&
            (type_size == 0 || (typed && size == type_size && strncmp(rest, type, size) == 0)))
            count += strtol(typed ? rest + size + 1 : rest, NULL, 10);
    }
    return count;
}

/* The line of a job; of an array's first job Slurm shows all. */
static const char *find_job(const char *text, const char *job)
{
    size_t size = strlen(job);
    for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, "JobId=", 6) == 0 && strncmp(at + 6, job, size) == 0 && at[6 + size] == ' ')
            return at;
    }
    return "";
}

hpct_status hpct_launch_gpus_per_node(const char *gpus, const char *job, const char *text,
                                      char *out, size_t size)
{
    static const char key[] = " GRES=";
    const char *colon = strchr(gpus, ':'), *line = find_job(text, job);
    const char *end = strchrnul(line, '\n');
    const size_t type = colon != NULL ? (size_t) (colon - gpus) : 0;
    long each = strchr(gpus, ',') != NULL ? 0 : -1; /* -1: no node yet */
    for (const char *at = line; (at = strstr(at, key)) != NULL && at < end;) {
        char gres[1024];
        at += sizeof key - 1;
        snprintf(gres, sizeof gres, "%.*s", (int) strcspn(at, " \n"), at);
        long count = count_gpus(gres, gpus, type);
        each = each < 0 || each == count ? count : 0;
    }
    if (each <= 0)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "launch: SLURM_GPUS=%s is a number for all nodes, and they have not the "
                         "same number each: give launch --gpus-per-node, or submit the job with "
                         "it instead of --gpus",
                         gpus);
    snprintf(out, size, "%.*s%ld", (int) (type > 0 ? type + 1 : 0), gpus, each);
    return HPCT_OK;
}

/* SLURM_GPUS, of sbatch --gpus, is a number for all nodes: srun refuses it on fewer. */
static hpct_status divide_gpus(const char *gpus, const char *job)
{
    char each[64], number[32], *text = malloc(MOST_BYTES);
    snprintf(number, sizeof number, "%s", job);
    char *const arguments[] = {"scontrol", "--oneliner", "--details", "show", "job", number, NULL};
    const hpct_ask ask = {.arguments = arguments, .seconds = ASK_SECONDS};
    hpct_status status =
        text != NULL ? hpct_ask_run(&ask, text, MOST_BYTES) : hpct_fail_memory(MOST_BYTES);
    if (status == HPCT_OK)
        status = hpct_launch_gpus_per_node(gpus, job, text, each, sizeof each);
    free(text);
    if (status == HPCT_OK && setenv("SLURM_GPUS_PER_NODE", each, 1) != 0)
        status = hpct_fail_memory(0);
    return status;
}

hpct_status hpct_launch_set_variables(char *const *options, const char *job)
{
    const char *gpus = getenv("SLURM_GPUS");
    if (!hpct_launch_goes_on(options))
        unsetenv("SLURM_NO_KILL"); /* else a step goes on without a node */
    if (gpus != NULL && !hpct_launch_divides_gpus(options))
        HPCT_TRY(divide_gpus(gpus, job));
    unsetenv("SLURM_GPUS");
    return HPCT_OK;
}

/* srun sends all variables of this form to the tasks, whatever is exported. */
hpct_status hpct_launch_set_hosts(const char *list, int nodes)
{
    char number[16];
    snprintf(number, sizeof number, "%d", nodes);
    unsetenv("SLURM_HOSTFILE");
    bool set = setenv("SLURM_ARBITRARY_NODELIST", list, 1) == 0 &&
               setenv("SLURM_NNODES", number, 1) == 0 &&
               setenv("SLURM_JOB_NUM_NODES", number, 1) == 0;
    return set ? HPCT_OK : hpct_fail_memory(0);
}
