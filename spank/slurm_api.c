/* The thin layer over SPANK. */
#include "spank/slurm_api.h"

#include <signal.h>
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
    };
    /* uid_t, gid_t and int are as wide as uint32_t wherever Slurm runs */
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

bool hpct_slurm_person(hpct_slurm *slurm, hpct_person *person)
{
    uint32_t uid = 0, gid = 0;
    gid_t *groups = NULL;
    int count = 0;
    if (!hpct_slurm_get(slurm, HPCT_SLURM_UID, &uid) ||
        !hpct_slurm_get(slurm, HPCT_SLURM_GID, &gid) ||
        spank_get_item(slurm, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) != ESPANK_SUCCESS ||
        count < 0)
        return false;
    *person = (hpct_person){.uid = uid, .gid = gid, .num_groups = (size_t) count};
    person->groups = calloc(person->num_groups + 1, sizeof *person->groups);
    if (person->groups == NULL)
        return false;
    if (count > 0)
        memcpy(person->groups, groups, person->num_groups * sizeof *groups);
    return true;
}

/* Slurm's configuration as the process that loaded the plugin has read it. Its form is of one
 * major version, as is the plugin; weak, for programs without Slurm's library. */
extern slurm_conf_t slurm_conf __attribute__((weak));

int hpct_slurm_kill_wait(void)
{
    int seconds = &slurm_conf == NULL ? 0 : (int) slurm_conf.kill_wait;
    return seconds < 5 ? 5 : seconds; /* as slurmd has it */
}

int hpct_slurm_epilog_limit(void)
{
    if (&slurm_conf == NULL || slurm_conf.prolog_epilog_timeout >= NO_VAL16)
        return 0;
    return (int) slurm_conf.prolog_epilog_timeout;
}

bool hpct_slurm_uses_munge(void)
{
    return &slurm_conf != NULL && slurm_conf.authtype != NULL &&
           strcmp(slurm_conf.authtype, "auth/munge") == 0;
}

hpct_step_kind hpct_slurm_step_kind(uint32_t step)
{
    if (step == SLURM_BATCH_SCRIPT || step == SLURM_INTERACTIVE_STEP)
        return HPCT_STEP_SCRIPT;
    return step > SLURM_MAX_NORMAL_STEP_ID ? HPCT_STEP_OTHER : HPCT_STEP_TASKS;
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

hpct_environment hpct_slurm_environment(hpct_slurm *slurm)
{
    return (hpct_environment){.get = get, .context = slurm};
}

hpct_status hpct_slurm_set(hpct_slurm *slurm, const char *name, const char *value)
{
    if (value == NULL) {
        spank_unsetenv(slurm, name);
        return HPCT_OK;
    }
    spank_err_t error = spank_setenv(slurm, name, value, 1);
    if (error != ESPANK_SUCCESS)
        return hpct_fail(HPCT_ERR_INTERNAL, "Slurm does not take the variable %s: %s", name,
                         spank_strerror(error));
    return HPCT_OK;
}

/* No item of SPANK has it, and to ask slurmctld for ten thousand nodes in every task is too much;
 * but it is in the configuration that slurmstepd has in its memory. These are not in the public
 * headers; without them the nodes go by their names. The first takes a NodeHostname, the second a
 * NodeName. */
extern char *slurm_conf_get_nodeaddr(const char *host) __attribute__((weak));
extern char *slurm_conf_get_hostname(const char *node) __attribute__((weak));

char *hpct_slurm_address(const char *node)
{
    if (slurm_conf_get_nodeaddr == NULL || slurm_conf_get_hostname == NULL)
        return NULL;
    const char *address = slurm_conf_get_nodeaddr(node), *host; /* mostly both are the same */
    if (address == NULL && (host = slurm_conf_get_hostname(node)) != NULL)
        address = slurm_conf_get_nodeaddr(host);
    /* Slurm's own strings go when the task's program takes this process over; how Slurm frees them
     * differs from release to release. */
    return address == NULL ? NULL : strdup(address);
}

/* In Slurm's library, which the daemons bring; programs that load the plugin without it still can.
 */
extern int slurm_signal_job_step(uint32_t job_id, uint32_t step_id, uint32_t number)
    __attribute__((weak));

bool hpct_slurm_end_step(uint32_t job, uint32_t step)
{
    return slurm_signal_job_step == NULL || slurm_signal_job_step(job, step, SIGKILL) == 0;
}

extern int slurm_kill_job_step(uint32_t job_id, uint32_t step_id, uint16_t number)
    __attribute__((weak));

void hpct_slurm_cancel_step(uint32_t job, uint32_t step)
{
    if (slurm_kill_job_step != NULL)
        slurm_kill_job_step(job, step, SIGKILL);
}

/* Names that users choose (a node's variable, a file) must not begin lines in the daemon's log. */
static void make_one_line(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char) *text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

void hpct_slurm_error(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    make_one_line(text);
    slurm_error("hpc-train: %s", text);
}

void hpct_slurm_info(const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    make_one_line(text);
    slurm_info("hpc-train: %s", text);
}
