/* The thin layer over SPANK. */
#include "spank/slurm_api.h"

#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

bool hpct_slurm_get(hpct_slurm *slurm, hpct_slurm_item item, uint32_t *value)
{
    static const spank_item_t items[] = {
        [HPCT_SLURM_UID] = S_JOB_UID,
        [HPCT_SLURM_GID] = S_JOB_GID,
        [HPCT_SLURM_JOB] = S_JOB_ID,
        [HPCT_SLURM_STEP] = S_JOB_STEPID,
        [HPCT_SLURM_NODE] = S_JOB_NODEID,
        [HPCT_SLURM_LOCAL_TASKS] = S_JOB_LOCAL_TASK_COUNT,
        [HPCT_SLURM_TOTAL_TASKS] = S_JOB_TOTAL_TASK_COUNT,
        [HPCT_SLURM_TASK] = S_TASK_ID,
        [HPCT_SLURM_RANK] = S_TASK_GLOBAL_ID,
        [HPCT_SLURM_NODES] = S_JOB_NNODES,
        [HPCT_SLURM_PID] = S_TASK_PID,
        [HPCT_SLURM_STATUS] = S_TASK_EXIT_STATUS,
        [HPCT_SLURM_ARRAY] = S_JOB_ARRAY_ID,
    };
    /* uid_t, gid_t and int have the width of uint32_t wherever Slurm runs */
    return spank_get_item(slurm, items[item], value) == ESPANK_SUCCESS;
}

bool hpct_slurm_task_of(hpct_slurm *slurm, uint32_t local, uint32_t *task)
{
    return spank_get_item(slurm, S_JOB_LOCAL_TO_GLOBAL_ID, local, task) == ESPANK_SUCCESS;
}

uint64_t hpct_slurm_memory(hpct_slurm *slurm)
{
    uint64_t megabytes = 0;
    if (spank_get_item(slurm, S_JOB_ALLOC_MEM, &megabytes) != ESPANK_SUCCESS ||
        megabytes >= NO_VAL64 || megabytes > UINT64_MAX >> 20)
        return 0;
    return megabytes << 20;
}

bool hpct_slurm_person(hpct_slurm *slurm, hpct_spank_person *person)
{
    uint32_t uid = 0, gid = 0;
    gid_t *groups = NULL;
    int count = 0;
    if (!hpct_slurm_get(slurm, HPCT_SLURM_UID, &uid) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_GID, &gid) ||
        spank_get_item(slurm, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) != ESPANK_SUCCESS ||
        count < 0)
        return false;
    *person = (hpct_spank_person){.uid = uid, .gid = gid, .num_groups = (size_t) count};
    person->groups = calloc(person->num_groups + 1, sizeof *person->groups);
    if (person->groups == NULL)
        return false;
    if (count > 0)
        memcpy(person->groups, groups, person->num_groups * sizeof *groups);
    return true;
}

hpct_spank_step_kind hpct_slurm_step_kind(uint32_t step)
{
    if (step == SLURM_BATCH_SCRIPT || step == SLURM_INTERACTIVE_STEP)
        return HPCT_SPANK_STEP_SCRIPT;
    return step > SLURM_MAX_NORMAL_STEP_ID ? HPCT_SPANK_STEP_OTHER : HPCT_SPANK_STEP_TASKS;
}

static const char *get(void *context, const char *name)
{
    char **environment = NULL;
    size_t size = strlen(name);
    if (spank_get_item(context, S_JOB_ENV, &environment) != ESPANK_SUCCESS || environment == NULL)
        return NULL;
    for (; *environment != NULL; environment++) {
        if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=')
            return *environment + size + 1;
    }
    return NULL;
}

hpct_cluster_environment hpct_slurm_environment(hpct_slurm *slurm)
{
    return (hpct_cluster_environment){.get = get, .context = slurm};
}

hpct_status hpct_slurm_set(void *slurm, const char *name, const char *value)
{
    if (value == NULL) {
        spank_unsetenv(slurm, name);
        return HPCT_OK;
    }
    spank_err_t error = spank_setenv(slurm, name, value, 1);
    if (error != ESPANK_SUCCESS)
        return hpct_fail(HPCT_ERR_INTERNAL, "Slurm rejected the variable %s: %s", name,
                         spank_strerror(error));
    return HPCT_OK;
}

/* Names chosen by users (node's variable, file) must not start new lines in the daemon's log. */
static const char *print_line(char text[2048], const char *format, va_list args)
{
    vsnprintf(text, 2048, format, args);
    for (char *p = text; *p != '\0'; p++)
        *p = (unsigned char) *p < 0x20 || *p == 0x7f ? '?' : *p;
    return text;
}

void hpct_slurm_error(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    slurm_error("hpc-train: %s", print_line(text, format, args));
    va_end(args);
}

void hpct_slurm_info(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    slurm_info("hpc-train: %s", print_line(text, format, args));
    va_end(args);
}
