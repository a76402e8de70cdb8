/* Formulas of doc/performance-model.md. */
#include "agent/cost/predict.h"

#include "nn/split/shard.h"

#include <math.h>
#include <stdlib.h>

#define FLOAT 4.0 /* bytes */

/* ---- collectives ---- */

static double transfer(const hpct_comm_network *network, double messages, double bytes)
{
    return messages * network->latency_seconds + bytes / network->bytes_per_second;
}

/* Recursive doubling for small sizes; for larger ones halving and doubling (Rabenseifner), or
 * another algorithm with minimal traffic. */
double hpct_cost_predict_allreduce(const hpct_comm_network *network, int ranks, double bytes)
{
    double rounds = ceil(log2(ranks));
    return fmin(transfer(network, rounds, rounds * bytes),
                hpct_comm_network_allreduce_seconds(network, ranks, bytes));
}

/* Recursive doubling, or Bruck's algorithm if the number of ranks is not a power of two: both send
 * ceil(log2 ranks) messages and the minimum of bytes. */
double hpct_cost_predict_allgather(const hpct_comm_network *network, int ranks, double bytes)
{
    return ranks <= 1 ? 0 : transfer(network, ceil(log2(ranks)), (ranks - 1.0) * bytes);
}

/* ---- strategies ---- */

static const struct {
    const char *name;
    bool exact;
} schemes[HPCT_COST_SCHEMES] = {
    [HPCT_COST_SCHEME_MIRRORED] = {"multi-worker-mirrored", true},
    [HPCT_COST_SCHEME_HYBRID_ROWS] = {"hybrid (rows)", true},
    [HPCT_COST_SCHEME_HYBRID_COLUMNS] = {"hybrid (columns)", true},
    [HPCT_COST_SCHEME_HYBRID_BACK] = {"hybrid (back)", true},
    [HPCT_COST_SCHEME_MIRRORED_BF16] = {"bf16 on the wire", false},
    [HPCT_COST_SCHEME_POWERSGD] = {"powersgd", false},
    [HPCT_COST_SCHEME_LOCAL_SGD] = {"local-sgd", false},
};

const char *hpct_cost_scheme_name(hpct_cost_scheme scheme)
{
    return schemes[scheme].name;
}

bool hpct_cost_scheme_is_exact(hpct_cost_scheme scheme)
{
    return schemes[scheme].exact;
}

static double compute_seconds(const hpct_cost_work *work, double samples)
{
    return work->fixed + samples * work->each;
}

static double gradient_floats(const hpct_cost_model *cost)
{
    double floats = 0;
    for (int i = 0; i < cost->num_parts; i++)
        floats += (double) cost->parts[i].gradients;
    return floats;
}

/* Synchronized BatchNormalization: two all-reduces in forward, one in backward, not overlapped. */
static double synchronize(const hpct_cost_model *cost, int parts, const hpct_comm_network *network,
                          int ranks, double *bytes)
{
    double seconds = 0;
    for (int i = 0; i < parts; i++) {
        double each = FLOAT * (double) cost->parts[i].synchronize;
        if (each > 0)
            seconds += 2 * hpct_cost_predict_allreduce(network, ranks, each / 4) +
                       hpct_cost_predict_allreduce(network, ranks, each / 2);
        *bytes += each;
    }
    return seconds;
}

/* The whole model on every rank, without overlap. */
static hpct_cost_prediction compute_all(const hpct_cost_model *cost, double samples)
{
    hpct_cost_prediction p = {.possible = true};
    p.compute_seconds = compute_seconds(&cost->loss, samples) + cost->update;
    for (int i = 0; i < cost->num_parts; i++)
        p.compute_seconds += compute_seconds(&cost->work[i].forward, samples) +
                             compute_seconds(&cost->work[i].backward, samples);
    return p;
}

/* Simulates backward of the first `parts` parts, overlapped with the all-reduces of its gradient
 * buckets. Buckets' bytes are sent one after the other; a bucket's latency overlaps with the bytes
 * of the next one, except for the last. Processor time for sending delays backward. float_bytes:
 * bytes of a gradient value on the wire. */
