/* agent/results/metrics_file.h - the text of --metrics-file: Prometheus' exposition format, which
 * is OpenMetrics as well. */
#ifndef HPCT_AGENT_RESULTS_METRICS_FILE_H
#define HPCT_AGENT_RESULTS_METRICS_FILE_H

#include "agent/results/live_report.h"

/* Base units, no timestamps: node_exporter refuses a file that has some. `strategy` becomes a
 * label. The caller frees *out. */
hpct_status hpct_results_metrics_file_format(char **out, const hpct_results_live_report *report,
                                             const char *strategy);

#endif
