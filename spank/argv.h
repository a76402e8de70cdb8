/* spank/argv.h - builds a helper's command line. */
#ifndef HPCT_SPANK_ARGV_H
#define HPCT_SPANK_ARGV_H

#include <stddef.h>

#include "spank/settings.h"

#define HPCT_SPANK_ARGV_WORDS (2 * HPCT_SPANK_MAX_STAGE_SRC + 32)

typedef struct hpct_spank_argv {
    char *words[HPCT_SPANK_ARGV_WORDS + 1]; /* NULL-terminated */
    int count;
    char text[256]; /* of printed words */
    size_t used;
} hpct_spank_argv;

/* Adds a word, which is not copied; zero-initialized, *argv has none. */
void hpct_spank_argv_add(hpct_spank_argv *argv, const char *word);

/* Adds an option and its value; nothing if `value` is NULL. */
void hpct_spank_argv_add_option(hpct_spank_argv *argv, const char *option, const char *value);

/* The same with a printed value, a short one such as a number. */
void hpct_spank_argv_add_printed(hpct_spank_argv *argv, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
