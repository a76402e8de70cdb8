/* Frees a config. */
#include "base/cluster/config.h"

#include <stdlib.h>

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
