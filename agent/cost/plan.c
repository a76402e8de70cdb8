/* hpct_plan: gets times and network, measured or read, predicts the rows, prints and writes
 * them. */
#include "agent/cost/batch.h"
#include "agent/cost/compute.h"
#include "agent/cost/predict.h"
#include "agent/cost/sum_network.h"
#include "agent/rank/context.h"
#include "agent/rank/threads.h"
#include "agent/results/json_file.h"
#include "agent/results/results.h"
#include "base/status.h"

#include <hpctrain/plan.h>
#include <hpctrain/strategy.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_GAIN 1.01    /* factor in images per second from which more nodes pay off */
#define LEAST_EXCESS 1.005 /* an efficiency above this is printed as more than 100 % */

/* network: for gradients; sums: for collectives within a step. */
typedef struct links {
    hpct_comm_network network, sums;
    const char *source; /* "as stated" */
} links;

struct hpct_plan {
    hpct_plan_options options;
    links links[2];
    int num_links;
    hpct_cost_compute compute;
    hpct_rank_threads_owner crowd; /* thread counts of rank 0 */
    hpct_cost_part_work *work;
    hpct_cost_model cost;
    hpct_plan_row *rows;
    int num_rows;
};

/* What TCP between processes reaches on two kinds of Ethernet. */
static const struct {
    double latency_seconds, bytes_per_second;
} assumed[] = {{50e-6, 1e9 / 8}, {25e-6, 10e9 / 8}};

static hpct_status check_options(hpct_plan_options *o)
{
    if (o->batch_size < 0 || o->global_batch_size < 0 || o->local_steps < 0 || o->powersgd_rank < 0)
        return hpct_fail(HPCT_ERR_USAGE, "batch sizes, steps and ranks cannot be negative");
    if (o->batch_size > 0 && o->global_batch_size > 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "batch size (per rank) and global batch size are both given: give one");
    if (o->num_nodes < 1)
        return hpct_fail(HPCT_ERR_USAGE, "how many nodes to plan for is missing");
    if (o->batch_size == 0 && o->global_batch_size == 0)
        o->batch_size = HPCT_COST_DEFAULT_BATCH;
    for (int i = 0; i < o->num_nodes; i++) {
        if (o->nodes[i] < 1 || o->nodes[i] > HPCT_PLAN_MOST_NODES)
            return hpct_fail(HPCT_ERR_USAGE, "%d nodes: from 1 to %d can be planned for",
                             o->nodes[i], HPCT_PLAN_MOST_NODES);
        if (o->global_batch_size > 0 && o->nodes[i] > o->global_batch_size)
            return hpct_fail(HPCT_ERR_USAGE,
                             "a global batch of %d has no picture for each of %d "
                             "nodes",
                             o->global_batch_size, o->nodes[i]);
        if ((int64_t) o->batch_size * o->nodes[i] > INT_MAX / 2)
            return hpct_fail(HPCT_ERR_USAGE, "a batch of %d on each of %d nodes is too large",
                             o->batch_size, o->nodes[i]);
    }
    if (!(o->latency_seconds >= 0) || !(o->bytes_per_second >= 0) ||
        (o->bytes_per_second == 0 && o->latency_seconds > 0))
        return hpct_fail(HPCT_ERR_USAGE, "a network needs a latency of at least 0 and a bandwidth "
                                         "above 0");
    if (o->local_steps == 0)
        o->local_steps = HPCT_LOCAL_STEPS;
    if (o->powersgd_rank == 0)
        o->powersgd_rank = HPCT_COST_POWERSGD_RANK;
    return HPCT_OK;
}

/* ---- input ---- */

static void add_links(hpct_plan *plan, const char *source, double latency_seconds,
                      double bytes_per_second)
{
    const hpct_comm_network network = {.latency_seconds = latency_seconds,
                                       .bytes_per_second = bytes_per_second};
    plan->links[plan->num_links++] = (links){network, network, source};
}

