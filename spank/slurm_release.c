/* The only file that differs between Slurm releases. Declarations come from slurm.h; nothing in it
 * is redeclared. */
#include <config.h>

#include "base/status.h"
#include "spank/slurm_release.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* An error of slurm_spank_init ends the job instead of draining the node (Slurm 25.05 and later).
 * Declared in spank.h where it exists. */
#if HAVE_DECL_SLURM_SPANK_INIT_FAILURE_MODE
__attribute__((visibility("default"))) int slurm_spank_init_failure_mode = ESPANK_JOB_FAILURE;
#endif

/* Slurm's configuration as loaded by the process. The structure is from slurm.h of the same major
 * version; the variable is in no public header. */
extern slurm_conf_t slurm_conf __attribute__((weak));

int hpct_slurm_kill_wait(void)
{
    int seconds = &slurm_conf == NULL ? 0 : (int) slurm_conf.kill_wait;
    return seconds < 5 ? 5 : seconds; /* slurmd uses the same minimum */
}

int hpct_slurm_epilog_limit(void)
{
    if (&slurm_conf == NULL)
        return 0;
#ifdef HAVE_SLURM_CONF_T_EPILOG_TIMEOUT
    uint16_t seconds = slurm_conf.epilog_timeout;
#else
    uint16_t seconds = slurm_conf.prolog_epilog_timeout;
#endif
    return seconds >= NO_VAL16 ? 0 : seconds;
}

bool hpct_slurm_uses_munge(void)
{
    return &slurm_conf != NULL && slurm_conf.authtype != NULL &&
           strcmp(slurm_conf.authtype, "auth/munge") == 0;
}

void hpct_slurm_srun_ports(int *low, int *high)
{
    const uint16_t *range = &slurm_conf == NULL ? NULL : slurm_conf.srun_port_range;
    *low = range == NULL ? 0 : range[0];
    *high = range == NULL ? 0 : range[1];
}

int64_t hpct_slurm_end_time(uint32_t job)
{
#ifdef SLURM_END_TIME_NUMBER
    time_t end = 0;
    return slurm_get_end_time(job, &end) == SLURM_SUCCESS ? (int64_t) end : 0;
#else
    (void) job;
    return 0;
#endif
}

/* SPANK has no item for addresses, and querying slurmctld for ten thousand nodes from every task is
 * too expensive; but slurmstepd has them in memory. In no public header; unchanged from 22.05 to
 * 26.05. The first function takes a NodeHostname, the others a NodeName. */
extern char *slurm_conf_get_nodeaddr(const char *host) __attribute__((weak));
extern char *slurm_conf_get_hostname(const char *node) __attribute__((weak));
extern int slurm_conf_get_addr(const char *node, slurm_addr_t *address, uint16_t flags)
    __attribute__((weak));

static char *written_address(const char *node)
{
    if (slurm_conf_get_nodeaddr == NULL || slurm_conf_get_hostname == NULL)
        return NULL;
    const char *address = slurm_conf_get_nodeaddr(node), *host; /* usually both names are equal */
    if (address == NULL && (host = slurm_conf_get_hostname(node)) != NULL)
        address = slurm_conf_get_nodeaddr(host);
    /* Freed by exec of the task's program; how Slurm frees its strings differs between releases. */
    return address == NULL ? NULL : strdup(address);
}

/* Nodes without a text address have a binary one, in the credential. */
static char *binary_address(const char *node)
{
    char text[NI_MAXHOST];
    slurm_addr_t address = {0};
    if (slurm_conf_get_addr == NULL || slurm_conf_get_addr(node, &address, 0) != SLURM_SUCCESS ||
        getnameinfo((const struct sockaddr *) &address, sizeof address, text, sizeof text, NULL, 0,
                    NI_NUMERICHOST) != 0)
        return NULL;
    return strdup(text);
}

