/* Sent like the step's key (spank/step_key.h): Slurm forwards variables that begin with SLURM_. */
#include "spank/defaults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

typedef char sent_name[64];

static const char *name_of(hpct_spank_option option, sent_name name)
{
    snprintf(name, sizeof(sent_name), "SLURM_DEFAULT_%s", hpct_spank_option_table[option].variable);
    return name;
}

static bool is_variable(const char *entry)
{
    bool is = false;
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        size_t size = strlen(hpct_spank_option_table[i].variable);
        is = is ||
             (strncmp(entry, hpct_spank_option_table[i].variable, size) == 0 && entry[size] == '=');
    }
    return is;
}

/* True for e.g. HPC_TRAIN_STAGEOUT, false for a site's own HPC_TRAIN_STAGE_DIR. */
static bool is_mistyped(const char *entry)
{
    static const char *const known[] = {"STAGEMODE", "STAGEOUT", "STAGEOUTS", "STAGES", "STAGING"};
    char letters[16] = "";
    size_t used = 0;
    for (const char *p = entry + strlen("HPC_TRAIN_"); *p != '\0' && *p != '='; p++) {
        if (*p != '_' && used < sizeof letters - 1)
            letters[used++] = *p;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(letters, known[i]) == 0)
            return !is_variable(entry);
    }
    return false;
}

hpct_status hpct_spank_defaults_check(char *const *environment)
{
    static const char begin[] = "HPC_TRAIN_STAGE";
    for (; environment != NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, begin, sizeof begin - 1) == 0 && is_mistyped(*environment))
            return hpct_fail(HPCT_ERR_USAGE,
                             "%.*s means nothing: there are HPC_TRAIN_STAGE, HPC_TRAIN_STAGE_MODE "
                             "and HPC_TRAIN_STAGE_OUT",
                             (int) strcspn(*environment, "="), *environment);
    }
    return HPCT_OK;
}

hpct_status hpct_spank_defaults_send(void)
{
    sent_name name;
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        const char *value = getenv(hpct_spank_option_table[i].variable);
        bool set = value != NULL && *value != '\0';
        name_of((hpct_spank_option) i, name);
        if ((set ? setenv(name, value, 1) : unsetenv(name)) != 0)
            return hpct_fail_memory(0);
    }
    return HPCT_OK;
}

/* *same: false if the step has another value of its own. */
static hpct_status take_variable(hpct_slurm *slurm, const char *variable, const char *name,
                                 const char *sent, bool *same)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    hpct_status status = HPCT_OK;
    const char *own = environment.get(environment.context, variable);
    *same = own == NULL || strcmp(own, sent) == 0;
    char *value = strdup(sent); /* `sent` is in the environment changed below */
    if (value == NULL)
        return hpct_fail_memory(strlen(sent));
    if (own == NULL)
        status = hpct_slurm_set(slurm, variable, value);
    hpct_slurm_set(slurm, name, NULL);
    free(value);
    return status;
}

hpct_status hpct_spank_defaults_take(hpct_slurm *slurm, unsigned *sent)
{
    hpct_cluster_environment environment = hpct_slurm_environment(slurm);
    hpct_status status = HPCT_OK;
    sent_name name;
    *sent = 0;
    for (int i = 0; i < HPCT_SPANK_NUM_OPTIONS; i++) {
        const char *value =
            environment.get(environment.context, name_of((hpct_spank_option) i, name));
        if (value == NULL)
            continue;
        bool same = false;
        hpct_status this =
            take_variable(slurm, hpct_spank_option_table[i].variable, name, value, &same);
        *sent |= (unsigned) same << i;
        status = status == HPCT_OK ? this : status;
    }
    return status;
}