static hpct_status find_network(hpct_plan *plan, hpct_context *context, const hpct_model *model)
{
    const hpct_plan_options *o = &plan->options;
    if (o->bytes_per_second > 0) {
        add_links(plan, "as stated", o->latency_seconds, o->bytes_per_second);
        return HPCT_OK;
    }
    if (o->assume && hpct_context_size(context) < 2) {
        for (int i = 0; i < 2; i++)
            add_links(plan, "assumed: --network says another", assumed[i].latency_seconds,
                      assumed[i].bytes_per_second);
        return HPCT_OK;
    }
    if (hpct_context_size(context) < 2)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "a network is measured between two ranks or more (srun -N2): start them, "
                         "or say --network LATENCY,BANDWIDTH");
    links *measured = &plan->links[plan->num_links++];
    measured->source = "measured here";
    HPCT_TRY(hpct_comm_network_measure(hpct_context_comm(context), HPCT_COMM_NETWORK_THOROUGHLY,
                                       hpct_model_count_trainable(model), &measured->network));
    return hpct_cost_sum_network_measure(context, HPCT_COMM_NETWORK_QUICKLY, &measured->sums);
}

/* The largest batch that one rank computes in data parallelism. */
static int most_samples(const hpct_plan_options *o)
{
    int least = INT_MAX;
    if (o->global_batch_size == 0)
        return o->batch_size;
    for (int i = 0; i < o->num_nodes; i++)
        least = o->nodes[i] < least ? o->nodes[i] : least;
    return (o->global_batch_size + least - 1) / least;
}

static hpct_status find_compute(hpct_plan *plan, hpct_context *context, hpct_model *model)
{
    const hpct_plan_options *o = &plan->options;
    hpct_status status = hpct_rank_threads_set(context);
    plan->crowd = hpct_rank_threads_of();
    if (status != HPCT_OK || hpct_context_rank(context) != 0)
        return status;
    return o->compute != NULL ? hpct_cost_compute_read(&plan->compute, model, o->compute)
                              : hpct_cost_compute_measure(&plan->compute, model, most_samples(o),
                                                          &hpct_cost_compute_careful);
}

/* ---- rows ---- */

static hpct_plan_row make_row(const hpct_plan *plan, int network, int nodes,
                              hpct_cost_scheme scheme, double alone)
{
    const links *l = &plan->links[network];
    const hpct_plan_options *o = &plan->options;
    hpct_cost_scheme_options how = {
        .sums = &l->sums, .powersgd_rank = o->powersgd_rank, .local_steps = o->local_steps};
    int global = o->global_batch_size > 0 ? o->global_batch_size : o->batch_size * nodes;
    double samples = ceil((double) global / nodes); /* the largest local batch decides */
    hpct_cost_prediction p =
        hpct_cost_predict(scheme, &plan->cost, &l->network, &how, nodes, samples);
    if (!p.possible)
        return (hpct_plan_row){0};
    double rate = global / p.step_seconds;
    return (hpct_plan_row){
        .nodes = nodes,
        .strategy = nodes == 1 ? "one rank" : hpct_cost_scheme_name(scheme),
        .exact = nodes == 1 || hpct_cost_scheme_is_exact(scheme),
        .global_batch = global,
        .step_seconds = p.step_seconds,
        .compute_seconds = p.compute_seconds,
        .network_seconds = p.network_seconds,
        .images_per_second = rate,
        .speed_up = rate / alone,
        .efficiency = rate / alone / nodes,
        .bytes_per_step = p.bytes,
        .network = network,
    };
}

/* Images per second of one rank with `samples` per step. */
static double rate_alone(const hpct_plan *plan, double samples)
{
    const hpct_cost_scheme_options none = {.powersgd_rank = 1, .local_steps = 1};
    return samples / hpct_cost_predict(HPCT_COST_SCHEME_MIRRORED, &plan->cost,
                                       &plan->links[0].network, &none, 1, samples)
                         .step_seconds;
}

/* For one network. */
static void add_rows(hpct_plan *plan, int network)
{
    const hpct_plan_options *o = &plan->options;
    double alone =
        rate_alone(plan, o->global_batch_size > 0 ? o->global_batch_size : o->batch_size);
    for (int i = 0; i < o->num_nodes; i++) {
        int first = plan->num_rows,
            best = first; /* the first scheme is exact and always possible */
        int schemes = o->nodes[i] == 1 ? 1 : HPCT_COST_SCHEMES;
        for (int scheme = 0; scheme < schemes; scheme++) {
            hpct_plan_row row =
                make_row(plan, network, o->nodes[i], (hpct_cost_scheme) scheme, alone);
            if (row.nodes == 0)
                continue;
            plan->rows[plan->num_rows] = row;
            if ((row.exact || o->allow_lossy) && row.step_seconds < plan->rows[best].step_seconds)
                best = plan->num_rows;
            plan->num_rows++;
        }
        hpct_plan_row row = plan->rows[best];
        row.best = true;
        memmove(&plan->rows[first + 1], &plan->rows[first],
                (size_t) (best - first) * sizeof *plan->rows);
        plan->rows[first] = row;
    }
}

