/* Sends and receives the step's key by environment variables. */
#include "spank/step_key.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auth/forget.h"
#include "base/cluster/ports.h"
#include "base/number.h"
#include "base/status.h"
#include "spank/describe.h"
#include "spank/options.h"

static hpct_auth_key *sent_key;

/* srun forks a process that ends its job if it is killed, before the key is used: that one needs
 * none. */
static void forget_in_child(void)
{
    char *text = getenv(HPCT_SPANK_STEP_KEY_SENT);
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    explicit_bzero(sent_key, sizeof *sent_key);
}

hpct_status hpct_spank_step_key_send(hpct_auth_key *key)
{
    static bool sent; /* srun calls this once for each component */
    char text[HPCT_AUTH_KEY_TEXT];
    if (sent)
        return HPCT_OK;
    unsetenv(HPCT_SPANK_STEP_PORT_SENT);
    unsetenv(HPCT_SPANK_STEP_RESULTS_SENT);
    unsetenv(HPCT_SPANK_STEP_FOLDER_SENT);
    HPCT_TRY(hpct_auth_key_draw(key));
    hpct_auth_key_to_text(text, key);
    sent_key = key;
    sent = setenv(HPCT_SPANK_STEP_KEY_SENT, text, 1) == 0 &&
           pthread_atfork(NULL, NULL, forget_in_child) == 0;
    explicit_bzero(text, sizeof text);
    return sent ? HPCT_OK : hpct_fail_memory(0);
}

hpct_status hpct_spank_step_port_send(const char *variable, int port)
{
    char text[16];
    snprintf(text, sizeof text, "%d", port);
    return setenv(variable, text, 1) == 0 ? HPCT_OK : hpct_fail_memory(0);
}

void hpct_spank_step_end_send(int64_t end)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, end);
    if (end > 0)
        setenv(HPCT_SPANK_STEP_END_SENT, text, 1);
    else
        unsetenv(HPCT_SPANK_STEP_END_SENT);
}

/* Copies a variable of the step, which is removed; false if there is none, or a longer one. */
static bool take(hpct_slurm *slurm, const char *variable, char *text, size_t size)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    const char *value = environment.get(environment.context, variable);
    if (value == NULL)
        return false;
    bool fits = snprintf(text, size, "%s", value) < (int) size;
    hpct_slurm_set(slurm, variable, NULL);
    return fits;
}

bool hpct_spank_step_key_take(hpct_auth_key *key, hpct_slurm *slurm, bool alone)
{
    char text[HPCT_AUTH_KEY_TEXT];
    bool has = take(slurm, HPCT_SPANK_STEP_KEY_SENT, text, sizeof text) &&
               hpct_auth_key_from_text(key, text);
    explicit_bzero(text, sizeof text);
    return has || (alone && hpct_auth_key_draw(key) == HPCT_OK);
}

int hpct_spank_step_port_take(hpct_slurm *slurm, const char *variable)
{
    char text[16];
    long port = 0;
    return take(slurm, variable, text, sizeof text) &&
                   hpct_number_parse(text, 1, HPCT_CLUSTER_HIGHEST_PORT, &port)
               ? (int) port
               : 0;
}

int64_t hpct_spank_step_end_take(hpct_slurm *slurm)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    char text[24];
    long end = 0;
    if (!take(slurm, HPCT_SPANK_STEP_END_SENT, text, sizeof text))
        return hpct_cluster_environment_number(&environment, "SLURM_JOB_END_TIME", LONG_MAX, 0);
    return hpct_number_parse(text, 1, LONG_MAX, &end) ? end : 0;
}

char *hpct_spank_step_folder_take(hpct_slurm *slurm)
{
    char text[PATH_MAX];
    return take(slurm, HPCT_SPANK_STEP_FOLDER_SENT, text, sizeof text) && *text == '/'
               ? strdup(text)
               : NULL;
}

hpct_status hpct_spank_step_key_write(const hpct_auth_key *key, const char *tmpdir, uint32_t step,
                                      uint32_t rank, char **path)
{
    char name[48], text[HPCT_AUTH_KEY_TEXT + 1];
    snprintf(name, sizeof name, "key.%u.%u", step, rank);
    hpct_auth_key_to_text(text, key);
    strcat(text, "\n");
    hpct_status status = hpct_spank_private_write(tmpdir, name, text, path);
    explicit_bzero(text, sizeof text);
    return status;
}
