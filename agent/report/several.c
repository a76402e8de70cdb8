/* The page of several runs: a table, and how speed grows with the workers. */
#include "agent/report/content.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs of one model on one kind of device: a line, by workers. */
typedef struct group {
    const char *name;
    const hpct_report_run **runs; /* fewest workers first */
    size_t count;
} group;

typedef struct groups {
    hpct_report_page *page;
    group *groups;
    size_t count;
    const hpct_report_plan *plan;
    bool log;         /* axes of workers */
    bool by_strategy; /* which differs among runs of as many workers */
    bool by_model, by_device, by_precision;
} groups;

/* ---- groups ---- */

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool belongs(const hpct_report_run *a, const hpct_report_run *b)
{
    return same(a->model, b->model) && same(a->device, b->device) &&
           same(a->precision, b->precision);
}

static int by_workers(const void *a, const void *b)
{
    const hpct_report_run *x = *(const hpct_report_run *const *) a,
                          *y = *(const hpct_report_run *const *) b;
    if (x->workers != y->workers)
        return x->workers < y->workers ? -1 : 1;
    return (x->images_per_second > y->images_per_second) -
           (x->images_per_second < y->images_per_second);
}

/* What tells this line from the others; a single line has the model and its device. */
static const char *group_name(const groups *all, const hpct_report_run *run)
{
    bool alone = !all->by_model && !all->by_device && !all->by_strategy && !all->by_precision;
    const char *const parts[] = {
        alone || all->by_model ? run->model : NULL, alone || all->by_device ? run->device : NULL,
        all->by_strategy ? run->strategy : NULL, all->by_precision ? run->precision : NULL};
    const char *name = NULL;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i] != NULL)
            name = name == NULL ? parts[i]
                                : hpct_report_print(all->page->pool, "%s, %s", name, parts[i]);
    }
    return name != NULL ? name : "?";
}

/* Each line has one speed for a number of workers. */
static void find_differences(groups *all, const hpct_report_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        all->by_model |= !same(runs[i].model, runs[0].model);
        all->by_device |= !same(runs[i].device, runs[0].device);
        all->by_precision |= !same(runs[i].precision, runs[0].precision);
        for (size_t k = 0; k < i; k++)
            all->by_strategy |= belongs(&runs[i], &runs[k]) && runs[i].workers == runs[k].workers &&
                                !same(runs[i].strategy, runs[k].strategy);
    }
}

static group *find_group(groups *all, const hpct_report_run *run)
{
    for (size_t i = 0; i < all->count; i++) {
        const hpct_report_run *first = all->groups[i].runs[0];
        if (belongs(first, run) && (!all->by_strategy || same(first->strategy, run->strategy)))
            return &all->groups[i];
    }
    group *grown = hpct_report_grow(all->page->pool, all->groups, all->count, sizeof *grown);
    if (grown == NULL)
        return NULL;
    all->groups = grown;
    grown[all->count] = (group){.count = 0};
    return &grown[all->count++];
}

static void make_groups(groups *all, const hpct_report_run *runs, size_t count)
{
    find_differences(all, runs, count);
    for (size_t i = 0; i < count; i++) {
        group *g = runs[i].workers > 0 ? find_group(all, &runs[i]) : NULL;
        const hpct_report_run **members =
            g != NULL ? hpct_report_grow(all->page->pool, g->runs, g->count, sizeof *members)
                      : NULL;
        if (members == NULL)
            continue;
        g->runs = members;
        g->runs[g->count++] = &runs[i];
    }
    for (size_t i = 0; i < all->count; i++) {
        group *g = &all->groups[i];
        qsort(g->runs, g->count, sizeof *g->runs, by_workers);
        g->name = group_name(all, g->runs[0]);
        all->log |= g->runs[g->count - 1]->workers > 16 * g->runs[0]->workers;
    }
}

/* ---- values ---- */