char *hpct_slurm_address(const char *node)
{
    char *address = written_address(node);
    return address != NULL ? address : binary_address(node);
}

/* In Slurm's library, linked by the daemons; other programs can still load the plugin. */
#pragma weak slurm_signal_job_step
#pragma weak slurm_kill_job_step
#pragma weak slurm_complete_job

#pragma weak slurm_job_step_layout_get
#pragma weak slurm_job_step_layout_free

char *hpct_slurm_step_nodes(uint32_t job, uint32_t step)
{
#ifdef SLURM_STEP_ID_INITIALIZER
    slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;
#else
    slurm_step_id_t id = {.step_het_comp = NO_VAL};
#endif
    id.job_id = job;
    id.step_id = step;
    slurm_step_layout_t *layout =
        slurm_job_step_layout_get == NULL ? NULL : slurm_job_step_layout_get(&id);
    char *nodes = layout == NULL || layout->node_list == NULL ? NULL : strdup(layout->node_list);
    if (layout != NULL && slurm_job_step_layout_free != NULL)
        slurm_job_step_layout_free(layout);
    return nodes;
}

#if defined SLURM_KILL_STEP_ID || defined SLURM_SIGNAL_STEP_ID || defined SLURM_COMPLETE_STEP_ID
static slurm_step_id_t step_of(uint32_t job, uint32_t step)
{
    slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;
    id.job_id = job;
    id.step_id = step;
    return id;
}
#endif

bool hpct_slurm_end_step(uint32_t job, uint32_t step)
{
    if (slurm_signal_job_step == NULL)
        return true;
#ifdef SLURM_SIGNAL_STEP_ID
    slurm_step_id_t id = step_of(job, step);
    return slurm_signal_job_step(&id, SIGKILL) == 0;
#else
    return slurm_signal_job_step(job, step, SIGKILL) == 0;
#endif
}

void hpct_slurm_signal_step(uint32_t job, uint32_t step, int number)
{
    uint16_t sent = (uint16_t) number;
    if (slurm_kill_job_step == NULL)
        return;
#if defined SLURM_KILL_STEP_ID
    slurm_step_id_t id = step_of(job, step);
    slurm_kill_job_step(&id, sent, 0);
#elif defined SLURM_KILL_NUMBERS_FLAGS
    slurm_kill_job_step(job, step, sent, 0);
#else
    slurm_kill_job_step(job, step, sent);
#endif
}

void hpct_slurm_end_job(uint32_t job, int code)
{
    const uint32_t status = (uint32_t) code << 8; /* wait status as of waitpid */
    if (slurm_complete_job == NULL)
        return;
#ifdef SLURM_COMPLETE_STEP_ID
    slurm_step_id_t id = step_of(job, NO_VAL);
    slurm_complete_job(&id, status);
#else
    slurm_complete_job(job, status);
#endif
}

bool hpct_slurm_ran_out(uint32_t job)
{
    bool ran_out = false;
#ifdef SLURM_LOAD_JOB_NUMBER
    job_info_msg_t *jobs = NULL;
    if (slurm_load_job(&jobs, job, 0) != SLURM_SUCCESS || jobs == NULL)
        return false;
    for (uint32_t i = 0; i < jobs->record_count; i++)
        ran_out |= jobs->job_array[i].job_id == job &&
                   (jobs->job_array[i].job_state & JOB_STATE_BASE) == JOB_TIMEOUT;
    slurm_free_job_info_msg(jobs);
#else
    (void) job;
#endif
    return ran_out;
}

hpct_status hpct_slurm_requeue(uint32_t job)
{
#ifdef SLURM_REQUEUE_NUMBER
    if (slurm_requeue(job, 0) == SLURM_SUCCESS)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG, "%s", slurm_strerror(errno));
#else
    return hpct_fail(HPCT_ERR_CONFIG, "job %u: this release of Slurm is not known to hpc-train",
                     job);
#endif
}
