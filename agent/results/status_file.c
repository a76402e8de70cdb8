#include "agent/results/status_file.h"

#include "base/file.h"
#include "base/output.h"
#include "base/status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

hpct_status hpct_results_status_file_read(hpct_results_live_report *out, const char *path)
{
    char *text;
    size_t size;
    *out = (hpct_results_live_report){.how = HPCT_RESULTS_LIVE_RUNNING};
    HPCT_TRY(hpct_file_read(&text, &size, path, HPCT_RESULTS_LIVE_MOST_BYTES));
    hpct_status status = hpct_results_live_report_parse(out, text, size);
    free(text);
    return status == HPCT_OK ? status : hpct_fail_within(status, path);
}

hpct_status hpct_results_status_file_end(const char *log_dir, hpct_results_live_how how)
{
    char path[PATH_MAX];
    hpct_results_live_report report;
    char *text = NULL;
    snprintf(path, sizeof path, "%s/" HPCT_RESULTS_LIVE_FILE, log_dir);
    if (hpct_results_status_file_read(&report, path) != HPCT_OK)
        return HPCT_OK;
    report.how = how;
    hpct_status status = hpct_results_live_report_format(&text, &report);
    if (status == HPCT_OK)
        status = hpct_output_put_text(path, text, true);
    free(text);
    hpct_results_live_report_free(&report);
    return status;
}
