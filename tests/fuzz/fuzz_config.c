/* The config's JSON: what is accepted can be written again and says the same. */
#include "base/cluster/config.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hpct_cluster_config *config = NULL, *again = NULL;
    char *text = NULL;
    if (hpct_cluster_config_from_json((const char *) data, size, "input", &config) != HPCT_OK)
        return 0;
    if (config->rank >= config->size || config->local_rank >= config->local_size)
        abort();
    if (hpct_cluster_config_to_json(config, &text) != HPCT_OK ||
        hpct_cluster_config_from_json(text, strlen(text), "output", &again) != HPCT_OK ||
        again->rank != config->rank || again->size != config->size ||
        strcmp(again->addresses[again->rank], config->addresses[config->rank]) != 0)
        abort();
    free(text);
    hpct_cluster_config_free(config);
    hpct_cluster_config_free(again);
    return 0;
}
