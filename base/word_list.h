/* base/word_list.h - an environment variable that lists words of a table. A header alone, as the
 * GPU module has its own copy of what reads one. */
#ifndef HPCT_BASE_WORD_LIST_H
#define HPCT_BASE_WORD_LIST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bit of a word, or 0, which is reported: it "is none of `which`". */
static inline unsigned hpct_word_bit(const char *word, size_t length, const char *variable,
                                     const char *const *names, int num, const char *which)
{
    for (int i = 0; i < num; i++) {
        if (length == strlen(names[i]) && strncmp(word, names[i], length) == 0)
            return 1U << i;
    }
    if (length > 0)
        fprintf(stderr, "hpc-train: %s: '%.*s' is none of %s\n", variable, (int) length, word,
                which);
    return 0;
}

/* Bit i is set if the comma-separated list has names[i]. */
static inline unsigned hpct_word_list(const char *variable, const char *const *names, int num,
                                      const char *which)
{
    unsigned bits = 0;
    const char *list = getenv(variable);
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ",");
        bits |= hpct_word_bit(list, length, variable, names, num, which);
        list += length + (list[length] == ',');
    }
    return bits;
}

#endif
