/* The one file that differs between Slurm's releases. What slurm.h declares keeps the type that it
 * has there: nothing of it is declared by hand. */
#include <config.h>

#include "spank/slurm_release.h"

#include <netdb.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A failure of slurm_spank_init costs the job, not the node: Slurm 25.05 and later would drain it
 * otherwise. The declaration comes from spank.h where that has it. */
#if HAVE_DECL_SLURM_SPANK_INIT_FAILURE_MODE
__attribute__((visibility("default"))) int slurm_spank_init_failure_mode = ESPANK_JOB_FAILURE;
#endif

/* Slurm's configuration as the process that loaded the plugin has read it. The structure is
 * slurm.h's, of one major version as is the plugin; the variable is in no public header. */
extern slurm_conf_t slurm_conf __attribute__((weak));

int hpct_slurm_kill_wait(void)
{
    int seconds = &slurm_conf == NULL ? 0 : (int) slurm_conf.kill_wait;
    return seconds < 5 ? 5 : seconds; /* as slurmd has it */
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

/* No item of SPANK has addresses, and to ask slurmctld for ten thousand nodes in every task is too
 * much; but slurmstepd has them in its memory. In no public header; the same from 22.05 to 26.05.
 * The first takes a NodeHostname, the others a NodeName. */
extern char *slurm_conf_get_nodeaddr(const char *host) __attribute__((weak));
extern char *slurm_conf_get_hostname(const char *node) __attribute__((weak));
extern int slurm_conf_get_addr(const char *node, slurm_addr_t *address, uint16_t flags)
    __attribute__((weak));

static char *written_address(const char *node)
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

/* A node without a written address has one in binary, from the credential. */
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

/* In Slurm's library, which the daemons bring; programs that load the plugin without it still can.
 */
#pragma weak slurm_signal_job_step
#pragma weak slurm_kill_job_step
#pragma weak slurm_complete_job

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
    const uint32_t status = (uint32_t) code << 8; /* as waitpid has it */
    if (slurm_complete_job == NULL)
        return;
#ifdef SLURM_COMPLETE_STEP_ID
    slurm_step_id_t id = step_of(job, NO_VAL);
    slurm_complete_job(&id, status);
#else
    slurm_complete_job(job, status);
#endif
}