static hpct_status make_rows(hpct_plan *plan)
{
    size_t most = (size_t) plan->num_links * (size_t) plan->options.num_nodes * HPCT_COST_SCHEMES;
    plan->rows = calloc(most, sizeof *plan->rows);
    if (plan->rows == NULL)
        return hpct_fail_memory(most * sizeof *plan->rows);
    for (int network = 0; network < plan->num_links; network++)
        add_rows(plan, network);
    return HPCT_OK;
}

static hpct_status try_outputs(const hpct_plan_options *o)
{
    const hpct_results_file files[] = {{"--json", o->json, 0},
                                       {"--compute-json", o->compute_json, 0}};
    return hpct_results_try(files, 2);
}

hpct_status hpct_plan_make(hpct_plan **out, hpct_context *context, hpct_model *model,
                           const hpct_plan_options *options)
{
    hpct_plan *plan = calloc(1, sizeof *plan);
    hpct_status status = plan != NULL ? HPCT_OK : hpct_fail_memory(sizeof *plan);
    if (status == HPCT_OK) {
        plan->options = *options;
        status = check_options(&plan->options);
    }
    if (status == HPCT_OK && hpct_context_rank(context) == 0)
        status = try_outputs(options);
    status = hpct_context_agree(context, status);
    if (status == HPCT_OK)
        status = find_network(plan, context, model);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, find_compute(plan, context, model));
    if (status == HPCT_OK && hpct_context_rank(context) == 0) {
        size_t bytes = 2 * (size_t) plan->compute.num_parts * sizeof *plan->work;
        plan->work = calloc(1, bytes);
        status = plan->work != NULL ? HPCT_OK : hpct_fail_memory(bytes);
        if (status == HPCT_OK) {
            hpct_cost_compute_cost(&plan->compute, plan->work, &plan->cost);
            status = make_rows(plan);
        }
        if (status == HPCT_OK && options->compute_json != NULL)
            status = hpct_cost_compute_write(&plan->compute, options->compute_json);
    }
    status = hpct_context_agree(context, status);
    if (status != HPCT_OK) {
        hpct_plan_free(plan);
        return status;
    }
    *out = plan;
    return HPCT_OK;
}

void hpct_plan_free(hpct_plan *plan)
{
    if (plan == NULL)
        return;
    hpct_cost_compute_free(&plan->compute);
    free(plan->work);
    free(plan->rows);
    free(plan);
}

const hpct_plan_row *hpct_plan_rows(const hpct_plan *plan, int *count)
{
    *count = plan->num_rows;
    return plan->rows;
}

/* ---- output ---- */

static void print_network(FILE *stream, const char *what, const hpct_comm_network *network,
                          const char *source)
{
    fprintf(stream, "%s: %.1f us, %.1f MB/s", what, 1e6 * network->latency_seconds,
            1e-6 * network->bytes_per_second);
    if (network->host_seconds > 0)
        fprintf(stream, ", %.2f ms of a processor for each MB", 1e9 * network->host_seconds);
    fprintf(stream, " (%s)\n", source);
}

static void print_head(const hpct_plan *plan, FILE *stream)
{
    const hpct_plan_options *o = &plan->options;
    const hpct_cost_compute *c = &plan->compute;
    int samples = o->global_batch_size > 0 ? o->global_batch_size : o->batch_size;
    fprintf(stream, "%s, %d pictures per %s: %.3f ms/step on one rank of %d thread%s (%s)\n",
            c->model, samples, o->global_batch_size > 0 ? "step" : "rank and step",
            1e3 * samples / rate_alone(plan, samples), c->threads, c->threads == 1 ? "" : "s",
            o->compute != NULL ? o->compute : "measured here");
    if (plan->crowd.crowded)
        fprintf(stream,
                "%d ranks share %d core%s here: what is measured is slower than ranks with cores "
                "of their own\n",
                plan->crowd.sharers, plan->crowd.cores, plan->crowd.cores == 1 ? "" : "s");
}

/* An efficiency above 100 %: the single rank compared with is slower than it could be. */
static void explain_efficiency(const hpct_plan *plan, const hpct_plan_row *row, FILE *stream)
{
    double same = rate_alone(plan, row->global_batch);
    if (plan->options.global_batch_size > 0)
        fprintf(stream,
                "More than 100 %%: a step of fewer pictures takes less time for each here, as when "
                "they stay in the caches.\n");
    else
        fprintf(stream,
                "More than 100 %%: beside one rank that reads and updates all weights for %d "
                "pictures, where with %s each rank has a part of them, for the pictures of all. "
                "One rank with all %d in a step: %.0f images/s, of which %d nodes do %.1f times as "
                "many.\n",
                plan->options.batch_size, row->strategy, row->global_batch, same, row->nodes,
                row->images_per_second / same);
}

