/* Where the time of a step goes on each rank, their memory, and which are slow. */
#include "agent/report/content.h"

#include <math.h>
#include <stdlib.h>

#define MOST_BARS 24 /* with more ranks: the slowest, and the fastest */
#define FASTEST 4
#define MOST_NAMED 8

typedef struct order {
    double own; /* time, or memory */
    size_t rank;
} order;

static int most_first(const void *a, const void *b)
{
    const order *x = a, *y = b;
    if (x->own != y->own)
        return x->own < y->own ? 1 : -1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static order *sort_ranks(hpct_report_pool *pool, const hpct_report_run *run)
{
    order *sorted = hpct_report_take(pool, run->num_ranks, sizeof *sorted);
    for (size_t i = 0; i < run->num_ranks && sorted != NULL; i++) {
        double own = hpct_report_rank_own(&run->ranks[i]);
        sorted[i] = (order){isfinite(own) ? own : 0, i};
    }
    if (sorted != NULL)
        qsort(sorted, run->num_ranks, sizeof *sorted, most_first);
    return sorted;
}

static const char *rank_label(hpct_report_pool *pool, const hpct_report_run *run, size_t rank)
{
    const char *node = run->ranks[rank].node;
    return hpct_report_print(pool, "%zu%s%s", rank, node != NULL ? " · " : "",
                             node != NULL ? node : "");
}

static bool is_slow(const hpct_report_run *run, size_t rank, double median)
{
    double own = hpct_report_rank_own(&run->ranks[rank]);
    return run->num_ranks > 1 && median > 0 && own > HPCT_REPORT_SLOW * median;
}

static void add_bar(hpct_report_pool *pool, hpct_report_chart *chart, const char *label,
                    const double *parts, const char *mark)
{
    hpct_report_bar *bars = hpct_report_grow(pool, chart->bars, chart->num_bars, sizeof *bars);
    if (bars == NULL)
        return;
    chart->bars = bars;
    chart->bars[chart->num_bars++] = (hpct_report_bar){label, mark, parts};
}

/* ---- bars ---- */

static const double *mean_parts(hpct_report_pool *pool, const hpct_report_run *run)
{
    double *parts = hpct_report_take(pool, HPCT_REPORT_PARTS, sizeof *parts);
    for (size_t i = 0; i < run->num_ranks && parts != NULL; i++) {
        for (int part = 0; part < HPCT_REPORT_PARTS; part++)
            parts[part] += run->ranks[i].part_ms[part] / (double) run->num_ranks;
    }
    return parts;
}

static void add_rank_bar(hpct_report_pool *pool, hpct_report_chart *chart,
                         const hpct_report_run *run, size_t rank, double median)
{
    add_bar(pool, chart, rank_label(pool, run, rank), run->ranks[rank].part_ms,
            is_slow(run, rank, median) ? "▲ slow" : NULL);
}

/* Few ranks in their order; of many the mean, the slowest and the fastest. */
static void add_step_bars(hpct_report_page *page, hpct_report_chart *chart,
                          const hpct_report_run *run, const order *sorted, double median)
{
    size_t count = run->num_ranks;
    bool all = count <= MOST_BARS;
    if (!all && mean_parts(page->pool, run) != NULL)
        add_bar(page->pool, chart, "mean of all", mean_parts(page->pool, run), NULL);
    for (size_t i = 0; i < count; i++) {
        size_t rank = all ? i : sorted[i].rank;
        if (all || i < MOST_BARS - FASTEST - 1 || i >= count - FASTEST)
            add_rank_bar(page->pool, chart, run, rank, median);
    }
}

static const char *say_which(hpct_report_pool *pool, const hpct_report_run *run, const char *most,
                             const char *least)
{
    if (run->num_ranks <= MOST_BARS)
        return NULL;
    return hpct_report_print(pool, "Of %zu ranks the %d %s and the %d %s; the table has all.",
                             run->num_ranks, MOST_BARS - FASTEST - 1, most, FASTEST, least);
}

static void add_step_chart(hpct_report_page *page, const hpct_report_run *run, const order *sorted,
                           double median)
{
    hpct_report_chart *chart =
        hpct_report_add_chart(page, "Time of a step by rank", "rank", "ms per step");
    chart->part_names = hpct_report_part_names;
    chart->num_parts = HPCT_REPORT_PARTS;
    chart->note = say_which(page->pool, run, "slowest", "fastest");
    add_step_bars(page, chart, run, sorted, median);
}

static void add_memory_chart(hpct_report_page *page, const hpct_report_run *run)
{
    static const char *const name[] = {"memory in MB"};
    size_t count = run->num_ranks;
    order *sorted = hpct_report_take(page->pool, count, sizeof *sorted);
    bool any = false;
    for (size_t i = 0; i < count && sorted != NULL; i++) {
        sorted[i] = (order){run->ranks[i].memory_mb, i};
        any |= run->ranks[i].memory_mb > 0;
    }
    if (!any)
        return;
    if (count > MOST_BARS)
        qsort(sorted, count, sizeof *sorted, most_first);
    hpct_report_chart *chart = hpct_report_add_chart(page, "Memory by rank", "rank", "MB, largest");
    chart->part_names = name;
    chart->num_parts = 1;
    chart->note = say_which(page->pool, run, "largest", "smallest");
    for (size_t i = 0; i < count; i++) {
        if (count <= MOST_BARS || i < MOST_BARS - FASTEST - 1 || i >= count - FASTEST)
            add_bar(page->pool, chart, rank_label(page->pool, run, sorted[i].rank),
                    &run->ranks[sorted[i].rank].memory_mb, NULL);
    }
}

/* ---- words and table ---- */

static void say_slow(hpct_report_page *page, const hpct_report_run *run, const order *sorted,
                     double median)
{
    const char *text = "";
    char own[HPCT_REPORT_NUMBER], usual[HPCT_REPORT_NUMBER];
    size_t slow = 0;
    for (size_t i = 0; i < run->num_ranks && is_slow(run, sorted[i].rank, median); i++, slow++) {
        const hpct_report_rank *rank = &run->ranks[sorted[i].rank];
        if (slow < MOST_NAMED)
            text = hpct_report_print(
                page->pool, "%s%srank %zu%s%s (%s ms)", text, slow > 0 ? ", " : "", sorted[i].rank,
                rank->node != NULL ? " on " : "", rank->node != NULL ? rank->node : "",
                hpct_report_amount(own, sorted[i].own));
    }
    if (slow > 0)
        hpct_report_add_words(
            page, HPCT_REPORT_REMARK,
            hpct_report_print(page->pool,
                              "Slow: %s%s. A step without waiting takes them more than %.1f times "
                              "the median of the others, %s ms; these wait for them.",
                              text, slow > MOST_NAMED ? ", and more" : "", HPCT_REPORT_SLOW,
                              hpct_report_amount(usual, median)));
}

static void add_rank_table(hpct_report_page *page, const hpct_report_run *run, double median)
{
    static const char *const heads[] = {"rank",    "node",      "step",    "input",
                                        "forward", "backward",  "waiting", "update",
                                        "rest",    "memory MB", "slow",    NULL};
    hpct_report_table *table =
        hpct_report_add_table(page, "By rank, in milliseconds per step", true);
    hpct_report_heads(table, heads);
    for (size_t i = 0; i < run->num_ranks; i++) {
        const hpct_report_rank *rank = &run->ranks[i];
        hpct_report_print_cell(table, "%zu", i);
        hpct_report_cell(table, rank->node != NULL ? rank->node : "–");
        hpct_report_amount_cell(table, rank->step_ms);
        for (int part = 0; part < HPCT_REPORT_PARTS; part++)
            hpct_report_amount_cell(table, rank->part_ms[part]);
        hpct_report_amount_cell(table, rank->memory_mb > 0 ? rank->memory_mb : NAN);
        hpct_report_cell(table, is_slow(run, i, median) ? "slow" : "");
    }
}

void hpct_report_of_ranks(hpct_report_page *page, const hpct_report_run *run)
{
    double median = hpct_report_median_own(run);
    const order *sorted = sort_ranks(page->pool, run);
    if (sorted == NULL)
        return;
    hpct_report_add_words(page, HPCT_REPORT_HEADING, "Time of a step");
    hpct_report_add_words(
        page, HPCT_REPORT_WORDS,
        hpct_report_print(
            page->pool,
            "Means over %s. “Waiting for others” is the time in which a rank waits for "
            "the sums of the others' gradients; “rest” is what the parts leave.",
            hpct_report_counted(page->pool, run->paced_steps, "step")));
    say_slow(page, run, sorted, median);
    add_step_chart(page, run, sorted, median);
    add_memory_chart(page, run);
    add_rank_table(page, run, median);
}
