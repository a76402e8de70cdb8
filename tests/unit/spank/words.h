/* tests/unit/spank/words.h - a command line in one string, as an argv. */
#ifndef HPCT_TESTS_UNIT_SPANK_WORDS_H
#define HPCT_TESTS_UNIT_SPANK_WORDS_H

#include "tests/unit/unit.h"

#define MOST_WORDS 16

typedef struct words {
    char text[512], *argv[MOST_WORDS + 1];
    int argc;
} words;

/* Splits at blanks, but not within '...'. */
static inline char *const *split_words(words *w, const char *text)
{
    w->argc = 0;
    assert_true(strlen(text) < sizeof w->text);
    strcpy(w->text, text);
    for (char *p = w->text; *p != '\0';) {
        const char *end = *p == '\'' ? "'" : " ";
        p += *p == '\'';
        assert_true(w->argc < MOST_WORDS);
        w->argv[w->argc++] = p;
        p += strcspn(p, end);
        if (*p != '\0')
            *p++ = '\0';
        p += strspn(p, " ");
    }
    w->argv[w->argc] = NULL;
    return w->argv;
}

#endif
