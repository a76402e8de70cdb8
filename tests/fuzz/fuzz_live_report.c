/* Fuzz target: status.json, and the lines that hpc-train top makes of it. */
#include "agent/results/live_report.h"
#include "agent/results/metrics_file.h"
#include "agent/top/screen.h"
#include "tests/fuzz/fuzz.h"

/* Only printable ASCII and line feeds reach the terminal. */
static void draw(const hpct_results_live_report *report, int width, int height)
{
    char *text;
    size_t size;
    const hpct_top_screen screen = {.width = width, .height = height, .now = 1800000000};
    FILE *out = open_memstream(&text, &size);
    hpct_top_screen_draw(out, &screen, report);
    fclose(out);
    int lines = 1;
    for (size_t i = 0; i < size; i++) {
        lines += text[i] == '\n';
        if (text[i] != '\n' && (text[i] < ' ' || text[i] > '~'))
            abort();
    }
    if (height > 0 && lines > height)
        abort();
    free(text);
}

/* What is written of it is read as the same. */
static void write_again(const hpct_results_live_report *report)
{
    char *text, *twice;
    hpct_results_live_report again;
    if (hpct_results_live_report_format(&text, report) != HPCT_OK ||
        hpct_results_live_report_parse(&again, text, strlen(text)) != HPCT_OK ||
        hpct_results_live_report_format(&twice, &again) != HPCT_OK || strcmp(text, twice) != 0)
        abort();
    free(text);
    free(twice);
    must(hpct_results_metrics_file_format(&text, &again, "auto") == HPCT_OK);
    free(text);
    hpct_results_live_report_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hpct_results_live_report report;
    if (hpct_results_live_report_parse(&report, (const char *) data, size) != HPCT_OK)
        return 0;
    if (report.state.step > report.state.steps || report.state.epoch > report.state.epochs ||
        report.num_losses > HPCT_RESULTS_LIVE_LOSSES || report.model == NULL)
        abort();
    draw(&report, 80, 0);
    draw(&report, 10, 12);
    write_again(&report);
    hpct_results_live_report_free(&report);
    return 0;
}
