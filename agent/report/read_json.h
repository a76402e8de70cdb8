/* agent/report/read_json.h - members of foreign JSON objects, and files with an object a line. */
#ifndef HPCT_AGENT_REPORT_READ_JSON_H
#define HPCT_AGENT_REPORT_READ_JSON_H

#include "agent/report/run.h"

#include <jansson.h>

/* NaN, `missing` or NULL where there is none of this type. */
double hpct_report_json_number(const json_t *object, const char *key);
int64_t hpct_report_json_integer(const json_t *object, const char *key, int64_t missing);
const char *hpct_report_json_text(hpct_report_pool *pool, const json_t *object, const char *key);

/* Lines of a file, from the first on or from the last back. */
typedef struct hpct_report_lines {
    const char *text;
    size_t size, at; /* at: of the next line; read backwards: behind it */
    int64_t unread;  /* lines that are not an object */
} hpct_report_lines;

/* The next line as an object, to be released; NULL at the end. Lines that are none are counted; a
 * last one that is cut is not one. */
json_t *hpct_report_next_line(hpct_report_lines *lines);
json_t *hpct_report_previous_line(hpct_report_lines *lines);
/* Leaves out a last line that is cut; true if there was one. */
bool hpct_report_drop_cut_line(hpct_report_lines *lines);

#endif
