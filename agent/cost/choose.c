/* Times the candidates in turn, block by block, until the fastest is clear. Forecasts are made
 * first, so that likely ones are timed first and hopeless ones not at all. On devices each is timed
 * once. */
#include "agent/cost/choose.h"

#include "agent/cost/batch.h"
#include "agent/cost/candidates.h"
#include "agent/cost/contest.h"
#include "agent/cost/forecast.h"
#include "agent/cost/payoff.h"
#include "agent/cost/trial.h"
#include "agent/data/sampler.h"
#include "agent/rank/largest.h"
#include "agent/rank/threads.h"
#include "agent/strategies/strategies.h"
#include "agent/strategy/stage_layout.h"
#include "base/process.h"
#include "base/status.h"
#include "nn/run/snapshot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(HPCT_COST_CANDIDATES <= HPCT_COST_CONTEST_MOST, "room for all candidates");

#define BLOCK_SECONDS 0.05 /* of timed steps */
#define TRIAL_SECONDS 1.0  /* after which no further precision is sought */
#define DEVICE_SECONDS 0.2 /* of timed steps, on devices */
#define SCALES 1.05        /* step time relative to one rank: other candidates cannot gain */

typedef struct choice {
    hpct_context *context;
    hpct_model *model;
    const hpct_strategy_options *given;
    int global_batch;
    hpct_cost_trial trials[HPCT_COST_CANDIDATES];
    hpct_cost_contest contest;
    hpct_cost_trial alone;         /* one rank by itself, for comparison */
    hpct_cost_contest alone_times; /* its times */
    int order[HPCT_COST_CANDIDATES];
    int payoff; /* ranks; 0: no forecast, or none that holds for other nodes */
} choice;

/* ---- candidates ---- */

static hpct_status enter(choice *c, int i)
{
    const hpct_cost_candidate *one = &hpct_cost_candidates[i];
    hpct_cost_trial *trial = &c->trials[i];
    int rank = hpct_context_rank(c->context), size = hpct_context_size(c->context);
    int64_t begin, most = hpct_data_slice(c->global_batch, 0, size, &begin);
    if (!hpct_cost_candidate_is_allowed(one, c->given))
        return HPCT_OK;
    *trial = (hpct_cost_trial){.context = c->context,
                               .options = hpct_cost_candidate_options(one, c->given),
                               .global_count = c->global_batch};
    trial->options.compression.warmup_steps = -1; /* as in all steps after warm-up */
    if (one->scheme == HPCT_COST_SCHEME_LOCAL_SGD)
        trial->options.local_warmup_steps = -1;
    HPCT_TRY(hpct_strategy_find(&trial->ops, &trial->options));
    trial->period = hpct_strategy_period(trial->ops, &trial->options);
    trial->count = trial->ops->whole_batch
                       ? c->global_batch
                       : (int) hpct_data_slice(c->global_batch, rank, size, &begin);
    hpct_status status = hpct_cost_batch_fits(c->context, c->model,
                                              &(hpct_batch_options){.strategy = trial->options},
                                              (int) most, 0, &c->contest.runs[i]);
    /* hybrid's whole batch may exceed what operations can count, on all ranks alike: drop it */
    if (status != HPCT_ERR_USAGE || i == 0)
        return status;
    *trial = (hpct_cost_trial){0};
    c->contest.runs[i] = false;
    return HPCT_OK;
}

static void enter_alone(choice *c, hpct_context *alone)
{
    int64_t begin;
    int count = (int) hpct_data_slice(c->global_batch, hpct_context_rank(c->context),
                                      hpct_context_size(c->context), &begin);
    c->alone = (hpct_cost_trial){.context = alone,
                                 .ops = &hpct_strategy_multi_worker_mirrored,
                                 .count = count,
                                 .global_count = count,
                                 .period = 1};
    c->alone_times = (hpct_cost_contest){.num = 1, .runs = {true}, .foreseen = {NAN}};
}

/* A wire type given by the user also applies to multi-worker-mirrored. */
static hpct_cost_scheme scheme_of(const choice *c, int i)
{
    hpct_cost_scheme scheme = hpct_cost_candidates[i].scheme;
    return scheme == HPCT_COST_SCHEME_MIRRORED && c->given->wire != HPCT_WIRE_FP32
               ? HPCT_COST_SCHEME_MIRRORED_BF16
               : scheme;
}

/* First digits of what Linux drew when this machine started: the same in all containers. */
static double machine_number(void)
{
    char text[9] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL && fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    if (file != NULL)
        fclose(file);
    return (double) strtoul(text, NULL, 16);
}

