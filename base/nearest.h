/* base/nearest.h - which known name a mistyped one was meant to be. */
#ifndef HPCT_BASE_NEAREST_H
#define HPCT_BASE_NEAREST_H

#define HPCT_NEAREST_HINT 96

typedef struct hpct_nearest {
    const char *name; /* the best so far; NULL: none is near */
    int distance;
} hpct_nearest;

/* Takes `name` as the best where it is nearer to `word` than what was seen before. Near is what a
 * few slips of the keyboard make of it (a third of the longer one's letters at most; case, '_' and
 * '-' are alike); behind all of those, what it abbreviates, val-data or vd of
 * validation-data; behind those, one that begins the other, or stands in it as whole words:
 * max-epochs and epochs. */
void hpct_nearest_try(hpct_nearest *best, const char *word, const char *name);

/* " (did you mean mnist-cnn?)", or "" where nothing is near; returns `text`. */
const char *hpct_nearest_hint(const hpct_nearest *best, char text[HPCT_NEAREST_HINT]);

#endif
