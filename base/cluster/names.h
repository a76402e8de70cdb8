/* base/cluster/names.h - index of names: a step has up to ten thousand nodes. */
#ifndef HPCT_BASE_CLUSTER_NAMES_H
#define HPCT_BASE_CLUSTER_NAMES_H

#include <stdbool.h>

typedef struct hpct_cluster_names_entry {
    const char *name; /* not owned */
    int place;
} hpct_cluster_names_entry;

typedef struct hpct_cluster_names_index {
    hpct_cluster_names_entry *entries; /* [count], sorted */
    int count;
} hpct_cluster_names_index;

/* False if out of memory. The names must outlive the index. */
bool hpct_cluster_names_index_make(char *const *names, int count, hpct_cluster_names_index *out);
void hpct_cluster_names_index_free(hpct_cluster_names_index *index);

/* Index of the name in the list, or -1. */
int hpct_cluster_names_find(const hpct_cluster_names_index *index, const char *name);

#endif
