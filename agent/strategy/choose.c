/* The candidates in turn, block by block, until it is clear which is the fastest. What each should
 * take is predicted first, so that the likely ones come first and what is hopeless is not tried. */
#include "agent/strategy/choose.h"

#include "agent/batch.h"
#include "agent/data/sampler.h"
#include "agent/largest.h"
#include "agent/payoff.h"
#include "agent/process.h"
#include "agent/strategy/candidates.h"
#include "agent/strategy/forecast.h"
#include "agent/strategy/trial.h"
#include "base/status.h"
#include "nn/snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_SECONDS 0.05   /* of steps that count */
#define TRIAL_SECONDS 1.0    /* after which nothing is told apart more exactly */
#define HOPELESS 2           /* times the best so far: timed no more, unless foreseen as fast */
#define PREDICTED_HOPELESS 4 /* times the best so far: not tried */
#define SAME 1.02            /* times the best: the simpler one is taken */

#define ALONE HPCT_CANDIDATES /* one rank by itself: what the others are compared with */
#define RUNNERS (HPCT_CANDIDATES + 1)

typedef struct contest {
    hpct_context *context, *alone;
    hpct_model *model;
    const hpct_strategy_options *given;
    int global_batch;
    hpct_trial trials[RUNNERS];
    bool runs[RUNNERS]; /* still to be timed */
    hpct_forecast forecast;
    int order[HPCT_CANDIDATES]; /* what is predicted to be the fastest first */
    double began, spent;        /* seconds; of the slowest rank */
} contest;

/* ---- who takes part ---- */

static hpct_status enter(contest *c, int i)
{
    const hpct_candidate *one = &hpct_candidates[i];
    hpct_trial *trial = &c->trials[i];
    int rank = hpct_context_rank(c->context), size = hpct_context_size(c->context);
    int64_t begin, most = hpct_slice(c->global_batch, 0, size, &begin);
    if (!hpct_candidate_is_allowed(one, c->given, hpct_model_has_own_statistics(c->model)))
        return HPCT_OK;
    *trial = (hpct_trial){.context = c->context,
                          .options = hpct_candidate_options(one, c->given),
                          .global_count = c->global_batch,
                          .multiple = 1};
    trial->options.compression.warmup_steps = -1; /* what all later steps are like */
    if (one->scheme == HPCT_SCHEME_LOCAL_SGD) {
        int steps = trial->options.local_steps;
        trial->options.local_warmup_steps = -1;
        trial->multiple = steps > 0 ? steps : HPCT_LOCAL_STEPS;
    }
    hpct_status status = hpct_strategy_find(&trial->ops, &trial->options);
    if (status != HPCT_OK)
        return status;
    trial->count = trial->ops->whole_batch ? c->global_batch
                                           : (int) hpct_slice(c->global_batch, rank, size, &begin);
    return hpct_batch_fits(c->context, c->model, &(hpct_batch_options){.strategy = trial->options},
                           (int) most, 0, &c->runs[i]);
}

static void enter_alone(contest *c)
{
    int64_t begin;
    int count = (int) hpct_slice(c->global_batch, hpct_context_rank(c->context),
                                 hpct_context_size(c->context), &begin);
    c->runs[ALONE] = true;
    c->trials[ALONE] = (hpct_trial){.context = c->alone,
                                    .ops = &hpct_multi_worker_mirrored,
                                    .count = count,
                                    .global_count = count,
                                    .multiple = 1};
}

/* A wire that the user gave is multi-worker-mirrored's, too. */
static hpct_scheme scheme_of(const contest *c, int i)
{
    hpct_scheme scheme = hpct_candidates[i].scheme;
    return scheme == HPCT_SCHEME_MIRRORED && c->given->wire != HPCT_WIRE_FP32
               ? HPCT_SCHEME_MIRRORED_BF16
               : scheme;
}

static double predicted(const contest *c, int i)
{
    return c->forecast.seconds[scheme_of(c, i)];
}

/* What cannot be predicted comes last. */
static double place(const contest *c, int i)
{
    return isnan(predicted(c, i)) ? INFINITY : predicted(c, i);
}

