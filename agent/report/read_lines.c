/* metrics.jsonl and pace.jsonl. A run that was continued appends; lines of steps that it did again
 * come twice, and the later one counts. */
#include "agent/report/read_json.h"

#include <math.h>
#include <string.h>

const char *const hpct_report_part_names[HPCT_REPORT_PARTS] = {
    "input", "forward", "backward", "waiting for others", "update", "rest"};

static const char *const keys[HPCT_REPORT_REST] = {"input_ms", "forward_ms", "backward_ms",
                                                   "wait_ms", "update_ms"};

static void say_unread(hpct_report_run *run, const char *name, int64_t unread, bool cut)
{
    if (unread > 0)
        hpct_report_remark(run, "%s: %lld line%s cannot be read", name, (long long) unread,
                           unread == 1 ? "" : "s");
    if (cut && !hpct_report_run_is_live(run))
        hpct_report_remark(run, "%s: the last line is cut", name);
}

/* ---- metrics.jsonl ---- */

static bool is_before(const hpct_report_point *a, const hpct_report_point *b)
{
    return a->epoch < b->epoch || (a->epoch == b->epoch && a->step < b->step);
}

static void add_step(hpct_report_run *run, const hpct_report_point *point)
{
    while (run->num_steps > 0 && !is_before(&run->steps[run->num_steps - 1], point))
        run->num_steps--;
    hpct_report_point *steps =
        hpct_report_grow(run->pool, run->steps, run->num_steps, sizeof *steps);
    if (steps == NULL)
        return;
    run->steps = steps;
    run->steps[run->num_steps++] = *point;
}

bool hpct_report_read_steps(hpct_report_run *run, const char *text, size_t size)
{
    hpct_report_lines lines = {.text = text, .size = size};
    bool cut = hpct_report_drop_cut_line(&lines);
    json_t *line;
    while ((line = hpct_report_next_line(&lines)) != NULL) {
        hpct_report_point point = hpct_report_new_point(run);
        point.epoch = hpct_report_json_integer(line, "epoch", -1);
        point.step = hpct_report_json_integer(line, "step", -1);
        for (size_t i = 0; 2 * i < point.num_values; i++)
            point.values[hpct_report_column(i, false)] =
                hpct_report_json_number(line, run->metrics[i].name);
        if (point.epoch >= 0 && point.step >= 0 && json_object_get(line, "loss") != NULL)
            add_step(run, &point);
        else
            lines.unread++;
        json_decref(line);
    }
    say_unread(run, "metrics.jsonl", lines.unread, cut);
    return run->num_steps > 0;
}

/* ---- pace.jsonl ---- */

/* Sums over lines, from the last back: means of as many ranks as the last line has. */
typedef struct sums {
    hpct_report_run *run;
    int64_t epoch, step; /* of the line before; later ones have been done again */
    double steps;
} sums;

static double element(const json_t *line, const char *key, size_t rank)
{
    const json_t *value = json_array_get(json_object_get(line, key), rank);
    return json_is_number(value) ? json_number_value(value) : 0;
}

static bool has_ranks(const json_t *line, size_t ranks)
{
    for (int part = 0; part < HPCT_REPORT_REST; part++) {
        if (json_array_size(json_object_get(line, keys[part])) != ranks)
            return false;
    }
    return ranks > 0 && json_array_size(json_object_get(line, "step_ms")) == ranks;
}

static void add_pace(sums *s, const json_t *line, double steps)
{
    for (size_t i = 0; i < s->run->num_ranks; i++) {
        hpct_report_rank *rank = &s->run->ranks[i];
        double memory = element(line, "memory_mb", i);
        if (json_is_null(json_array_get(json_object_get(line, "step_ms"), i)))
            continue; /* a parameter server's worker that was not there */
        rank->steps += steps;
        rank->step_ms += steps * element(line, "step_ms", i);
        for (int part = 0; part < HPCT_REPORT_REST; part++)
            rank->part_ms[part] += steps * element(line, keys[part], i);
        rank->memory_mb = memory > rank->memory_mb ? memory : rank->memory_mb;
    }
    s->steps += steps;
}

/* False: not a line of pace.jsonl. */
static bool take_pace(sums *s, const json_t *line)
{
    hpct_report_run *run = s->run;
    int64_t epoch = hpct_report_json_integer(line, "epoch", -1);
    int64_t step = hpct_report_json_integer(line, "step", -1);
    double steps = hpct_report_json_number(line, "steps");
    size_t ranks = json_array_size(json_object_get(line, "step_ms"));
    if (epoch < 0 || step < 0 || !(steps > 0 && steps < 1e12) || !has_ranks(line, ranks))
        return false;
    if (run->num_ranks == 0) {
        run->ranks = hpct_report_take(run->pool, ranks, sizeof *run->ranks);
        run->num_ranks = run->ranks != NULL ? ranks : 0;
    }
    bool again = epoch > s->epoch || (epoch == s->epoch && step >= s->step);
    if (again || ranks != run->num_ranks)
        return true;
    s->epoch = epoch;
    s->step = step;
    add_pace(s, line, steps);
    return true;
}

static void make_means(const sums *s)
{
    hpct_report_run *run = s->run;
    if (!(s->steps > 0))
        run->num_ranks = 0;
    for (size_t i = 0; i < run->num_ranks; i++) {
        hpct_report_rank *rank = &run->ranks[i];
        rank->step_ms = rank->steps > 0 ? rank->step_ms / rank->steps : NAN;
        double rest = rank->step_ms;
        for (int part = 0; part < HPCT_REPORT_REST; part++)
            rest -= rank->part_ms[part] /= rank->steps > 0 ? rank->steps : 1;
        rank->part_ms[HPCT_REPORT_REST] = rest > 0 ? rest : 0;
        rank->node = i < run->num_node_of ? run->node_of[i] : NULL;
    }
    run->paced_steps = (int64_t) s->steps;
}

bool hpct_report_read_pace(hpct_report_run *run, const char *text, size_t size)
{
    hpct_report_lines lines = {.text = text, .size = size};
    bool cut = hpct_report_drop_cut_line(&lines);
    sums s = {.run = run, .epoch = INT64_MAX, .step = INT64_MAX};
    json_t *line;
    lines.at = lines.size;
    while ((line = hpct_report_previous_line(&lines)) != NULL) {
        if (!take_pace(&s, line))
            lines.unread++;
        json_decref(line);
    }
    if (run->num_ranks > 0)
        make_means(&s);
    say_unread(run, "pace.jsonl", lines.unread, cut);
    return run->num_ranks > 0;
}
