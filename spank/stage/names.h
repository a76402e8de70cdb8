/* spank/stage/names.h - a set of names, by their hashes: for those who must know whether a name has
 * come before. Says yes wrongly once in 2^64 times, never no. */
#ifndef HPCT_STAGE_NAMES_H
#define HPCT_STAGE_NAMES_H

#include <stdbool.h>

typedef struct hpct_names hpct_names;

hpct_names *hpct_names_new(void);        /* NULL when out of memory */
void hpct_names_drop(hpct_names *names); /* NULL is fine */

/* False: there is no room for more; clear it first. */
bool hpct_names_add(hpct_names *names, const char *name);
bool hpct_names_has(const hpct_names *names, const char *name);
void hpct_names_clear(hpct_names *names);

#endif
