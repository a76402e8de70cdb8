/* Assignment of pieces, round by round. */
#include "agent/ps/schedule.h"

#include "agent/data/sampler.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

typedef struct piece {
    bool done;
    int holders; /* workers that have been assigned it */
} piece;

typedef struct worker {
    bool holds, held; /* held: waits because of the staleness bound */
    int64_t round;
    int piece;
    hpct_ps_item item;
} worker;

struct hpct_ps_schedule {
    hpct_ps_schedule_options options;
    hpct_ps_task task; /* of the round: TRAIN or EVALUATE; END after the last one */
    int64_t round;     /* number of the round */
    piece *pieces;
    int num_pieces, left;
    int first_open; /* all pieces before it are done */
    int beyond;     /* no piece from here on has been assigned */
    worker *workers;
    int epoch;
    bool stops;
    int64_t first_step; /* asynchronous: of the round */
    hpct_ps_statistics statistics;
};

/* ---- samples ---- */

/* Over all slices. */
static int step_samples(const hpct_ps_schedule_options *options, int64_t step)
{
    bool last = step % options->steps_per_epoch == options->steps_per_epoch - 1;
    return last ? options->last_batch : options->full_batch;
}

int hpct_ps_slice_samples(const hpct_ps_schedule_options *options, int64_t step, int slice,
                          int64_t *begin)
{
    return (int) hpct_data_slice(step_samples(options, step), slice, options->slices, begin);
}

int hpct_ps_step_slices(const hpct_ps_schedule_options *options, int64_t step)
{
    int samples = step_samples(options, step);
    return samples < options->slices ? samples : options->slices;
}

/* ---- rounds ---- */

static int64_t steps_of_epoch(const hpct_ps_schedule *s)
{
    int64_t begun = (int64_t) s->epoch * s->options.steps_per_epoch;
    int64_t left = s->options.max_steps - begun;
    return left < s->options.steps_per_epoch ? left : s->options.steps_per_epoch;
}

static void begin_round(hpct_ps_schedule *s, hpct_ps_task task)
{
    s->task = task;
    s->round++;
    s->first_open = s->beyond = 0;
    s->first_step = s->statistics.version;
    s->num_pieces = task == HPCT_PS_EVALUATE ? s->options.evaluation_slices
                    : s->options.synchronous
                        ? hpct_ps_step_slices(&s->options, s->statistics.version)
                        : (int) (steps_of_epoch(s) - s->statistics.epoch_steps);
    s->left = s->num_pieces;
    memset(s->pieces, 0, (size_t) s->num_pieces * sizeof *s->pieces);
}

static void begin_epoch(hpct_ps_schedule *s)
{
    if (s->epoch == s->options.epochs || steps_of_epoch(s) <= 0 || s->stops)
        s->task = HPCT_PS_END;
    else
        begin_round(s, HPCT_PS_TRAIN);
}

static void next_epoch(hpct_ps_schedule *s)
{
    s->epoch++;
    s->statistics.epoch_steps = 0;
    begin_epoch(s);
}

/* After the epoch's last step. */
static void end_training(hpct_ps_schedule *s)
{
    s->statistics.trained++;
    if (s->options.evaluation_slices > 0)
        begin_round(s, HPCT_PS_EVALUATE);
    else
        next_epoch(s);
}

static void end_round(hpct_ps_schedule *s)
{
    if (s->task == HPCT_PS_EVALUATE) {
        s->statistics.evaluated++;
        next_epoch(s);
    } else if (s->statistics.epoch_steps >= steps_of_epoch(s)) {
        end_training(s);
    } else if (s->stops) {
        s->task = HPCT_PS_END;
    } else {
        begin_round(s, HPCT_PS_TRAIN);
    }
}

hpct_status hpct_ps_schedule_new(hpct_ps_schedule **out, const hpct_ps_schedule_options *options)
{
    hpct_ps_schedule *s = calloc(1, sizeof *s);
    if (s == NULL)
        return hpct_fail_memory(sizeof *s);
    s->options = *options;
    int64_t pieces = options->synchronous ? options->slices : options->steps_per_epoch;
    if (pieces < options->evaluation_slices)
        pieces = options->evaluation_slices;
    s->pieces = calloc((size_t) pieces, sizeof *s->pieces);
    s->workers = calloc((size_t) options->workers, sizeof *s->workers);
    if (s->pieces == NULL || s->workers == NULL) {
        hpct_ps_schedule_free(s);
        return hpct_fail_memory((size_t) pieces * sizeof *s->pieces);
    }
    s->statistics.version = s->statistics.epoch_steps = options->first_step;
    if (options->first_step > 0 && options->epochs > 0 && options->first_step >= steps_of_epoch(s))
        end_training(s); /* an earlier run has trained the epoch, and not evaluated */
    else
        begin_epoch(s);
    *out = s;
    return HPCT_OK;
}

void hpct_ps_schedule_free(hpct_ps_schedule *schedule)
{
    if (schedule == NULL)
        return;
    free(schedule->pieces);
    free(schedule->workers);
    free(schedule);
}

/* ---- assignment ---- */

