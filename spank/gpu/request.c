/* Parses the helper's input. */
#include "spank/gpu/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "spank/gpu/assign.h"

static bool read_cpus(const char *text, hpct_gpus_request_task *task)
{
    for (;; text++) {
        long first, last;
        if (!hpct_number_scan(&text, HPCT_GPUS_REQUEST_CPUS - 1, &first))
            return false;
        last = first;
        if (*text == '-') {
            text++;
            if (!hpct_number_scan(&text, HPCT_GPUS_REQUEST_CPUS - 1, &last))
                return false;
        }
        for (; first <= last; first++)
            task->cpus[first / 8] |= (unsigned char) (1 << first % 8);
        if (*text == '\0')
            return true;
        if (*text != ',')
            return false;
    }
}

/* Index of the name in the request's list, adding it if new; -1 if there are too many. */
static int place_of(hpct_gpus_request *request, const char *name)
{
    for (int i = 0; i < request->num_gpus; i++) {
        if (strcmp(request->gpus[i], name) == 0)
            return i;
    }
    if (request->num_gpus == HPCT_GPUS_MAX_GPUS)
        return -1;
    request->gpus[request->num_gpus] = strdup(name);
    return request->gpus[request->num_gpus] == NULL ? -1 : request->num_gpus++;
}

static bool read_gpus(char *text, hpct_gpus_request *request, hpct_gpus_request_task *task)
{
    char *rest = NULL;
    task->gpus = calloc(HPCT_GPUS_MAX_GPUS, sizeof *task->gpus);
    for (char *name = strtok_r(text, ",", &rest); task->gpus != NULL && name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        int place = place_of(request, name);
        if (place < 0 || task->num_gpus == HPCT_GPUS_MAX_GPUS)
            return false;
        task->gpus[task->num_gpus++] = place;
    }
    return task->num_gpus > 0;
}

hpct_status hpct_gpus_request_read(FILE *file, hpct_gpus_request *out)
{
    hpct_gpus_request request = {0};
    hpct_status status = HPCT_OK;
    char *text = NULL;
    size_t room = 0;
    request.tasks = calloc(HPCT_GPUS_MAX_TASKS, sizeof *request.tasks);
    request.gpus = calloc(HPCT_GPUS_MAX_GPUS, sizeof *request.gpus);
    if (request.tasks == NULL || request.gpus == NULL)
        status = hpct_fail_memory(0);
    while (status == HPCT_OK && getline(&text, &room, file) >= 0) {
        char *rest = NULL, *cpus = strtok_r(text, " \n", &rest), *gpus;
        gpus = cpus == NULL ? NULL : strtok_r(NULL, " \n", &rest);
        hpct_gpus_request_task *task = &request.tasks[request.num_tasks];
        if (request.num_tasks == HPCT_GPUS_MAX_TASKS)
            status = hpct_fail(HPCT_ERR_USAGE, "more than %d tasks", HPCT_GPUS_MAX_TASKS);
        else if (request.num_tasks++,
                 gpus == NULL || !read_cpus(cpus, task) || !read_gpus(gpus, &request, task))
            status = hpct_fail(HPCT_ERR_USAGE, "line %d is not 'CPUS GPUS', with at most %d GPUs",
                               request.num_tasks, HPCT_GPUS_MAX_GPUS);
    }
    free(text);
    if (status == HPCT_OK && request.num_tasks == 0)
        status = hpct_fail(HPCT_ERR_USAGE, "no task is given");
    if (status != HPCT_OK)
        hpct_gpus_request_free(&request);
    else
        *out = request;
    return status;
}

void hpct_gpus_request_free(hpct_gpus_request *request)
{
    for (int i = 0; i < request->num_tasks; i++)
        free(request->tasks[i].gpus);
    for (int i = 0; i < request->num_gpus; i++)
        free(request->gpus[i]);
    free(request->tasks);
    free(request->gpus);
    *request = (hpct_gpus_request){0};
}

bool hpct_gpus_request_runs_on(const hpct_gpus_request_task *task, int cpu)
{
    return (task->cpus[cpu / 8] >> cpu % 8 & 1) != 0;
}