typedef double value_of(const group *g, const hpct_report_run *run);

static double epoch_time(const group *g, const hpct_report_run *run)
{
    (void) g;
    return run->epoch_seconds;
}

static double rate(const group *g, const hpct_report_run *run)
{
    (void) g;
    return run->images_per_second;
}

/* Images per second and worker of the run with the fewest. */
static double base_rate(const group *g)
{
    for (size_t i = 0; i < g->count; i++) {
        if (g->runs[i]->images_per_second > 0)
            return g->runs[i]->images_per_second / (double) g->runs[i]->workers;
    }
    return NAN;
}

static double speed_up(const group *g, const hpct_report_run *run)
{
    return run->images_per_second / base_rate(g);
}

static double efficiency(const group *g, const hpct_report_run *run)
{
    return speed_up(g, run) / (double) run->workers;
}

/* ---- charts by workers ---- */

static void add_group_line(groups *all, hpct_report_chart *chart, const group *g, value_of *value)
{
    hpct_report_pool *pool = all->page->pool;
    double *x = hpct_report_take(pool, g->count, sizeof *x);
    double *y = hpct_report_take(pool, g->count, sizeof *y);
    const char **labels = hpct_report_take(pool, g->count, sizeof *labels);
    if (x == NULL || y == NULL || labels == NULL)
        return;
    for (size_t i = 0; i < g->count; i++) {
        x[i] = (double) g->runs[i]->workers;
        y[i] = value(g, g->runs[i]);
        labels[i] = hpct_report_print(pool, "%s, %s", g->runs[i]->name,
                                      hpct_report_counted(pool, g->runs[i]->workers, "worker"));
    }
    if (hpct_report_has_points(y, g->count))
        hpct_report_add_series(pool, chart, g->name, x, y, g->count)->labels = labels;
}

/* From the fewest workers of all groups to the most. */
static void add_ideal(groups *all, hpct_report_chart *chart, double slope, double constant)
{
    double *x = hpct_report_take(all->page->pool, 2, sizeof *x);
    double *y = hpct_report_take(all->page->pool, 2, sizeof *y);
    if (x == NULL || y == NULL || all->count == 0)
        return;
    x[0] = INFINITY;
    for (size_t i = 0; i < all->count; i++) {
        const group *g = &all->groups[i];
        x[0] = fmin(x[0], (double) g->runs[0]->workers);
        x[1] = fmax(x[1], (double) g->runs[g->count - 1]->workers);
    }
    for (int i = 0; i < 2; i++)
        y[i] = constant + slope * x[i];
    hpct_report_add_series(all->page->pool, chart, "ideal", x, y, 2)->plain = true;
}

static double most_workers(const groups *all)
{
    double most = 0;
    for (size_t i = 0; i < all->count; i++)
        most = fmax(most, (double) all->groups[i].runs[all->groups[i].count - 1]->workers);
    return most;
}

/* Of up to as many workers as the runs have. */
static void add_plan(groups *all, hpct_report_chart *chart, bool speed_up_wanted)
{
    for (int i = 0; all->plan != NULL && i < all->plan->num_networks; i++) {
        size_t count = 0;
        while (count < all->plan->networks[i].count &&
               all->plan->networks[i].workers[count] <= most_workers(all))
            count++;
        if (count > 0)
            hpct_report_add_series(all->page->pool, chart, all->plan->networks[i].name,
                                   all->plan->networks[i].workers,
                                   speed_up_wanted ? all->plan->networks[i].speed_up
                                                   : all->plan->networks[i].images_per_second,
                                   count);
    }
}

