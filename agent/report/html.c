/* A page as one HTML file: no scripts, nothing from elsewhere. */
#include "agent/report/chart.h"

#include <string.h>

static const char css[] =
    ":root{color-scheme:light dark;--page:#f3f5f8;--card:#fff;--text:#1b2430;--faint:#55606e;"
    "--edge:#d5dbe2;--warn:#fff3d6;--warn-edge:#8a5a00}"
    "@media (prefers-color-scheme:dark){:root{--page:#11151b;--card:#1a2029;--text:#e8edf3;"
    "--faint:#a9b4c0;--edge:#343d49;--warn:#3a2e12;--warn-edge:#f0b64a}}"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--page);color:var(--text);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "main{max-width:1120px;margin:0 auto;padding:24px 16px 48px}"
    "h1{font-size:1.6rem;line-height:1.25;margin:0 0 8px;overflow-wrap:anywhere}"
    "h2{font-size:1.2rem;margin:32px 0 12px}"
    ".sub{color:var(--faint);margin:0 0 20px;overflow-wrap:anywhere}"
    "p{margin:0 0 12px;max-width:75ch;overflow-wrap:anywhere}"
    ".remark{background:var(--warn);border-left:4px solid var(--warn-edge);padding:8px 12px;"
    "border-radius:4px;max-width:none}"
    ".facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(118px,1fr));gap:10px;"
    "margin:0 0 8px}"
    ".facts div{background:var(--card);border:1px solid var(--edge);border-radius:8px;"
    "padding:10px 12px}"
    ".facts dt{color:var(--faint);font-size:.85rem}"
    ".facts dd{margin:0;font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums}"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));"
    "gap:14px;margin:0 0 14px;align-items:start}"
    "figure{margin:0;background:var(--card);border:1px solid var(--edge);border-radius:8px;"
    "padding:12px;min-width:0}"
    "figure svg{display:block;width:100%;height:auto}"
    "figcaption{color:var(--faint);font-size:.85rem;margin-top:6px}"
    ".sub+.scroll,h1+.scroll{margin-top:16px}"
    ".scroll{overflow-x:auto;background:var(--card);border:1px solid var(--edge);"
    "border-radius:8px;margin:0 0 14px}"
    "table{border-collapse:collapse;width:100%;font-size:.85rem;font-variant-numeric:tabular-nums}"
    "th,td{padding:6px 9px;text-align:right;border-bottom:1px solid var(--edge);"
    "white-space:nowrap}"
    "tbody tr:last-child>*{border-bottom:0}"
    "thead th{color:var(--faint);font-weight:600}"
    "th:first-child{text-align:left}tbody th{font-weight:600}"
    "caption{text-align:left;padding:8px 12px;color:var(--faint)}"
    ".words td{text-align:left;white-space:normal;overflow-wrap:anywhere}"
    ".words th{text-align:left}.words tbody th{vertical-align:top;white-space:normal;width:30%}"
    "details{margin:0 0 14px}summary{cursor:pointer;padding:4px 0;color:var(--faint)}"
    "details .scroll{margin-top:6px;max-height:70vh;overflow-y:auto}"
    ".defs{position:absolute;width:0;height:0}"
    ":focus-visible{outline:3px solid #3b82f6;outline-offset:2px}"
    "footer{color:var(--faint);font-size:.85rem;margin-top:32px}"
    "@media (max-width:480px){main{padding:16px 10px 32px}figure{padding:8px}}"
    "@media print{body{background:#fff}figure,.scroll{break-inside:avoid}}\n";

static void tag(FILE *out, const char *name, const char *attributes, const char *text)
{
    fprintf(out, "<%s%s>", name, attributes);
    hpct_report_escape(out, text);
    fprintf(out, "</%s>\n", name);
}

/* ---- tables ---- */

static void write_row(FILE *out, const hpct_report_table *table, size_t first, bool head)
{
    fputs("<tr>", out);
    for (size_t i = first; i < first + table->columns && i < table->num_cells; i++) {
        const char *name = head || i == first ? "th" : "td";
        fprintf(out, "<%s%s>", name, head ? " scope=\"col\"" : i == first ? " scope=\"row\"" : "");
        hpct_report_escape(out, table->cells[i]);
        fprintf(out, "</%s>", name);
    }
    fputs("</tr>\n", out);
}

