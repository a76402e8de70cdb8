/* agent/report/content.h - what a page says: of one run, or of several side by side. */
#ifndef HPCT_AGENT_REPORT_CONTENT_H
#define HPCT_AGENT_REPORT_CONTENT_H

#include "agent/report/page.h"
#include "agent/report/run.h"

/* Predictions of `hpc-train plan --json`. */
typedef struct hpct_report_plan {
    const char *path, *model;
    struct {
        const char *name;
        double *workers, *images_per_second, *speed_up;
        size_t count;
    } networks[2];
    int num_networks;
} hpct_report_plan;

/* False: another file's content. */
bool hpct_report_plan_parse(hpct_report_plan *plan, hpct_report_pool *pool, const char *text,
                            size_t size);
/* Returns HPCT_ERR_NO_INPUT, or HPCT_ERR_DATA for another file. */
hpct_status hpct_report_plan_read(hpct_report_plan *plan, hpct_report_pool *pool, const char *path);

/* Other figures (--beside): a row for each number of workers. */
typedef struct hpct_report_beside {
    const char *path, *words; /* words: of its comments */
    hpct_report_table table;
} hpct_report_beside;

/* Changes the text. HPCT_ERR_DATA, naming the line. */
hpct_status hpct_report_beside_parse(hpct_report_beside *beside, hpct_report_pool *pool,
                                     char *text);
/* Also HPCT_ERR_NO_INPUT. */
hpct_status hpct_report_beside_read(hpct_report_beside *beside, hpct_report_pool *pool,
                                    const char *path);

void hpct_report_of_one(hpct_report_page *page, const hpct_report_run *run);
/* A table, of more than one start. */
void hpct_report_of_starts(hpct_report_page *page, const hpct_report_run *run);
void hpct_report_of_ranks(hpct_report_page *page, const hpct_report_run *run);
/* `plan` may be NULL. */
void hpct_report_of_several(hpct_report_page *page, const hpct_report_run *runs, size_t count,
                            const hpct_report_plan *plan);
#define HPCT_REPORT_MOST_LINES 12 /* in a chart; more could not be told apart */
void hpct_report_of_curves(hpct_report_page *page, const hpct_report_run *runs, size_t count);
/* page->csv: a row a run. */
void hpct_report_csv_of_runs(hpct_report_page *page, const hpct_report_run *runs, size_t count);
/* After the rest of the page. */
void hpct_report_of_beside(hpct_report_page *page, const hpct_report_run *runs, size_t count,
                           const hpct_report_beside *beside);

/* "Loss", "Accuracy"; other metrics as they are called */
const char *hpct_report_curve_name(const char *metric);
/* "3 nodes", "1 node" */
const char *hpct_report_counted(hpct_report_pool *pool, int64_t count, const char *what);
/* " in 3 starts", " in the 2 of 3 starts whose time is known", or "" */
const char *hpct_report_say_starts(hpct_report_pool *pool, const hpct_report_run *run);
/* Local date and time, or "?" */
const char *hpct_report_moment(hpct_report_pool *pool, double seconds);

#endif
