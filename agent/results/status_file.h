/* agent/results/status_file.h - status.json (agent/results/live_report.h) as a file. */
#ifndef HPCT_AGENT_RESULTS_STATUS_FILE_H
#define HPCT_AGENT_RESULTS_STATUS_FILE_H

#include "agent/results/live_report.h"

/* HPCT_ERR_NO_INPUT, or HPCT_ERR_DATA saying what is wrong; both name the path. Freed by
 * hpct_results_live_report_free. */
hpct_status hpct_results_status_file_read(hpct_results_live_report *out, const char *path);

/* The folder's file is that of a run which has ended in another process, or before it trained: from
 * now on it says how. No effect if there is none. HPCT_ERR_IO if it cannot be written. */
hpct_status hpct_results_status_file_end(const char *log_dir, hpct_results_live_how how);

#endif