/* Between ranks of one machine no network was measured, and more of them would share its cores. */
static hpct_status drop_payoff_alone(choice *c)
{
    double number = machine_number(), ends[] = {number, -number};
    hpct_status status = hpct_rank_largest(c->context, ends, 2);
    if (ends[0] == -ends[1])
        c->payoff = 0;
    return status;
}

static hpct_status look_ahead(choice *c, bool same_global)
{
    bool allowed[HPCT_COST_SCHEMES] = {false};
    hpct_cost_forecast forecast;
    for (int i = 0; i < HPCT_COST_CANDIDATES; i++)
        allowed[scheme_of(c, i)] |= c->contest.runs[i];
    HPCT_TRY(hpct_cost_forecast_make(&forecast, c->context, c->model, c->given, allowed,
                                     c->global_batch, same_global));
    for (int i = 0; i < HPCT_COST_CANDIDATES; i++)
        c->contest.foreseen[i] = forecast.seconds[scheme_of(c, i)];
    c->payoff = forecast.payoff;
    hpct_cost_contest_order(&c->contest, c->order);
    return drop_payoff_alone(c);
}

/* No forecasts: the host cannot time parts of a step that a device runs as one recording. */
static void look_at_nothing(choice *c)
{
    for (int i = 0; i < HPCT_COST_CANDIDATES; i++) {
        c->contest.foreseen[i] = NAN;
        c->order[i] = i;
    }
}

/* ---- rounds ---- */

static double block_seconds(const choice *c)
{
    return hpct_model_on_device(c->model) ? DEVICE_SECONDS : BLOCK_SECONDS;
}

static hpct_status run_candidate(choice *c, int i)
{
    double seconds, limit = hpct_cost_contest_limit(&c->contest, i);
    if (!hpct_cost_contest_calls(&c->contest, i))
        return HPCT_OK;
    hpct_status status = hpct_cost_trial_block(&c->trials[i], c->context, c->model,
                                               block_seconds(c), limit, &seconds);
    if (status == HPCT_ERR_CONFIG) { /* not for this model */
        c->contest.runs[i] = false;
        c->trials[i].ops = NULL;
        return HPCT_OK;
    }
    if (status == HPCT_OK)
        hpct_cost_contest_note(&c->contest, i, seconds);
    return status;
}

static hpct_status run_alone(choice *c)
{
    double seconds;
    HPCT_TRY(hpct_cost_trial_block(&c->alone, c->context, c->model, block_seconds(c), INFINITY,
                                   &seconds));
    hpct_cost_contest_note(&c->alone_times, 0, seconds);
    return HPCT_OK;
}

/* Every other round runs in reverse order, so that drift favors no candidate. */
static hpct_status hold(choice *c)
{
    double began = hpct_process_clock();
    for (int round = 0; round < HPCT_COST_CONTEST_ROUNDS; round++) {
        hpct_status status = run_alone(c);
        for (int k = 0; k < HPCT_COST_CANDIDATES && status == HPCT_OK; k++)
            status = run_candidate(c, c->order[round % 2 == 0 ? k : HPCT_COST_CANDIDATES - 1 - k]);
        double spent = hpct_process_clock() - began;
        if (status == HPCT_OK)
            status = hpct_rank_largest(c->context, &spent, 1);
        if (status != HPCT_OK || hpct_cost_contest_is_over(&c->contest, spent > TRIAL_SECONDS))
            return status;
    }
    return HPCT_OK;
}

/* On devices planning and building are slow, and times are steady: times each candidate once, and
 * only multi-worker-mirrored, the first, if its step takes hardly longer than that of one rank. */
static hpct_status hold_on_devices(choice *c)
{
    bool scales = false;
    hpct_status status = run_alone(c);
    for (int i = 0; i < HPCT_COST_CANDIDATES && status == HPCT_OK && !scales; i++) {
        status = enter(c, i);
        if (status == HPCT_OK)
            status = run_candidate(c, i);
        scales = i == 0 && hpct_cost_contest_median(&c->contest, 0) <=
                               SCALES * hpct_cost_contest_median(&c->alone_times, 0);
    }
    return status;
}

/* ---- output ---- */

/* Decimals of milliseconds. */
static int digits(double seconds)
{
    return seconds < 1e-3 ? 3 : 1;
}