/* Of a table that may be wider than the page: it scrolls, also by keys. */
static void write_table(FILE *out, const hpct_report_table *table, const char *label,
                        bool captioned)
{
    if (table->columns == 0)
        return;
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", out);
    hpct_report_escape(out, label);
    fprintf(out, "\"><table%s>", table->is_text ? " class=\"words\"" : "");
    if (captioned && table->caption != NULL)
        tag(out, "caption", "", table->caption);
    fputs("<thead>", out);
    write_row(out, table, 0, true);
    fputs("</thead><tbody>\n", out);
    for (size_t i = table->columns; i < table->num_cells; i += table->columns)
        write_row(out, table, i, false);
    fputs("</tbody></table></div>\n", out);
}

/* A page that reloads itself would close what is folded again. */
static void write_table_item(FILE *out, const hpct_report_item *item, bool reloads)
{
    const char *label = item->table->caption != NULL ? item->table->caption : "Table";
    if (!item->folded) {
        write_table(out, item->table, label, true);
        return;
    }
    fputs(reloads ? "<details open>" : "<details>", out);
    tag(out, "summary", "", label);
    write_table(out, item->table, label, false);
    fputs("</details>\n", out);
}

static void write_facts(FILE *out, const hpct_report_table *table)
{
    fputs("<dl class=\"facts\">\n", out);
    for (size_t i = 0; i < table->columns && i + table->columns < table->num_cells; i++) {
        fputs("<div>", out);
        tag(out, "dt", "", table->cells[i]);
        tag(out, "dd", "", table->cells[i + table->columns]);
        fputs("</div>", out);
    }
    fputs("</dl>\n", out);
}

/* ---- charts ---- */

static void write_chart(FILE *out, const hpct_report_chart *chart)
{
    fprintf(out, "<figure><svg role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"",
            HPCT_REPORT_CHART_WIDTH, hpct_report_chart_height(chart));
    hpct_report_chart_describe(out, chart);
    fputs("\">\n", out);
    hpct_report_chart_draw(out, chart);
    fputs("</svg>", out);
    if (chart->note != NULL)
        tag(out, "figcaption", "", chart->note);
    fputs("</figure>\n", out);
}

/* ---- the page ---- */

static void write_head(FILE *out, const hpct_report_page *page)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; img-src data:\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n",
          out);
    if (page->reload > 0)
        fprintf(out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", page->reload);
    tag(out, "title", "", page->title);
    fprintf(out, "<style>%s", css);
    hpct_report_chart_style(out, true);
    fputs("</style>\n</head>\n<body>\n", out);
}

static void write_item(FILE *out, const hpct_report_item *item, bool reloads)
{
    switch (item->kind) {
    case HPCT_REPORT_HEADING:
        tag(out, "h2", "", item->words);
        break;
    case HPCT_REPORT_WORDS:
        tag(out, "p", "", item->words);
        break;
    case HPCT_REPORT_REMARK:
        tag(out, "p", " class=\"remark\"", item->words);
        break;
    case HPCT_REPORT_FACTS:
        write_facts(out, item->table);
        break;
    case HPCT_REPORT_TABLE:
        write_table_item(out, item, reloads);
        break;
    default:
        write_chart(out, item->chart);
    }
}

void hpct_report_write_html(FILE *out, const hpct_report_page *page)
{
    bool charts = false;
    write_head(out, page);
    fputs("<svg class=\"defs\" aria-hidden=\"true\">", out);
    hpct_report_chart_patterns(out);
    fputs("</svg>\n<main>\n", out);
    tag(out, "h1", "", page->title);
    if (*page->subtitle != '\0')
        tag(out, "p", " class=\"sub\"", page->subtitle);
    for (size_t i = 0; i < page->num_items; i++) {
        bool chart = page->items[i].kind == HPCT_REPORT_CHART;
        if (chart != charts)
            fputs(chart ? "<div class=\"charts\">\n" : "</div>\n", out);
        charts = chart;
        write_item(out, &page->items[i], page->reload > 0);
    }
    fprintf(out, "%s<footer>hpc-train report</footer>\n</main>\n</body>\n</html>\n",
            charts ? "</div>\n" : "");
}