/* The numbers behind the predicted lines. */
static void add_plan_tables(groups *all)
{
    static const char *const heads[] = {"workers", "images/s", "speed-up", NULL};
    for (int i = 0; all->plan != NULL && i < all->plan->num_networks; i++) {
        hpct_report_table *table =
            hpct_report_add_table(all->page, all->plan->networks[i].name, true);
        hpct_report_heads(table, heads);
        for (size_t k = 0; k < all->plan->networks[i].count; k++) {
            hpct_report_print_cell(table, "%.0f", all->plan->networks[i].workers[k]);
            hpct_report_amount_cell(table, all->plan->networks[i].images_per_second[k]);
            hpct_report_amount_cell(table, all->plan->networks[i].speed_up[k]);
        }
    }
}

static hpct_report_chart *add_chart(groups *all, const char *title, const char *y_label,
                                    value_of *value)
{
    hpct_report_chart *chart = hpct_report_add_chart(all->page, title, "workers", y_label);
    chart->unit = HPCT_REPORT_AMOUNT;
    chart->zero = chart->whole_x = true;
    chart->log = all->log;
    for (size_t i = 0; i < all->count && chart->num_series < HPCT_REPORT_MOST_LINES; i++)
        add_group_line(all, chart, &all->groups[i], value);
    if (chart->num_series == 0)
        all->page->num_items--; /* no run has it */
    return chart;
}

static void add_speed(groups *all)
{
    hpct_report_add_words(all->page, HPCT_REPORT_HEADING, "Speed by workers");
    size_t before = all->page->num_items;
    add_chart(all, "Time of an epoch", "seconds", epoch_time)->log_y = all->log;
    hpct_report_chart *rates = add_chart(all, "Images per second", "images/s", rate);
    hpct_report_chart *ups =
        add_chart(all, "Speed-up", "times the run with the fewest workers", speed_up);
    rates->log_y = ups->log_y = all->log;
    if (rates->num_series > 0) {
        add_plan(all, rates, false);
        add_plan(all, ups, true);
        if (all->count == 1)
            add_ideal(all, rates, base_rate(&all->groups[0]), 0);
        add_ideal(all, ups, 1, 0);
        hpct_report_chart *share = add_chart(all, "Efficiency", "speed-up / workers", efficiency);
        add_ideal(all, share, 0, 1);
        add_plan_tables(all);
    }
    if (all->page->num_items == before)
        all->page->num_items--; /* the heading alone */
}

/* ---- the table ---- */

static void add_metric(hpct_report_table *table, double value)
{
    if (isnan(value))
        hpct_report_cell(table, "–");
    else
        hpct_report_metric_cell(table, value);
}

static const group *group_of(const groups *all, const hpct_report_run *run)
{
    for (size_t i = 0; run->workers > 0 && i < all->count; i++) {
        if (belongs(all->groups[i].runs[0], run))
            return &all->groups[i];
    }
    return NULL;
}

static void add_row(const groups *all, hpct_report_table *table, const hpct_report_run *run)
{
    hpct_report_pool *pool = all->page->pool;
    const group *g = group_of(all, run);
    hpct_report_cell(table, hpct_report_run_is_live(run)
                                ? hpct_report_print(pool, "%s (under way)", run->name)
                                : run->name);
    hpct_report_cell(table, run->model != NULL ? run->model : "–");
    hpct_report_count_cell(table, run->workers > 0 ? run->workers : -1);
    hpct_report_count_cell(table, run->global_batch > 0 ? run->global_batch : -1);
    hpct_report_amount_cell(table, hpct_report_run_seconds(run));
    add_metric(table, *hpct_report_last(run, HPCT_REPORT_LOSS));
    add_metric(table, *hpct_report_last(run, HPCT_REPORT_ACCURACY));
    add_metric(table, *hpct_report_last(run, HPCT_REPORT_VAL_ACCURACY));
    hpct_report_amount_cell(table, run->images_per_second);
    hpct_report_amount_cell(table, run->epoch_seconds);
    hpct_report_amount_cell(table, g != NULL ? speed_up(g, run) : NAN);
    hpct_report_amount_cell(table, g != NULL ? efficiency(g, run) : NAN);
}

