/* squeue prints a line for every task of a job array when it is asked for the one whose number is
 * the array's. */
#include "agent/rank/squeue.h"

#include "base/ask.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (4 << 20)

/* What follows the job's number in its line; NULL: it has none. */
static const char *find(char *text, const char *job)
{
    char *rest = NULL;
    size_t length = strlen(job);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, job, length) == 0 && line[length] == ' ')
            return line + length + 1;
    }
    return NULL;
}

hpct_status hpct_rank_squeue_ask(char **out, const hpct_rank_squeue *question)
{
    char job[32], format[32], *text = malloc(MOST_BYTES);
    snprintf(job, sizeof job, "%s", question->job);
    snprintf(format, sizeof format, "%%A %s", question->format);
    char *const arguments[] = {
        "env", "SLURM_TIME_FORMAT=%s", "squeue", "--noheader", "--jobs", job, "--format", format,
        NULL};
    const hpct_ask ask = {.arguments = arguments,
                          .seconds = question->seconds,
                          .is_cancelled = question->is_cancelled,
                          .context = question->context};
    if (text == NULL)
        return hpct_fail_memory(MOST_BYTES);
    hpct_status status = hpct_ask_run(&ask, text, MOST_BYTES);
    const char *value = status == HPCT_OK ? find(text, job) : NULL;
    if (status == HPCT_OK && value == NULL)
        status = hpct_fail(HPCT_ERR_IO, "squeue does not know job %s", job);
    if (status == HPCT_OK && (*out = strdup(value)) == NULL)
        status = hpct_fail_memory(0);
    free(text);
    return status;
}