static void send_buckets(hpct_cost_prediction *p, const hpct_cost_model *cost, int parts,
                         const hpct_comm_network *network, const hpct_cost_scheme_options *options,
                         int ranks, double samples, double float_bytes)
{
    double gradients = 0, done = 0, sent = 0;
    for (int i = 0; i < parts; i++)
        gradients += (double) cost->parts[i].gradients * float_bytes;
    double each = hpct_comm_network_bucket_bytes(network, ranks, gradients, options->bucket_bytes);
    double now = 0, network_free = 0, host = 0; /* since the start of backward */
    double latency = hpct_comm_network_allreduce_seconds(network, ranks, 0);
    for (int i = parts - 1; i >= 0; i--) {
        now += compute_seconds(&cost->work[i].backward, samples);
        done += (double) cost->parts[i].gradients * float_bytes;
        while (sent < done && (sent + each <= done || done >= gradients)) {
            double bucket = fmin(each, gradients - sent);
            network_free = fmax(network_free, now) - latency +
                           hpct_comm_network_allreduce_seconds(network, ranks, bucket);
            sent += bucket;
            double work = network->host_seconds * bucket * 2 * (ranks - 1) / ranks;
            host += sent < gradients ? work : 0;
            now += sent < gradients ? work : 0;
        }
    }
    p->bytes += gradients;
    p->network_seconds += host + fmax(0, network_free + latency - now);
}

/* One rank may fuse updates or store gradients: the faster way. */
static double alone_seconds(const hpct_cost_model *cost, double samples)
{
    return fmin(compute_seconds(&cost->alone, samples), compute_all(cost, samples).compute_seconds);
}

static hpct_cost_prediction mirrored(const hpct_cost_model *cost, const hpct_comm_network *network,
                                     const hpct_cost_scheme_options *options, int ranks,
                                     double samples, double float_bytes)
{
    hpct_cost_prediction p = compute_all(cost, samples);
    p.network_seconds = synchronize(cost, cost->num_parts, network, ranks, &p.bytes);
    send_buckets(&p, cost, cost->num_parts, network, options, ranks, samples, float_bytes);
    p.step_seconds = p.compute_seconds + p.network_seconds;
    return p;
}

/* The part with the largest Dense kernel, or -1. */
static int largest_dense(const hpct_cost_model *cost)
{
    int found = -1;
    for (int i = 0; i < cost->num_parts; i++) {
        if (cost->parts[i].dense &&
            (found < 0 || cost->parts[i].gradients > cost->parts[found].gradients))
            found = i;
    }
    return found;
}

/* The part whose output channels the Dense reads, through parts that pass channels on; -1 if a join
 * or an operation that needs all channels is in between. */
static int maker_of_channels(const hpct_cost_model *cost, int dense)
{
    int i = cost->parts[dense].input;
    while (i >= 0 && cost->parts[i].split == HPCT_RUN_PART_PASSES_ON)
        i = cost->parts[i].input;
    return i >= 0 && cost->parts[i].split == HPCT_RUN_PART_MAKES ? i : -1;
}

/* The next Dense that reads the channels of `dense`, through parts that pass channels on only, or
 * -1. */
static int reader_of_channels(const hpct_cost_model *cost, int dense)
{
    for (int i = dense + 1; i < cost->num_parts; i++) {
        int from = cost->parts[i].input;
        while (from > dense && cost->parts[from].split == HPCT_RUN_PART_PASSES_ON)
            from = cost->parts[from].input;
        if (cost->parts[i].dense && from == dense)
            return i;
    }
    return -1;
}

/* Every rank computes on the whole batch: 1/ranks of the parts first..last, all others completely.
 * Gradients of the parts before `first` are partial and all-reduced, also those of `first` if split
 * by cells. No others are communicated, so that backward fuses updates as on one rank. */
static hpct_cost_prediction shared(const hpct_cost_model *cost, const hpct_comm_network *network,
                                   int ranks, double samples, int first, int last, bool cells)
{
    hpct_cost_prediction p = {.possible = true};
    double all = samples * ranks, floats = gradient_floats(cost), before = 0, kept = 0;
    p.compute_seconds = compute_seconds(&cost->loss, all);
    for (int i = 0; i < cost->num_parts; i++) {
        const hpct_cost_part_work *work = &cost->fused[i];
        double gradients = (double) cost->parts[i].gradients;
        double share = i >= first && i <= last ? 1.0 / ranks : 1;
        p.compute_seconds +=
            share * (compute_seconds(&work->forward, all) + compute_seconds(&work->backward, all));
        kept += share * gradients;
        before += i < first || (cells && i == first) ? gradients : 0;
    }
    p.compute_seconds += floats > 0 ? cost->fused_update * kept / floats : 0;
    if (before > 0) {
        p.network_seconds += hpct_cost_predict_allreduce(network, ranks, FLOAT * before);
        p.bytes += FLOAT * before;
    }
    return p;
}

