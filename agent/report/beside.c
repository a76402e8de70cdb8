/* --beside: other figures by workers, a table in a CSV file, beside those of the runs. */
#include "agent/report/content.h"

#include "base/file.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t) 1 << 20)

/* ---- reading ---- */

static bool add_cells(hpct_report_table *table, char *line)
{
    size_t before = table->num_cells, digits = strspn(line, "0123456789");
    bool is_head = before == 0;
    if (is_head ? strncmp(line, "workers,", strlen("workers,")) != 0
                : digits == 0 || line[digits] != ',')
        return false;
    for (char *rest = line, *cell; (cell = strsep(&rest, ",")) != NULL;)
        hpct_report_print_cell(table, "%s", *cell != '\0' ? cell : "–");
    if (is_head)
        table->columns = table->num_cells;
    return table->num_cells - before == table->columns;
}

hpct_status hpct_report_beside_parse(hpct_report_beside *beside, hpct_report_pool *pool, char *text)
{
    int number = 0;
    beside->table.pool = pool;
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        number++;
        line[strcspn(line, "\r")] = '\0';
        if (*line == '#')
            beside->words = hpct_report_print(pool, "%s%s", beside->words, line + 1);
        else if (*line != '\0' && !add_cells(&beside->table, line))
            return hpct_fail(HPCT_ERR_DATA,
                             "--beside: %s, line %d: the first line is workers,SYSTEM,..., each "
                             "other one a number of workers and a cell for each system",
                             beside->path, number);
    }
    return beside->table.num_cells > 0
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_DATA, "--beside: %s is empty", beside->path);
}

hpct_status hpct_report_beside_read(hpct_report_beside *beside, hpct_report_pool *pool,
                                    const char *path)
{
    char *text;
    size_t size;
    *beside = (hpct_report_beside){.path = path, .words = ""};
    HPCT_TRY(hpct_file_read(&text, &size, path, MOST_BYTES));
    hpct_status status = hpct_report_beside_parse(beside, pool, text);
    free(text);
    return status;
}

/* ---- the table ---- */

/* "–" without a run of so many workers. */
static const char *figures_of(hpct_report_pool *pool, const hpct_report_run *runs, size_t count,
                              long workers)
{
    char a[HPCT_REPORT_NUMBER], b[HPCT_REPORT_NUMBER], c[HPCT_REPORT_NUMBER];
    size_t i = 0;
    while (i < count && runs[i].workers != workers)
        i++;
    if (i == count)
        return "–";
    double loss = *hpct_report_last(&runs[i], HPCT_REPORT_LOSS),
           accuracy = *hpct_report_last(&runs[i], HPCT_REPORT_ACCURACY);
    return hpct_report_print(pool, "%s / %s / %s",
                             hpct_report_amount(a, hpct_report_run_seconds(&runs[i])),
                             isnan(loss) ? "–" : hpct_report_metric(b, loss),
                             isnan(accuracy) ? "–" : hpct_report_metric(c, accuracy));
}

void hpct_report_of_beside(hpct_report_page *page, const hpct_report_run *runs, size_t count,
                           const hpct_report_beside *beside)
{
    const hpct_report_table *from = &beside->table;
    hpct_report_add_words(page, HPCT_REPORT_HEADING, "Beside other figures");
    if (*beside->words != '\0')
        hpct_report_add_words(page, HPCT_REPORT_WORDS, beside->words);
    hpct_report_table *table =
        hpct_report_add_table(page, "Seconds of the whole program / loss / accuracy", false);
    table->columns = from->columns + 1;
    for (size_t i = 0; i < from->num_cells; i++) {
        hpct_report_cell(table, from->cells[i]);
        if (i == 0)
            hpct_report_cell(table, count == 1 ? "this run" : "these runs");
        else if (i % from->columns == 0)
            hpct_report_cell(table,
                             figures_of(page->pool, runs, count, strtol(from->cells[i], NULL, 10)));
    }
}
