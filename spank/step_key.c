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

bool hpct_spank_step_key_take(hpct_auth_key *key, hpct_slurm *slurm, bool alone)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    const char *text = environment.get(environment.context, HPCT_SPANK_STEP_KEY_SENT);
    bool has = text != NULL && hpct_auth_key_from_text(key, text);
    if (text != NULL)
        hpct_slurm_set(slurm, HPCT_SPANK_STEP_KEY_SENT, NULL);
    return has || (alone && hpct_auth_key_draw(key) == HPCT_OK);
}

int hpct_spank_step_port_take(hpct_slurm *slurm, const char *variable)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    const char *text = environment.get(environment.context, variable);
    long port = 0;
    bool sent = text != NULL && hpct_number_parse(text, 1, HPCT_CLUSTER_HIGHEST_PORT, &port);
    if (text != NULL)
        hpct_slurm_set(slurm, variable, NULL);
    return sent ? (int) port : 0;
}

int64_t hpct_spank_step_end_take(hpct_slurm *slurm)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    const char *sent = environment.get(environment.context, HPCT_SPANK_STEP_END_SENT), *text = sent;
    long end = 0;
    if (text == NULL)
        text = environment.get(environment.context, "SLURM_JOB_END_TIME");
    if (text != NULL && !hpct_number_parse(text, 1, LONG_MAX, &end))
        end = 0;
    if (sent != NULL)
        hpct_slurm_set(slurm, HPCT_SPANK_STEP_END_SENT, NULL);
    return end;
}

char *hpct_spank_step_folder_take(hpct_slurm *slurm)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    const char *text = environment.get(environment.context, HPCT_SPANK_STEP_FOLDER_SENT);
    char *folder = text == NULL || *text != '/' || strlen(text) >= PATH_MAX ? NULL : strdup(text);
    if (text != NULL)
        hpct_slurm_set(slurm, HPCT_SPANK_STEP_FOLDER_SENT, NULL);
    return folder;
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