/* "; local-sgd 71.3, hybrid (rows) not tried, about 180.2", sorted by forecast. */
static void list_others(char *text, size_t size, const choice *c, int best)
{
    size_t length = 0;
    text[0] = '\0';
    for (int k = 0; k < HPCT_COST_CANDIDATES; k++) {
        int i = c->order[k];
        bool tried = c->contest.blocks[i] > 0;
        double seconds = tried ? hpct_cost_contest_median(&c->contest, i) : c->contest.foreseen[i];
        if (i == best || c->trials[i].ops == NULL || isnan(seconds) || length >= size)
            continue;
        length +=
            (size_t) snprintf(text + length, size - length, "%s%s%s %.*f", length > 0 ? ", " : "; ",
                              hpct_cost_candidates[i].label, tried ? "" : " not tried, about",
                              digits(seconds), 1e3 * seconds);
    }
}

/* Maxima over the ranks: equal on all. */
static hpct_status find_owner(hpct_rank_threads_owner *out, hpct_context *context)
{
    hpct_rank_threads_owner mine = hpct_rank_threads_of();
    double values[] = {mine.crowded, mine.crowded ? mine.sharers : 0, mine.crowded ? mine.cores : 0,
                       mine.threads, mine.alone};
    hpct_status status = hpct_rank_largest(context, values, sizeof values / sizeof values[0]);
    *out = (hpct_rank_threads_owner){.crowded = values[0] > 0,
                                     .sharers = (int) values[1],
                                     .cores = (int) values[2],
                                     .threads = (int) values[3],
                                     .alone = (int) values[4]};
    return status;
}

/* What is predicted of another number of ranks than those here; "" if nothing is. */
static void describe_payoff(char *text, size_t size, const choice *c, double gain)
{
    int ranks = hpct_context_size(c->context);
    bool one_each = hpct_context_config(c->context)->num_nodes == ranks;
    const char *unit = one_each ? "nodes" : "ranks";
    text[0] = '\0';
    if (c->payoff == 0 || gain < 1)
        return;
    if (c->payoff == HPCT_COST_PAYOFF_MOST)
        snprintf(text, size, "; %d %s or more would still be faster", c->payoff, unit);
    else if (c->payoff > ranks)
        snprintf(text, size, "; up to %d %s would still be faster", c->payoff, unit);
    else if (c->payoff < ranks && c->payoff > 1)
        snprintf(text, size, "; by prediction %d %s are hardly slower", c->payoff, unit);
}

/* Speedup of all ranks over one, which was timed while the others computed, too: if ranks share
 * cores, one alone would be faster by an unknown factor. */
static void describe_gain(char *text, size_t size, const choice *c, double seconds,
                          const hpct_rank_threads_owner *owner)
{
    int ranks = hpct_context_size(c->context);
    double gain = ranks * hpct_cost_contest_median(&c->alone_times, 0) / seconds;
    char pays[64], alone[80] = "";
    if (owner->crowded) {
        snprintf(text, size,
                 "%d ranks share %d core%s, so that what they gain beside one is not known: give "
                 "each a core of its own, or start fewer",
                 owner->sharers, owner->cores, owner->cores == 1 ? "" : "s");
        return;
    }
    describe_payoff(pays, sizeof pays, c, gain);
    if (owner->alone > owner->threads)
        snprintf(alone, sizeof alone,
                 "; of ranks with %d thread%s, and one alone here would have %d", owner->threads,
                 owner->threads == 1 ? "" : "s", owner->alone);
    snprintf(text, size, "%d ranks are %s (%.2f times)%s%s", ranks,
             gain < 1 ? "SLOWER than one: give it fewer" : "faster than one", gain, pays, alone);
}

static void describe(hpct_cost_strategy_choice *out, const choice *c, int best,
                     const hpct_rank_threads_owner *owner)
{
    double seconds = hpct_cost_contest_median(&c->contest, best),
           foreseen = c->contest.foreseen[best];
    char others[256], prediction[48] = "", gain[240];
    list_others(others, sizeof others, c, best);
    if (!isnan(foreseen))
        snprintf(prediction, sizeof prediction, ", predicted %.1f", 1e3 * foreseen);
    describe_gain(gain, sizeof gain, c, seconds, owner);
    snprintf(out->line, sizeof out->line, "strategy %s: %.*f ms a step%s%s; %s",
             hpct_cost_candidates[best].label, digits(seconds), 1e3 * seconds, prediction, others,
             gain);
}

