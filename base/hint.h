/* base/hint.h - commands in messages, which can be typed as they stand. */
#ifndef HPCT_BASE_HINT_H
#define HPCT_BASE_HINT_H

#include <stdbool.h>
#include <stdio.h>

/* Whether the path exists and stays after the step: it is not below $SLURM_TMPDIR. NULL does. */
bool hpct_hint_lasts(const char *path);

/* The word, quoted where a shell needs it. */
void hpct_print_word(FILE *out, const char *word);

/* Prints " OPTION WORD", the word quoted like this; nothing if `word` is NULL.
 * `option` NULL: the word alone. */
void hpct_hint_word(FILE *stream, const char *option, const char *word);

#endif