/* Whether the staleness of all assigned pieces stays within the bound if one more is assigned. */
static bool within_bound(const hpct_ps_schedule *s)
{
    int64_t oldest = s->statistics.version, in_work = 0;
    for (int w = 0; w < s->options.workers; w++) {
        if (!s->workers[w].holds || s->workers[w].round != s->round)
            continue;
        in_work++;
        if (s->workers[w].item.version < oldest)
            oldest = s->workers[w].item.version;
    }
    return in_work == 0 || s->statistics.version - oldest + in_work <= s->options.max_staleness;
}

/* The piece assigned to the fewest workers; -1 if none can be assigned. */
static int choose(hpct_ps_schedule *s)
{
    bool copies = s->task == HPCT_PS_TRAIN && s->options.synchronous;
    int most = copies ? s->options.backups : 0, best = -1;
    while (s->first_open < s->num_pieces && s->pieces[s->first_open].done)
        s->first_open++;
    for (int i = s->first_open; i < s->num_pieces; i++) {
        const piece *p = &s->pieces[i];
        if (p->done || p->holders > most)
            continue;
        if (best < 0 || p->holders < s->pieces[best].holders)
            best = i;
        if (p->holders == 0)
            break;
    }
    return best;
}

hpct_ps_item hpct_ps_schedule_next(hpct_ps_schedule *s, int index)
{
    worker *w = &s->workers[index];
    if (s->task == HPCT_PS_END)
        return (hpct_ps_item){.task = HPCT_PS_END, .version = s->statistics.version};
    int chosen = choose(s);
    if (chosen < 0)
        return (hpct_ps_item){.task = HPCT_PS_WAIT};
    bool bounded = s->task == HPCT_PS_TRAIN && !s->options.synchronous;
    if (bounded && s->options.max_staleness >= 0 && !within_bound(s)) {
        s->statistics.held += w->held ? 0 : 1;
        w->held = true;
        return (hpct_ps_item){.task = HPCT_PS_WAIT};
    }
    s->pieces[chosen].holders++;
    if (s->beyond <= chosen)
        s->beyond = chosen + 1;
    *w = (worker){.holds = true, .round = s->round, .piece = chosen};
    w->item = (hpct_ps_item){.task = s->task, .version = s->statistics.version};
    if (s->task == HPCT_PS_EVALUATE)
        w->item.slice = chosen;
    else if (s->options.synchronous) {
        w->item.step = s->statistics.version;
        w->item.slice = chosen;
    } else {
        w->item.step = s->first_step + chosen;
    }
    return w->item;
}

bool hpct_ps_schedule_done(hpct_ps_schedule *s, int index, hpct_ps_item *item)
{
    worker *w = &s->workers[index];
    if (!w->holds)
        return false;
    w->holds = false;
    *item = w->item;
    bool current = w->round == s->round && s->task != HPCT_PS_END;
    if (!current || s->pieces[w->piece].done) {
        if (current)
            s->pieces[w->piece].holders--;
        s->statistics.late++;
        return false;
    }
    s->pieces[w->piece] = (piece){.done = true, .holders = s->pieces[w->piece].holders - 1};
    s->left--;
    if (s->task == HPCT_PS_TRAIN) {
        int64_t staleness = s->statistics.version - w->item.version;
        s->statistics.gradients++;
        s->statistics.staleness_sum += staleness;
        if (staleness > s->statistics.staleness_max)
            s->statistics.staleness_max = staleness;
        if (!s->options.synchronous || s->left == 0) {
            s->statistics.version++;
            s->statistics.epoch_steps++;
            s->statistics.updates++;
        }
    }
    if (s->left == 0)
        end_round(s);
    return true;
}

void hpct_ps_schedule_give_back(hpct_ps_schedule *s, int index)
{
    worker *w = &s->workers[index];
    if (w->holds && w->round == s->round && s->task != HPCT_PS_END) {
        piece *p = &s->pieces[w->piece];
        p->holders--;
        if (!p->done && p->holders == 0)
            s->statistics.given_again++;
    }
    w->holds = false;
}

/* Whether no piece of the round has been assigned, unless it was given back. */
static bool untouched(const hpct_ps_schedule *s)
{
    if (s->left < s->num_pieces)
        return false;
    for (int i = 0; i < s->beyond; i++) {
        if (s->pieces[i].holders > 0)
            return false;
    }
    return true;
}

bool hpct_ps_schedule_between(const hpct_ps_schedule *schedule)
{
    return schedule->task == HPCT_PS_END ||
           (schedule->task == HPCT_PS_TRAIN && untouched(schedule));
}

void hpct_ps_schedule_cut(hpct_ps_schedule *schedule)
{
    if (schedule->task != HPCT_PS_TRAIN || schedule->options.synchronous || untouched(schedule))
        return;
    schedule->left -= schedule->num_pieces - schedule->beyond;
    schedule->num_pieces = schedule->beyond;
    if (schedule->left == 0)
        end_round(schedule);
}

void hpct_ps_schedule_stop(hpct_ps_schedule *schedule)
{
    schedule->stops = true;
    if (hpct_ps_schedule_between(schedule))
        schedule->task = HPCT_PS_END;
    else
        hpct_ps_schedule_cut(schedule);
}

void hpct_ps_schedule_end(hpct_ps_schedule *schedule)
{
    schedule->task = HPCT_PS_END;
}

bool hpct_ps_schedule_ended(const hpct_ps_schedule *schedule)
{
    return schedule->task == HPCT_PS_END;
}

const hpct_ps_statistics *hpct_ps_schedule_statistics(const hpct_ps_schedule *schedule)
{
    return &schedule->statistics;
}