static void add_table(const groups *all, const hpct_report_run *runs, size_t count)
{
    static const char *const heads[] = {"run",      "model",       "workers",  "global batch",
                                        "seconds",  "loss",        "accuracy", "val. accuracy",
                                        "images/s", "s per epoch", "speed-up", "efficiency",
                                        NULL};
    hpct_report_table *table = hpct_report_add_table(all->page, NULL, false);
    hpct_report_heads(table, heads);
    for (size_t i = 0; i < count; i++)
        add_row(all, table, &runs[i]);
    hpct_report_add_words(
        all->page, HPCT_REPORT_WORDS,
        "Seconds are of the whole program; those of an epoch are the median. Loss and accuracy are "
        "of "
        "the last epoch. Speed-up and efficiency compare images/s with the run of the same model "
        "that has the fewest workers, per worker.");
}

/* ---- CSV: a row a run ---- */

static void add_csv_row(hpct_report_table *csv, const hpct_report_run *run)
{
    const char *texts[] = {run->name,   run->model,     run->strategy,
                           run->device, run->precision, run->state};
    const double values[] = {(double) run->workers,
                             (double) run->global_batch,
                             hpct_report_run_seconds(run),
                             *hpct_report_last(run, HPCT_REPORT_LOSS),
                             *hpct_report_last(run, HPCT_REPORT_ACCURACY),
                             *hpct_report_last(run, HPCT_REPORT_VAL_LOSS),
                             *hpct_report_last(run, HPCT_REPORT_VAL_ACCURACY),
                             run->images_per_second,
                             run->epoch_seconds};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        hpct_report_cell(csv, texts[i] != NULL ? texts[i] : "");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        bool unknown = i < 2 && values[i] == 0;
        hpct_report_exact_cell(csv, unknown ? NAN : values[i]);
    }
}

void hpct_report_csv_of_runs(hpct_report_page *page, const hpct_report_run *runs, size_t count)
{
    static const char *const heads[] = {"run",           "model",
                                        "strategy",      "device",
                                        "precision",     "state",
                                        "workers",       "global_batch",
                                        "seconds",       "loss",
                                        "accuracy",      "val_loss",
                                        "val_accuracy",  "images_per_second",
                                        "epoch_seconds", NULL};
    hpct_report_table *csv = hpct_report_begin_csv(page, heads);
    for (size_t i = 0; i < count; i++)
        add_csv_row(csv, &runs[i]);
}

/* ---- the page ---- */

static void add_remarks(groups *all, const hpct_report_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < runs[i].num_remarks; k++)
            hpct_report_add_words(
                all->page, HPCT_REPORT_REMARK,
                hpct_report_print(all->page->pool, "%s: %s", runs[i].name, runs[i].remarks[k]));
        all->page->may_change |= hpct_report_run_may_go_on(&runs[i]);
    }
}

/* A prediction of another model is not drawn beside the runs without a word. */
static void check_plan(const groups *all, const hpct_report_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (same(runs[i].model, all->plan->model))
            return;
    }
    hpct_report_add_words(
        all->page, HPCT_REPORT_REMARK,
        hpct_report_print(all->page->pool, "%s predicts %s, which is none of the runs' models",
                          all->plan->path, all->plan->model != NULL ? all->plan->model : "?"));
}

void hpct_report_of_several(hpct_report_page *page, const hpct_report_run *runs, size_t count,
                            const hpct_report_plan *plan)
{
    groups all = {.page = page, .plan = plan};
    page->title = hpct_report_print(page->pool, "Comparison of %zu runs", count);
    page->subtitle = "";
    make_groups(&all, runs, count);
    add_remarks(&all, runs, count);
    if (plan != NULL)
        check_plan(&all, runs, count);
    add_table(&all, runs, count);
    add_speed(&all);
    hpct_report_of_curves(page, runs, count);
    hpct_report_csv_of_runs(page, runs, count);
}
