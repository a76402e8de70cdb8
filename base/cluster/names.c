/* A sorted index. */
#include "base/cluster/names.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(((const hpct_cluster_names_entry *) a)->name,
                  ((const hpct_cluster_names_entry *) b)->name);
}

bool hpct_cluster_names_index_make(char *const *names, int count, hpct_cluster_names_index *out)
{
    bool sorted = true;
    *out = (hpct_cluster_names_index){.count = count};
    out->entries = malloc((size_t) count * sizeof *out->entries);
    if (out->entries == NULL)
        return false;
    for (int i = 0; i < count; i++) {
        out->entries[i] = (hpct_cluster_names_entry){.name = names[i], .place = i};
        sorted = sorted && (i == 0 || strcmp(names[i - 1], names[i]) <= 0);
    }
    if (!sorted)
        qsort(out->entries, (size_t) count, sizeof *out->entries, compare);
    return true;
}

void hpct_cluster_names_index_free(hpct_cluster_names_index *index)
{
    free(index->entries);
    *index = (hpct_cluster_names_index){0};
}

int hpct_cluster_names_find(const hpct_cluster_names_index *index, const char *name)
{
    hpct_cluster_names_entry key = {.name = name};
    if (index->count == 0)
        return -1;
    const hpct_cluster_names_entry *found =
        bsearch(&key, index->entries, (size_t) index->count, sizeof *index->entries, compare);
    return found == NULL ? -1 : found->place;
}