/* Prints the rows of one network, from rows[first] on; returns their number. */
static int print_table(const hpct_plan *plan, int first, FILE *stream)
{
    const hpct_plan_row *top = NULL, *most = &plan->rows[first];
    const links *l = &plan->links[most->network];
    int i = first;
    print_network(stream, "network", &l->network, l->source);
    if (plan->options.bytes_per_second == 0 && plan->num_links == 1)
        print_network(stream, "sums within a step", &l->sums, l->source);
    fprintf(stream, "\n%7s  %-22s %10s %10s %10s %11s %9s %10s\n", "nodes", "strategy", "ms/step",
            "compute", "network", "images/s", "speed-up", "efficiency");
    for (; i < plan->num_rows && plan->rows[i].network == most->network; i++) {
        const hpct_plan_row *row = &plan->rows[i];
        char nodes[16] = "";
        if (row->best)
            snprintf(nodes, sizeof nodes, "%d", row->nodes);
        fprintf(stream, "%7s  %-22s %10.3f %10.3f %10.3f %11.0f %8.2fx %8.1f %%%s\n", nodes,
                row->strategy, 1e3 * row->step_seconds, 1e3 * row->compute_seconds,
                1e3 * row->network_seconds, row->images_per_second, row->speed_up,
                100 * row->efficiency, row->exact ? "" : "  lossy");
        if (row->best &&
            (top == NULL || row->images_per_second > LEAST_GAIN * top->images_per_second))
            top = row;
        if (row->efficiency > most->efficiency)
            most = row;
    }
    fprintf(stream, "\nOf these numbers of nodes, %d pay%s off: %.0f images/s with %s.\n",
            top->nodes, top->nodes == 1 ? "s" : "", top->images_per_second, top->strategy);
    if (most->efficiency > LEAST_EXCESS)
        explain_efficiency(plan, most, stream);
    return i - first;
}

void hpct_plan_print(const hpct_plan *plan, FILE *stream)
{
    print_head(plan, stream);
    for (int first = 0; first < plan->num_rows;) {
        if (first > 0)
            fputc('\n', stream);
        first += print_table(plan, first, stream);
    }
}

static json_t *row_to_json(const hpct_plan_row *row)
{
    return json_pack("{s:i s:s s:b s:b s:i s:f s:f s:f s:f s:f s:f s:f}", "nodes", row->nodes,
                     "strategy", row->strategy, "exact", row->exact, "best", row->best,
                     "global_batch", row->global_batch, "step_seconds", row->step_seconds,
                     "compute_seconds", row->compute_seconds, "network_seconds",
                     row->network_seconds, "images_per_second", row->images_per_second, "speed_up",
                     row->speed_up, "efficiency", row->efficiency, "bytes_per_step",
                     row->bytes_per_step);
}

static json_t *network_to_json(const hpct_plan *plan, int network)
{
    const links *l = &plan->links[network];
    json_t *rows = json_array();
    for (int i = 0; i < plan->num_rows; i++) {
        if (plan->rows[i].network == network)
            json_array_append_new(rows, row_to_json(&plan->rows[i]));
    }
    return json_pack(
        "{s:s s:i s:f s:{s:f s:f s:f s:b s:f s:f} s:o}", "model", plan->compute.model, "threads",
        plan->compute.threads, "alone_step_seconds", hpct_cost_compute_alone(&plan->compute, 0),
        "network", "latency_seconds", l->network.latency_seconds, "bytes_per_second",
        l->network.bytes_per_second, "host_seconds_per_byte", l->network.host_seconds, "measured",
        plan->options.bytes_per_second == 0 && plan->num_links == 1, "sum_latency_seconds",
        l->sums.latency_seconds, "sum_bytes_per_second", l->sums.bytes_per_second, "rows", rows);
}

hpct_status hpct_plan_write(const hpct_plan *plan, const char *path)
{
    if (plan->num_links == 1)
        return hpct_results_json_write(network_to_json(plan, 0), path);
    return hpct_results_json_write(
        json_pack("[o o]", network_to_json(plan, 0), network_to_json(plan, 1)), path);
}
