/* agent/report/text.h - text of foreign files in XML, Markdown and CSV; how numbers are written;
 * memory that is freed at once. */
#ifndef HPCT_AGENT_REPORT_TEXT_H
#define HPCT_AGENT_REPORT_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes the text so that it is nothing but text there. Control characters and what is not UTF-8
 * become U+FFFD, line ends blanks. */
void hpct_report_escape(FILE *out, const char *text); /* XML and HTML, also in attributes */
void hpct_report_clean(FILE *out, const char *text);  /* a terminal */
void hpct_report_escape_md(FILE *out, const char *text);
void hpct_report_escape_csv(FILE *out, const char *text); /* one field */

#define HPCT_REPORT_NUMBER 32

/* Losses and accuracies as Keras prints them: %.4f, %.4e up to 1e-3. */
const char *hpct_report_metric(char text[HPCT_REPORT_NUMBER], double value);
/* Seconds, images and the like, with three significant digits or more. NaN: a dash. */
const char *hpct_report_amount(char text[HPCT_REPORT_NUMBER], double value);
/* All digits, for CSV. NaN: empty. */
const char *hpct_report_exact(char text[HPCT_REPORT_NUMBER], double value);

/* Columns that the text takes in a terminal, roughly: its characters. */
int hpct_report_width(const char *text);

/* ---- memory of a report, freed together ---- */

typedef struct hpct_report_pool {
    struct hpct_report_block *last;
    bool failed; /* there was no memory: what was made is incomplete */
} hpct_report_pool;

/* Zeroed memory; NULL, and pool->failed, if there is none. */
void *hpct_report_take(hpct_report_pool *pool, size_t count, size_t size);
/* A formatted string; "" if there is no memory. */
__attribute__((format(printf, 2, 3))) const char *hpct_report_print(hpct_report_pool *pool,
                                                                    const char *format, ...);
__attribute__((format(printf, 2, 0))) const char *
hpct_report_print_list(hpct_report_pool *pool, const char *format, va_list args);
/* Room for one element more of an array that has `count`, moved when it grows; NULL as above. */
void *hpct_report_grow(hpct_report_pool *pool, void *array, size_t count, size_t size);
void hpct_report_release(hpct_report_pool *pool);

#endif