/* Whether to split by output cells, as a split by channels would leave vectors partially filled. */
#define VECTOR_CHANNELS 16
static bool shares_cells(const hpct_cost_model *cost, int first, int dense, int ranks)
{
    const hpct_run_part *part = &cost->parts[first];
    return cost->parts[dense].input == first && part->cells >= (size_t) ranks &&
           part->cols % (size_t) (VECTOR_CHANNELS * ranks) != 0;
}

static hpct_cost_prediction hybrid(const hpct_cost_model *cost, const hpct_comm_network *network,
                                   int ranks, double samples, bool rows)
{
    int dense = largest_dense(cost);
    int first = dense >= 0 && rows ? maker_of_channels(cost, dense) : dense;
    bool cells = first >= 0 && rows && shares_cells(cost, first, dense, ranks);
    if (first < 0 || (!cells && (size_t) ranks > cost->parts[first].cols))
        return (hpct_cost_prediction){0};
    int reader = rows ? dense : reader_of_channels(cost, dense); /* produces partial sums */
    int last = reader >= 0 ? reader : dense;
    hpct_cost_prediction p = shared(cost, network, ranks, samples, first, last, cells);
    double result = FLOAT * samples * ranks * (double) cost->parts[last].cols;
    p.network_seconds += reader >= 0 ? hpct_cost_predict_allreduce(network, ranks, result)
                                     : hpct_cost_predict_allgather(network, ranks, result / ranks);
    p.bytes += reader >= 0 ? result : result / ranks;
    p.step_seconds = p.compute_seconds + p.network_seconds;
    return p;
}

/* Collectives within forward and backward. */
static void add_collectives(hpct_cost_prediction *p, const hpct_split_shard_step *step,
                            const hpct_comm_network *sums, int ranks, double all)
{
    double bytes = FLOAT * step->floats * all, share = step->sums ? bytes : bytes / ranks,
           seconds = step->sums ? hpct_cost_predict_allreduce(sums, ranks, bytes)
                                : hpct_cost_predict_allgather(sums, ranks, share);
    p->network_seconds += seconds + (step->again ? seconds : 0);
    p->bytes += share + (step->again ? bytes : 0);
}

/* The front on local batches, with gradients in buckets; after it all samples, with parts of split
 * operations. hpct_split_shard_outline says which. */
static hpct_cost_prediction hybrid_back(const hpct_cost_model *cost,
                                        const hpct_comm_network *network,
                                        const hpct_comm_network *sums,
                                        const hpct_cost_scheme_options *options, int ranks,
                                        double samples)
{
    hpct_cost_prediction p = {0};
    hpct_split_shard_step *steps = calloc((size_t) cost->num_parts + 1, sizeof *steps);
    double all = samples * ranks, floats = gradient_floats(cost), added = 0, kept = 0;
    int front = 0;
    if (steps == NULL || cost->model == NULL ||
        hpct_split_shard_outline(
            steps, cost->model,
            &(hpct_split_shard_options){
                .parts = ranks, .samples = (int) all, .form = HPCT_SPLIT_SHARD_BACK}) != HPCT_OK)
        goto end;
    p.possible = true;
    p.compute_seconds = compute_seconds(&cost->loss, all);
    for (int i = 0; i < cost->num_parts; i++) {
        const hpct_split_shard_step *step = &steps[i];
        const hpct_cost_part_work *work = step->partial ? &cost->work[i] : &cost->fused[i];
        double n = step->local ? samples : all, share = step->split ? 1.0 / ranks : 1,
               gradients = (double) cost->parts[i].gradients;
        p.compute_seconds +=
            share * (compute_seconds(&work->forward, n) + compute_seconds(&work->backward, n));
        *(step->partial ? &added : &kept) += share * gradients;
        front += step->local;
        if (step->partial && !step->local && gradients > 0) {
            p.network_seconds += hpct_cost_predict_allreduce(network, ranks, FLOAT * gradients);
            p.bytes += FLOAT * gradients;
        }
        if (step->sums || step->gathers)
            add_collectives(&p, step, sums, ranks, all);
    }
    p.compute_seconds +=
        floats > 0 ? (cost->update * added + cost->fused_update * kept) / floats : 0;
    p.network_seconds += synchronize(cost, front, sums, ranks, &p.bytes);
    send_buckets(&p, cost, front, network, options, ranks, samples,
                 options->float_bytes > 0 ? options->float_bytes : FLOAT);
    p.step_seconds = p.compute_seconds + p.network_seconds;
end:
    free(steps);
    return p;
}

