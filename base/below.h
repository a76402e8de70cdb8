/* base/below.h - for hints that can be typed as they stand: folders below another that have certain
 * files. */
#ifndef HPCT_BASE_BELOW_H
#define HPCT_BASE_BELOW_H

#include <stddef.h>

/* Folders one and two levels below `folder` that have a file of one of these names. */
typedef struct hpct_below {
    char *
        *paths; /* [num], in the order of their names; they begin with `folder`, unless it is "." */
    size_t num;
} hpct_below;

/* Without memory, or among too many files, some may be missing. Freed by hpct_below_free. */
hpct_below hpct_below_find(const char *folder, const char *const *names, size_t num_names);
void hpct_below_free(hpct_below *below);

#endif
