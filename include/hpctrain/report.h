/* hpctrain/report.h - one page, picture or table about one run, or comparing several, from the
 * files that --log-dir and --summary-json leave. */
#ifndef HPCTRAIN_REPORT_H
#define HPCTRAIN_REPORT_H

#include <hpctrain/status.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_report_options {
    const char *const *runs; /* [num_runs] folders of --log-dir, or files of --summary-json */
    int num_runs;            /* >= 1 */
    const char *output;      /* default "report." and the format; "-": standard output */
    const char *format;      /* html, md, csv or svg; default: by the output's suffix, or html */
    const char *plan;        /* file of hpct_plan_write(), drawn beside several runs; or NULL */
    const char *beside;      /* CSV file of other figures by workers, shown in a table; or NULL */
    bool watch; /* write the HTML page every 5 s, which reloads itself, until all runs have
                 * finished, SIGINT or SIGTERM */
} hpct_report_options;

/* Writes the report, readable by those alone who can read the files it is made of. Files that are
 * missing, cut or not understood are named on stderr and in the report, which shows the rest.
 * Returns HPCT_ERR_NO_INPUT or HPCT_ERR_DATA if nothing can be shown, HPCT_ERR_USAGE for an unknown
 * format, HPCT_ERR_IO. */
HPCT_API hpct_status hpct_report_write(const hpct_report_options *options);

#ifdef __cplusplus
}
#endif

#endif