static hpct_status choose(hpct_cost_strategy_choice *out, choice *c, bool same_global)
{
    hpct_context *alone = NULL;
    hpct_status status = hpct_context_agree(c->context, hpct_context_open_alone(&alone));
    c->contest.num = HPCT_COST_CANDIDATES;
    bool devices = hpct_model_on_device(c->model);
    for (int i = 0; i < HPCT_COST_CANDIDATES && status == HPCT_OK && !devices; i++)
        status = enter(c, i);
    if (status == HPCT_OK) {
        enter_alone(c, alone);
        look_at_nothing(c);
    }
    if (status == HPCT_OK && !devices)
        status = look_ahead(c, same_global);
    if (status == HPCT_OK)
        status = devices ? hold_on_devices(c) : hold(c);
    hpct_context_close(alone);
    int best = hpct_cost_contest_winner(&c->contest);
    hpct_rank_threads_owner owner = {0}; /* not on devices */
    if (status == HPCT_OK && !devices)
        status = find_owner(&owner, c->context);
    if (status == HPCT_OK && best >= 0) {
        out->options = hpct_cost_candidate_options(&hpct_cost_candidates[best], c->given);
        describe(out, c, best, &owner);
    }
    return status == HPCT_OK ? hpct_strategy_find(&out->ops, &out->options) : status;
}

/* Whether pipeline stages are possible and change only the order of sums. */
static bool allows_stages(const choice *c, const hpct_strategy_options *stages)
{
    hpct_strategy_stage_layout ignored;
    return !hpct_model_has_own_statistics(c->model) && hpct_model_synced_floats(c->model) == 0 &&
           hpct_model_optimizer(c->model)->global_clipnorm == 0 && stages->wire == HPCT_WIRE_FP32 &&
           hpct_strategy_stage_layout_find(&ignored, c->model, stages,
                                           hpct_context_size(c->context),
                                           c->global_batch) == HPCT_OK;
}

/* Without memory for trials: the default, if it fits on every rank; else pipeline, if that does. */
static hpct_status choose_by_memory(hpct_cost_strategy_choice *out, const choice *c)
{
    int64_t begin;
    int share = (int) hpct_data_slice(c->global_batch, 0, hpct_context_size(c->context), &begin);
    bool fits = true;
    hpct_batch_options batch = {.strategy = *c->given};
    hpct_status status = hpct_cost_batch_fits(c->context, c->model, &batch, share, 0, &fits);
    batch.strategy.name = hpct_strategy_pipeline_stages.name;
    if (status == HPCT_OK && !fits && allows_stages(c, &batch.strategy)) {
        status = hpct_cost_batch_fits(c->context, c->model, &batch, share, 0, &fits);
        if (status == HPCT_OK && fits) {
            out->options = batch.strategy;
            snprintf(out->line, sizeof out->line,
                     "strategy pipeline: the memory has no room for the whole model on each rank");
        }
    }
    return status == HPCT_OK ? hpct_strategy_find(&out->ops, &out->options) : status;
}

hpct_status hpct_cost_strategy_choose(hpct_cost_strategy_choice *out, hpct_context *context,
                                      hpct_model *model, const hpct_strategy_options *options,
                                      int global_batch, bool same_global)
{
    hpct_run_snapshot *before = NULL;
    choice c = {.context = context, .model = model, .given = options, .global_batch = global_batch};
    *out = (hpct_cost_strategy_choice){.options = *options};
    bool named = options->name != NULL && strcmp(options->name, "auto") != 0;
    named = named || options->compression.kind != HPCT_COMPRESS_NONE; /* only one strategy has it */
    if (named || options->replicas > 1 || hpct_context_size(context) == 1) {
        hpct_status found = hpct_strategy_find(&out->ops, options);
        if (found == HPCT_OK)
            found = hpct_strategy_check_device(options, model);
        return hpct_context_agree(context, found);
    }
    int64_t begin;
    bool fits = true;
    hpct_batch_options batch = {.strategy = *options};
    hpct_status status = hpct_cost_batch_fits(
        context, model, &batch,
        (int) hpct_data_slice(global_batch, 0, hpct_context_size(context), &begin),
        hpct_model_on_device(model) ? 0 : hpct_run_snapshot_bytes(model), &fits);
    if (status == HPCT_OK && !fits)
        return choose_by_memory(out, &c);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, hpct_run_snapshot_take(&before, model));
    if (status == HPCT_OK)
        status = choose(out, &c, same_global);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, hpct_run_snapshot_restore(before, model));
    hpct_run_snapshot_free(before);
    return status;
}
