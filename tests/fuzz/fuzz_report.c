/* Fuzz target: the files that `hpc-train report` reads, and what it writes of them. */
#include "agent/report/content.h"
#include "tests/fuzz/fuzz.h"

/* What the readers promise. */
static void look(const hpct_report_run *run)
{
    for (size_t i = 1; i < run->num_points; i++) {
        must(run->points[i].epoch > run->points[i - 1].epoch);
    }
    for (size_t i = 1; i < run->num_steps; i++) {
        const hpct_report_point *a = &run->steps[i - 1], *b = &run->steps[i];
        if (b->epoch < a->epoch || (b->epoch == a->epoch && b->step <= a->step))
            abort();
    }
    if (run->num_ranks > 0 && run->paced_steps < 0)
        abort();
}

static void write_all(const hpct_report_page *page)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return;
    hpct_report_write_html(out, page);
    hpct_report_write_md(out, page);
    hpct_report_write_csv(out, page);
    hpct_report_write_svg(out, page);
    fclose(out);
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char) text[i] < 0x20 && text[i] != '\n')
            abort();
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool (*const readers[])(hpct_report_run *, const char *, size_t) = {
        hpct_report_read_run_json, hpct_report_read_status, hpct_report_read_summary,
        hpct_report_read_history,  hpct_report_read_steps,  hpct_report_read_pace};
    const char *text = (const char *) data;
    hpct_report_pool pool = {0};
    hpct_report_run runs[2];
    bool used = false;
    for (int i = 0; i < 2; i++) {
        hpct_report_run_clear(&runs[i], &pool);
        runs[i].path = runs[i].name = "run";
        for (size_t k = 0; k < sizeof readers / sizeof *readers; k++)
            used |= readers[k](&runs[i], text, size);
    }
    look(&runs[0]);
    hpct_report_plan plan = {.path = "plan"};
    if (hpct_report_plan_parse(&plan, &pool, text, size)) {
        used = true;
        for (int i = 0; i < 2; i++) { /* beside runs that it is drawn with */
            runs[i].workers = 1 + 7 * i;
            runs[i].images_per_second = 100 + 500 * i;
        }
    }
    hpct_report_beside beside = {.path = "beside", .words = ""};
    char *copy = strndup(text, size);
    bool has_beside = copy != NULL && hpct_report_beside_parse(&beside, &pool, copy) == HPCT_OK;
    free(copy);
    used |= has_beside;
    hpct_report_page one = {.pool = &pool}, several = {.pool = &pool};
    if (used) {
        hpct_report_of_one(&one, &runs[0]);
        hpct_report_of_several(&several, runs, 2, plan.num_networks > 0 ? &plan : NULL);
        if (has_beside)
            hpct_report_of_beside(&several, runs, 2, &beside);
        write_all(&one);
        write_all(&several);
    }
    hpct_report_run_free(&runs[0]);
    hpct_report_run_free(&runs[1]);
    hpct_report_release(&pool);
    return 0;
}
