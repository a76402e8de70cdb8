/* tests/unit/cases.h - tests of parsers as tables: a text in each row, and what it must give. */
#ifndef HPCT_TESTS_UNIT_CASES_H
#define HPCT_TESTS_UNIT_CASES_H

#include "base/status.h"
#include "tests/unit/unit.h"

/* Rows leave out what they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

typedef struct parse_case {
    const char *text;
    hpct_status status;
    const char *want; /* HPCT_OK: the result, as `parse` prints it; else words of the error, with
                         '|' between them; NULL: any */
    int number;       /* further arguments, */
    const void *with; /* as the table's `parse` has them */
} parse_case;

/* Parses a row's text; if it is accepted, prints the result to `got`, which is "" before. */
typedef hpct_status parse_function(const parse_case *c, char *got, size_t size);

static inline bool has_words(const char *error, const char *words)
{
    char word[256];
    for (size_t length; *words != '\0'; words += length + (words[length] == '|')) {
        length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int) length, words);
        if (strstr(error, word) == NULL)
            return false;
    }
    return true;
}

static inline bool is_as_wanted(const parse_case *c, hpct_status status, const char *got)
{
    if (status != c->status || c->want == NULL)
        return status == c->status;
    return status == HPCT_OK ? strcmp(got, c->want) == 0 : has_words(hpct_last_error(), c->want);
}

/* Runs all rows; each that fails is printed with its text, what was wanted and what came. How many
 * failed. */
static inline int run_cases(parse_function *parse, const parse_case *cases, int count)
{
    int failed = 0;
    for (const parse_case *c = cases; c < cases + count; c++) {
        char got[4096] = "";
        hpct_status status = parse(c, got, sizeof got);
        if (is_as_wanted(c, status, got))
            continue;
        print_error("case %d, '%.500s': wanted status %d, '%s'; got status %d, '%s'\n",
                    (int) (c - cases), c->text != NULL ? c->text : "(null)", (int) c->status,
                    c->want != NULL ? c->want : "(any)", (int) status,
                    status == HPCT_OK ? got : hpct_last_error());
        failed++;
    }
    return failed;
}
#define RUN_CASES(parse, cases)                                                                    \
    do {                                                                                           \
        int count_ = (int) (sizeof(cases) / sizeof *(cases));                                      \
        int failed_ = run_cases(parse, cases, count_);                                             \
        if (failed_ > 0)                                                                           \
            fail_msg("%d of %d cases of %s", failed_, count_, #parse);                             \
    } while (0)

/* For parsers that return no status. */
static inline hpct_status accepted_if(bool accepted)
{
    return accepted ? HPCT_OK : HPCT_ERR_USAGE;
}

#endif
