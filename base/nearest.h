/* base/nearest.h - suggestions for mistyped names. */
#ifndef HPCT_BASE_NEAREST_H
#define HPCT_BASE_NEAREST_H

#define HPCT_NEAREST_HINT 96

typedef struct hpct_nearest {
    const char *name; /* best so far; NULL: none is near */
    int distance;
} hpct_nearest;

/* Makes `name` the best if it is nearer to `word` than those seen before. In this order: typos (at
 * most a third of the longer one's letters; case, '_' and '-' are equal); abbreviations, val-data
 * or vd for validation-data; one a prefix of the other or contained as whole words: max-epochs and
 * epochs. */
void hpct_nearest_try(hpct_nearest *best, const char *word, const char *name);

/* " (did you mean mnist-cnn?)", or "" if nothing is near; returns `text`. */
const char *hpct_nearest_hint(const hpct_nearest *best, char text[HPCT_NEAREST_HINT]);

#endif