static hpct_status look_ahead(contest *c, bool same_global)
{
    bool allowed[HPCT_SCHEMES] = {false};
    for (int i = 0; i < HPCT_CANDIDATES; i++)
        allowed[scheme_of(c, i)] |= c->runs[i];
    hpct_status status = hpct_forecast_make(&c->forecast, c->context, c->model, c->given, allowed,
                                            c->global_batch, same_global);
    for (int i = 0; i < HPCT_CANDIDATES && status == HPCT_OK; i++) {
        int at = i;
        for (; at > 0 && place(c, i) < place(c, c->order[at - 1]); at--)
            c->order[at] = c->order[at - 1];
        c->order[at] = i;
    }
    return status;
}

/* ---- rounds ---- */

/* The candidate with the least median, or -1. */
static int fastest(const contest *c)
{
    int best = -1;
    for (int i = 0; i < HPCT_CANDIDATES; i++) {
        double seconds = hpct_trial_median(&c->trials[i]);
        if (!isnan(seconds) && (best < 0 || seconds < hpct_trial_median(&c->trials[best])))
            best = i;
    }
    return best;
}

static double least_seconds(const contest *c)
{
    int best = fastest(c);
    return best < 0 ? INFINITY : hpct_trial_median(&c->trials[best]);
}

/* One measurement says that it is slow, or none does yet; the forecast says it is not. */
static bool is_doubtful(const contest *c, int i, double least)
{
    return c->trials[i].num_blocks < 2 && predicted(c, i) <= least;
}

static hpct_status run_once(contest *c, int i)
{
    double least = least_seconds(c);
    double hopeless = i == ALONE || is_doubtful(c, i, least) ? INFINITY : HOPELESS * least;
    if (!c->runs[i])
        return HPCT_OK;
    if (i != ALONE && predicted(c, i) > PREDICTED_HOPELESS * least) {
        c->runs[i] = false;
        return HPCT_OK;
    }
    hpct_status status =
        hpct_trial_block(&c->trials[i], c->context, c->model, BLOCK_SECONDS, hopeless);
    if (status == HPCT_ERR_CONFIG && i != ALONE) {
        c->runs[i] = false; /* not with this model */
        c->trials[i].ops = NULL;
        return HPCT_OK;
    }
    return status;
}

static hpct_status run_round(contest *c, bool backwards)
{
    hpct_status status = HPCT_OK;
    for (int k = 0; k < RUNNERS && status == HPCT_OK; k++) {
        int at = backwards ? RUNNERS - 1 - k : k;
        status = run_once(c, at == HPCT_CANDIDATES ? ALONE : c->order[at]);
    }
    c->spent = hpct_process_clock() - c->began;
    return status == HPCT_OK ? hpct_largest(c->context, &c->spent, 1) : status;
}

/* Out is what is much slower than the best, or, twice measured, slower at its best than the best at
 * its worst. How many are left. */
static int leave_out(contest *c)
{
    int best = fastest(c), left = 0;
    for (int i = 0; i < HPCT_CANDIDATES && best >= 0; i++) {
        const hpct_trial *one = &c->trials[i], *winner = &c->trials[best];
        if (!c->runs[i])
            continue;
        bool told_apart = one->num_blocks > 1 && winner->num_blocks > 1 &&
                          hpct_trial_fastest(one) > hpct_trial_slowest(winner);
        c->runs[i] = !told_apart && (hpct_trial_median(one) <= HOPELESS * least_seconds(c) ||
                                     is_doubtful(c, i, least_seconds(c)));
        left += c->runs[i];
    }
    return left;
}

static hpct_status hold(contest *c)
{
    hpct_status status = HPCT_OK;
    c->began = hpct_process_clock();
    for (int round = 0; round < HPCT_TRIAL_BLOCKS && status == HPCT_OK; round++) {
        status = run_round(c, round % 2 == 1);
        int left = leave_out(c);
        bool slow = c->spent > TRIAL_SECONDS;
        if (left < 2 ? slow || round > 0 : slow && round > 0)
            break;
    }
    return status;
}

/* ---- the winner ---- */

/* The simplest of those that are as good as the fastest. */
static int winner(const contest *c)
{
    int best = 0;
    while (hpct_trial_median(&c->trials[best]) > SAME * least_seconds(c) ||
           c->trials[best].num_blocks == 0)
        best++;
    return best;
}

