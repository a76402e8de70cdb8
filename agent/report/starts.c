/* The starts of a run that was stopped or killed, and continued. */
#include "agent/report/content.h"

#include <math.h>
#include <string.h>

const char *hpct_report_say_starts(hpct_report_pool *pool, const hpct_report_run *run)
{
    size_t known = 0;
    for (size_t i = 0; i < run->num_starts; i++)
        known += isnan(run->starts[i].seconds) ? 0 : 1;
    if (run->num_starts < 2)
        return "";
    return known == run->num_starts
               ? hpct_report_print(pool, " in %zu starts", run->num_starts)
               : hpct_report_print(pool, " in the %zu of %zu starts whose time is known", known,
                                   run->num_starts);
}

static const char *say_end(hpct_report_pool *pool, const hpct_report_start *start)
{
    if (start->state == NULL)
        return "–";
    if (strcmp(start->state, "lost") == 0)
        return "killed, or its node failed";
    return start->why == NULL ? start->state
                              : hpct_report_print(pool, "%s: %s", start->state, start->why);
}

void hpct_report_of_starts(hpct_report_page *page, const hpct_report_run *run)
{
    static const char *const heads[] = {"start", "began",   "epoch",    "step", "workers",
                                        "steps", "seconds", "images/s", "end",  NULL};
    hpct_report_pool *pool = page->pool;
    if (run->num_starts < 2)
        return;
    hpct_report_table *table = hpct_report_add_table(page, "Starts", false);
    hpct_report_heads(table, heads);
    for (size_t i = 0; i < run->num_starts; i++) {
        const hpct_report_start *s = &run->starts[i];
        hpct_report_print_cell(table, "%zu", i + 1);
        hpct_report_cell(table, hpct_report_moment(pool, s->time));
        hpct_report_count_cell(table, s->epoch < 0 ? -1 : s->epoch + 1);
        hpct_report_count_cell(table, s->step);
        hpct_report_count_cell(table, s->workers);
        hpct_report_count_cell(table, s->steps);
        hpct_report_amount_cell(table, s->seconds);
        hpct_report_amount_cell(table, s->images_per_second);
        hpct_report_cell(table, say_end(pool, s));
    }
}