/* P = M Q and Q = M' P for every kernel, each all-reduced; vectors uncompressed. Seven passes over
 * the gradient: adding and storing the error, two products, the result. */
static hpct_cost_prediction powersgd(const hpct_cost_model *cost, const hpct_comm_network *network,
                                     const hpct_cost_scheme_options *options, int ranks,
                                     double samples)
{
    hpct_cost_prediction p = compute_all(cost, samples);
    double first = 0, second = 0, whole = 0, rank = options->powersgd_rank;
    for (int i = 0; i < cost->num_parts; i++) {
        const hpct_run_part *part = &cost->parts[i];
        double kernel = (double) part->rows * (double) part->cols;
        double low = rank * ((double) part->rows + (double) part->cols);
        if (kernel > 0 && low < kernel) {
            first += rank * (double) part->rows;
            second += rank * (double) part->cols;
            whole += (double) part->gradients - kernel;
            p.compute_seconds += 7 * FLOAT * kernel / cost->bytes_per_second;
        } else {
            whole += (double) part->gradients;
        }
    }
    p.network_seconds = synchronize(cost, cost->num_parts, network, ranks, &p.bytes);
    p.network_seconds += hpct_cost_predict_allreduce(network, ranks, FLOAT * (first + whole)) +
                         hpct_cost_predict_allreduce(network, ranks, FLOAT * second);
    p.bytes += FLOAT * (first + second + whole);
    p.step_seconds = p.compute_seconds + p.network_seconds;
    return p;
}

/* Local steps, and every local_steps steps the mean of all parameters. */
static hpct_cost_prediction local_sgd(const hpct_cost_model *cost, const hpct_comm_network *network,
                                      const hpct_cost_scheme_options *options, int ranks,
                                      double samples)
{
    hpct_cost_prediction p = {.possible = true, .compute_seconds = alone_seconds(cost, samples)};
    double bytes = FLOAT * gradient_floats(cost);
    p.network_seconds = hpct_cost_predict_allreduce(network, ranks, bytes) / options->local_steps;
    p.bytes = bytes / options->local_steps;
    p.step_seconds = p.compute_seconds + p.network_seconds;
    return p;
}

hpct_cost_prediction hpct_cost_predict(hpct_cost_scheme scheme, const hpct_cost_model *cost,
                                       const hpct_comm_network *network,
                                       const hpct_cost_scheme_options *options, int ranks,
                                       double samples)
{
    const hpct_comm_network *sums = options->sums != NULL ? options->sums : network;
    if (ranks == 1) {
        double seconds = alone_seconds(cost, samples);
        return (hpct_cost_prediction){true, seconds, seconds, 0, 0};
    }
    switch (scheme) {
    case HPCT_COST_SCHEME_MIRRORED:
        return mirrored(cost, network, options, ranks, samples, FLOAT);
    case HPCT_COST_SCHEME_MIRRORED_BF16:
        return mirrored(cost, network, options, ranks, samples, FLOAT / 2);
    case HPCT_COST_SCHEME_HYBRID_ROWS:
        return hybrid(cost, sums, ranks, samples, true);
    case HPCT_COST_SCHEME_HYBRID_COLUMNS:
        return hybrid(cost, sums, ranks, samples, false);
    case HPCT_COST_SCHEME_HYBRID_BACK:
        return hybrid_back(cost, network, sums, options, ranks, samples);
    case HPCT_COST_SCHEME_POWERSGD:
        return powersgd(cost, network, options, ranks, samples);
    case HPCT_COST_SCHEME_LOCAL_SGD:
        return local_sgd(cost, network, options, ranks, samples);
    case HPCT_COST_SCHEMES:
        break;
    }
    return (hpct_cost_prediction){0};
}
