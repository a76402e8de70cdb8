/* spank/stage/tree/names.h - set of names by hash, to detect repetitions. False positives with
 * probability 2^-64, no false negatives. */
#ifndef HPCT_SPANK_STAGE_TREE_NAMES_H
#define HPCT_SPANK_STAGE_TREE_NAMES_H

#include <stdbool.h>

typedef struct hpct_names hpct_names;

hpct_names *hpct_names_new(void);        /* NULL when out of memory */
void hpct_names_drop(hpct_names *names); /* NULL is allowed */

/* False: full; clear it first. */
bool hpct_names_add(hpct_names *names, const char *name);
bool hpct_names_has(const hpct_names *names, const char *name);
void hpct_names_clear(hpct_names *names);

#endif
