/* A page as Markdown or CSV: its words and tables. */
#include "agent/report/page.h"

static void write_cells(FILE *out, const hpct_report_table *table, size_t first)
{
    for (size_t i = first; i < first + table->columns && i < table->num_cells; i++) {
        fputs("| ", out);
        hpct_report_escape_md(out, table->cells[i]);
        fputc(' ', out);
    }
    fputs("|\n", out);
}

static void write_table(FILE *out, const hpct_report_table *table)
{
    if (table->columns == 0)
        return;
    if (table->caption != NULL) {
        hpct_report_escape_md(out, table->caption);
        fputs(":\n\n", out);
    }
    write_cells(out, table, 0);
    for (size_t i = 0; i < table->columns; i++)
        fputs(i == 0 || table->is_text ? "|---" : "|---:", out);
    fputs("|\n", out);
    for (size_t i = table->columns; i < table->num_cells; i += table->columns)
        write_cells(out, table, i);
    fputc('\n', out);
}

static void write_words(FILE *out, const char *before, const char *words)
{
    fputs(before, out);
    hpct_report_escape_md(out, words);
    fputs("\n\n", out);
}

/* Headings of charts alone are left out. */
static bool has_text(const hpct_report_page *page, size_t i)
{
    for (i++; i < page->num_items && page->items[i].kind != HPCT_REPORT_HEADING; i++) {
        if (page->items[i].kind != HPCT_REPORT_CHART)
            return true;
    }
    return false;
}

void hpct_report_write_md(FILE *out, const hpct_report_page *page)
{
    write_words(out, "# ", page->title);
    if (*page->subtitle != '\0')
        write_words(out, "", page->subtitle);
    for (size_t i = 0; i < page->num_items; i++) {
        const hpct_report_item *item = &page->items[i];
        if (item->kind == HPCT_REPORT_HEADING && has_text(page, i))
            write_words(out, "## ", item->words);
        else if (item->kind == HPCT_REPORT_WORDS)
            write_words(out, "", item->words);
        else if (item->kind == HPCT_REPORT_REMARK)
            write_words(out, "> ", item->words);
        else if (item->table != NULL)
            write_table(out, item->table);
    }
}

void hpct_report_write_csv(FILE *out, const hpct_report_page *page)
{
    const hpct_report_table *table = page->csv;
    for (size_t i = 0; table != NULL && i < table->num_cells; i++) {
        hpct_report_escape_csv(out, table->cells[i]);
        fputc((i + 1) % table->columns == 0 ? '\n' : ',', out);
    }
}
