/* Host lists: any text is expanded within bounds or refused with a message. */
#include "base/cluster/nodelist.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char **names = NULL;
    int count = 0;
    char *text = strndup((const char *) data, size);
    if (hpct_cluster_nodelist_expand(text, &names, &count) == HPCT_OK) {
        if (count < 1 || count > HPCT_CLUSTER_MAX_NODES)
            abort();
        for (int i = 0; i < count; i++) {
            if (strlen(names[i]) > HPCT_CLUSTER_MAX_NODE_NAME ||
                strpbrk(names[i], "[], \n\"\\:") != NULL)
                abort();
        }
        hpct_cluster_names_free(names, count);
    } else if (*hpct_last_error() == '\0') {
        abort();
    }
    free(text);
    return 0;
}