/* "; local-sgd 71.3, hybrid (rows) not tried, about 180.2", the likeliest first. */
static void list_others(char *text, size_t size, const contest *c, int best)
{
    size_t length = 0;
    text[0] = '\0';
    for (int k = 0; k < HPCT_CANDIDATES; k++) {
        int i = c->order[k];
        bool tried = c->trials[i].num_blocks > 0;
        double seconds = tried ? hpct_trial_median(&c->trials[i]) : predicted(c, i);
        if (i == best || c->trials[i].ops == NULL || isnan(seconds) || length >= size)
            continue;
        length += (size_t) snprintf(text + length, size - length, "%s%s%s %.1f",
                                    length > 0 ? ", " : "; ", hpct_candidates[i].label,
                                    tried ? "" : " not tried, about", 1e3 * seconds);
    }
}

static void describe(hpct_strategy_choice *out, const contest *c, int best)
{
    int ranks = hpct_context_size(c->context), payoff = c->forecast.payoff;
    double seconds = hpct_trial_median(&c->trials[best]);
    double gain = ranks * hpct_trial_median(&c->trials[ALONE]) / seconds;
    char others[256], foreseen[48] = "";
    list_others(others, sizeof others, c, best);
    if (!isnan(predicted(c, best)))
        snprintf(foreseen, sizeof foreseen, ", predicted %.1f", 1e3 * predicted(c, best));
    if (gain < 1 && payoff >= ranks)
        payoff = ranks - 1; /* who measures knows better */
    snprintf(out->line, sizeof out->line,
             "strategy %s: %.1f ms a step%s%s; %d ranks are %s (%.2f times); %d%s would pay off",
             hpct_candidates[best].label, 1e3 * seconds, foreseen, others, ranks,
             gain < 1 ? "SLOWER than one: give it fewer" : "faster than one", gain, payoff,
             payoff == HPCT_PAYOFF_MOST ? " or more" : "");
}

static hpct_status choose(hpct_strategy_choice *out, contest *c, bool same_global)
{
    hpct_status status = hpct_context_agree(c->context, hpct_context_open_alone(&c->alone));
    for (int i = 0; i < HPCT_CANDIDATES && status == HPCT_OK; i++)
        status = enter(c, i);
    if (status == HPCT_OK) {
        enter_alone(c);
        status = look_ahead(c, same_global);
    }
    if (status == HPCT_OK)
        status = hold(c);
    hpct_context_close(c->alone);
    if (status != HPCT_OK || fastest(c) < 0)
        return status == HPCT_OK ? hpct_strategy_find(&out->ops, &out->options) : status;
    int best = winner(c);
    out->options = hpct_candidate_options(&hpct_candidates[best], c->given);
    describe(out, c, best);
    return hpct_strategy_find(&out->ops, &out->options);
}

hpct_status hpct_strategy_choose(hpct_strategy_choice *out, hpct_context *context,
                                 hpct_model *model, const hpct_strategy_options *options,
                                 int global_batch, bool same_global)
{
    hpct_snapshot *before = NULL;
    contest c = {
        .context = context, .model = model, .given = options, .global_batch = global_batch};
    *out = (hpct_strategy_choice){.options = *options};
    bool named = options->name != NULL && strcmp(options->name, "auto") != 0;
    named = named || options->compression.kind != HPCT_COMPRESS_NONE; /* only one strategy has it */
    if (named || options->replicas > 1 || hpct_context_size(context) == 1)
        return hpct_strategy_find(&out->ops, options);
    int64_t begin;
    bool fits = true;
    hpct_batch_options batch = {.strategy = *options};
    hpct_status status =
        hpct_batch_fits(context, model, &batch,
                        (int) hpct_slice(global_batch, 0, hpct_context_size(context), &begin),
                        hpct_snapshot_bytes(model), &fits);
    if (status == HPCT_OK && !fits) /* no memory to try anything in */
        return hpct_strategy_find(&out->ops, options);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, hpct_snapshot_take(&before, model));
    if (status == HPCT_OK)
        status = choose(out, &c, same_global);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, hpct_snapshot_restore(before, model));
    hpct_snapshot_free(before);
    return status;
}
