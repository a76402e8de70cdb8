/* Sources of variables; frees a config. */
#include "base/cluster/config.h"

#include <stdlib.h>

#include "base/number.h"

static const char *get_own(void *context, const char *name)
{
    (void) context;
    return getenv(name);
}

const hpct_cluster_environment hpct_cluster_environment_own = {.get = get_own};

const char *hpct_cluster_environment_get(const hpct_cluster_environment *environment,
                                         const char *name)
{
    const char *value = environment->get(environment->context, name);
    return value != NULL && *value != '\0' ? value : NULL;
}

long hpct_cluster_environment_number(const hpct_cluster_environment *environment, const char *name,
                                     long max, long otherwise)
{
    const char *text = hpct_cluster_environment_get(environment, name);
    long number = 0;
    return text != NULL && hpct_number_parse(text, 0, max, &number) ? number : otherwise;
}

void hpct_cluster_config_free(hpct_cluster_config *config)
{
    if (config == NULL)
        return;
    for (int i = 0; config->nodes != NULL && i < config->num_nodes; i++)
        free(config->nodes[i].name);
    for (int i = 0; config->roles != NULL && i < config->num_roles; i++)
        free(config->roles[i].name);
    for (int i = 0; config->addresses != NULL && i < config->size; i++)
        free(config->addresses[i]);
    free(config->nodes);
    free(config->roles);
    free(config->addresses);
    free(config->job);
    free(config->role);
    free(config->gpu);
    free(config->tmpdir);
    free(config->data);
    free(config);
}
