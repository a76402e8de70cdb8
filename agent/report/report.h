/* agent/report/report.h - a report as text, for a file or for the server. */
#ifndef HPCT_AGENT_REPORT_REPORT_H
#define HPCT_AGENT_REPORT_REPORT_H

#include <hpctrain/report.h>
#include <stdbool.h>
#include <stddef.h>

/* The HTML page; the caller frees *text. `speaks`: remarks are printed on stderr as well. */
hpct_status hpct_report_make_html(char **text, size_t *size, const hpct_report_options *options,
                                  bool speaks);

#endif
