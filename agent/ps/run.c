/* Checks the options, builds the model and divides it. */
#include "agent/ps/run.h"

#include "agent/cost/batch.h"
#include "agent/data/augment.h"
#include "agent/data/dataset.h"
#include "agent/ps/channel.h"
#include "agent/ps/partition.h"
#include "agent/rank/threads.h"
#include "agent/results/results.h"
#include "agent/train/checkpoints.h"
#include "agent/train/control.h"
#include "agent/train/fit.h"
#include "agent/train/means.h"
#include "base/digest.h"
#include "base/status.h"
#include "config.h"
#include "nn/backend/cpu/backend.h"
#include "nn/run/clone.h"
#include "nn/run/state.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZES 8

/* ---- roles ---- */

static bool is_server(const hpct_cluster_config_role *role)
{
    return strcmp(role->name, "ps") == 0;
}

static hpct_status find_roles(hpct_ps_run *run)
{
    const hpct_cluster_config *config = hpct_context_config(run->context);
    run->addresses = calloc((size_t) config->size, sizeof *run->addresses);
    run->nodes = calloc((size_t) config->size, sizeof *run->nodes);
    if (run->addresses == NULL || run->nodes == NULL)
        return hpct_fail_memory(0);
    for (int i = 0, rank = 0; i < config->num_roles; i++) {
        bool servers = is_server(&config->roles[i]);
        for (int k = 0; k < config->roles[i].count; k++, rank++) {
            int index = servers ? run->servers++ : run->workers++;
            if (rank == config->rank) {
                run->serves = servers;
                run->index = index;
            }
            if (servers)
                run->addresses[index] = config->addresses[rank];
        }
    }
    snprintf(run->name, sizeof run->name, "%s %d (%s)", run->serves ? "parameter server" : "worker",
             run->index, hpct_context_node(run->context));
    return HPCT_OK;
}

const char *hpct_ps_run_server(const hpct_ps_run *run, int server, char text[160])
{
    snprintf(text, 160, "parameter server %d on %s", server, run->addresses[server]);
    return text;
}

hpct_status hpct_ps_run_lost(const hpct_ps_run *run, int server, const char *how)
{
    char who[160];
    return hpct_fail(HPCT_ERR_PEER, "%s: %s was lost: %s", run->name,
                     hpct_ps_run_server(run, server, who), how);
}

/* ---- steps ---- */

static hpct_status check_options(hpct_ps_run *run)
{
    hpct_fit_options *o = &run->options;
    const hpct_strategy_options *s = &o->strategy;
    const hpct_optimizer *optimizer = hpct_model_optimizer(run->model);
    HPCT_TRY(hpct_fit_check_epochs(o));
    if (o->batch_size > 0 && o->global_batch_size > 0)
        return hpct_fail(HPCT_ERR_USAGE,
                         "batch size (per worker) and global batch size are both given: give one");
    if (s->ps_backup_workers < 0 || s->ps_backup_workers >= run->workers)
        return hpct_fail(HPCT_ERR_USAGE,
                         "%d of %d workers cannot be backups: --backup-workers is 0 to %d",
                         s->ps_backup_workers, run->workers, run->workers - 1);
    if (s->ps_bounded && s->ps_max_staleness < 0)
        return hpct_fail(HPCT_ERR_USAGE, "--max-staleness cannot be negative");
    if (optimizer->gradient_accumulation_steps > 1)
        return hpct_fail(HPCT_ERR_USAGE, "--gradient-accumulation is not for --strategy "
                                         "parameter-server, whose servers update at once");
    if (s->wire != HPCT_WIRE_FP32)
        return hpct_fail(HPCT_ERR_USAGE, "--wire is not for --strategy parameter-server");
    if (o->histogram_every != 0)
        return hpct_fail(HPCT_ERR_USAGE, "--histogram-every is not for --strategy "
                                         "parameter-server, whose servers hold a part each");
    if (o->epochs == 0)
        o->epochs = 1;
    HPCT_TRY(hpct_train_checkpoints_check(o->checkpoint_dir, o->checkpoint_every, o->resume,
                                          o->checkpoint_keep));
    if (o->save_best != NULL || o->monitor != NULL || o->monitor_mode != NULL ||
        (o->on_nan != NULL && strcmp(o->on_nan, "stop") != 0))
        return hpct_fail(HPCT_ERR_USAGE,
                         "--save-best, --monitor, --mode and --on-nan resume are not "
                         "for --strategy parameter-server");
    if (o->timeline != NULL)
        return hpct_fail(HPCT_ERR_USAGE, "--timeline is not for --strategy parameter-server");
    HPCT_TRY(hpct_train_control_check_apart(o, run->model));
    if (o->check)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--check compares nodes whose ranks step together: those of --strategy "
                         "parameter-server do not");
    return HPCT_OK;
}

static int slices_of_step(const hpct_ps_run *run)
{
    const hpct_strategy_options *s = &run->options.strategy;
    return s->ps_synchronous ? run->workers - s->ps_backup_workers : 1;
}

static hpct_status count_steps(hpct_ps_run *run)
{
    const hpct_fit_options *o = &run->options;
    int slices = slices_of_step(run), workers = run->workers - o->strategy.ps_backup_workers;
    int64_t global = o->global_batch_size, samples = (int64_t) run->train->size;
    if (global == 0)
        global = (int64_t) (o->batch_size > 0 ? o->batch_size : HPCT_COST_DEFAULT_BATCH) * workers;
    if (global > INT_MAX / 2 || global < workers)
        return hpct_fail(HPCT_ERR_USAGE,
                         "a global batch of %" PRId64 " samples cannot be shared among %d workers",
                         global, workers);
    if (slices == 1 && !o->strategy.ps_synchronous)
        global = (global + workers - 1) / workers; /* each gradient is a step */
    run->global_batch = (int) global;
    hpct_data_sampler_options sampling = {.samples = run->train->size,
                                          .global_batch = run->global_batch,
                                          .steps_per_epoch = o->steps_per_epoch,
                                          .rank = 0,
                                          .size = 1,
                                          .seed = o->seed};
    HPCT_TRY(hpct_data_sampler_new(&run->sampler, &sampling));
    int64_t steps = hpct_data_sampler_steps_per_epoch(run->sampler), all;
    if (steps > INT_MAX || __builtin_mul_overflow(steps, (int64_t) o->epochs, &all))
        return hpct_fail(HPCT_ERR_USAGE, "the number of epochs and steps is too large");
    int last = o->steps_per_epoch == 0 && samples % global != 0 ? (int) (samples % global)
                                                                : run->global_batch;
    int evaluation = o->validation == NULL ? 0 : run->workers;
    if (o->validation != NULL && (size_t) evaluation > o->validation->size)
        evaluation = (int) o->validation->size;
    run->schedule = (hpct_ps_schedule_options){
        .workers = run->workers,
        .synchronous = o->strategy.ps_synchronous,
        .slices = slices,
        .backups = o->strategy.ps_backup_workers,
        .max_staleness = o->strategy.ps_bounded ? o->strategy.ps_max_staleness : -1,
        .epochs = o->epochs - o->initial_epoch,
        .steps_per_epoch = steps,
        .max_steps = all < run->max_steps ? all : run->max_steps,
        .full_batch = run->global_batch,
        .last_batch = last,
        .evaluation_slices = evaluation,
    };
    return HPCT_OK;
}

/* ---- the model ---- */

static void add_size(int *sizes, int *num, int size)
{
    for (int i = 0; i < *num; i++) {
        if (sizes[i] == size)
            return;
    }
    if (size > 0)
        sizes[(*num)++] = size;
}

/* Adds the counts of all slices of `total`, which differ by at most 1. */
static void add_slices(int *sizes, int *num, int64_t total, int slices)
{
    int64_t begin;
    add_size(sizes, num, (int) hpct_data_slice(total, 0, slices, &begin));
    add_size(sizes, num, (int) hpct_data_slice(total, slices - 1, slices, &begin));
}

/* Adds the batch sizes of evaluation: full batches, and the remainders. */
static void add_evaluation(const hpct_ps_run *run, int *sizes, int *num)
{
    int slices = run->schedule.evaluation_slices;
    for (int slice = 0; slice<slices; slice += slices> 1 ? slices - 1 : 1) {
        int64_t begin,
            count = hpct_data_slice((int64_t) run->options.validation->size, slice, slices, &begin);
        if (count >= run->evaluation_batch)
            add_size(sizes, num, run->evaluation_batch);
        add_size(sizes, num, (int) (count % run->evaluation_batch));
    }
}

/* Evaluation uses larger batches than training if they fit the memory. The number of processes that
 * share the memory is not known here: a batch that does not fit for a single process is an
 * error. */
static hpct_status choose_evaluation_batch(hpct_ps_run *run)
{
    int64_t begin;
    int full = (int) hpct_data_slice(run->global_batch, 0, run->schedule.slices, &begin);
    hpct_batch_options batch = {.data = run->train,
                                .validation = run->options.validation,
                                .strategy = run->options.strategy};
    bool fits = false;
    hpct_context *alone;
    hpct_status status = hpct_context_open_alone(&alone);
    if (status != HPCT_OK)
        return status;
    run->evaluation_batch = full;
    if (run->options.validation != NULL && full < HPCT_COST_EVALUATION_BATCH)
        status =
            hpct_cost_batch_fits(alone, run->model, &batch, HPCT_COST_EVALUATION_BATCH, 0, &fits);
    if (fits)
        run->evaluation_batch = HPCT_COST_EVALUATION_BATCH;
    else if (status == HPCT_OK)
        status = hpct_cost_batch_admit(alone, run->model, &batch, full, NULL);
    hpct_context_close(alone);
    return status;
}

/* Builds run->host with the servers' layout, for no computation. */
static hpct_status build_host(hpct_ps_run *run)
{
    int one = 1;
    hpct_run_build_options options = {.backend = "cpu",
                                      .batch_sizes = &one,
                                      .num_batch_sizes = 1,
                                      .plain_layout = true,
                                      .fp32 = true,
                                      .no_slots = true};
    run->host = run->model;
    if (run->serves ||
        (!hpct_model_on_device(run->model) && hpct_model_precision(run->model) == HPCT_FP32))
        return HPCT_OK;
    run->host = NULL;
    HPCT_TRY(hpct_model_clone(&run->host, run->model));
    return hpct_model_build(run->host, &options);
}

static hpct_status build(hpct_ps_run *run)
{
    int sizes[MAX_SIZES] = {1}, num = 0;
    hpct_status status = run->serves ? HPCT_OK : choose_evaluation_batch(run);
    if (run->serves) {
        num = 1;
    } else {
        add_slices(sizes, &num, run->schedule.full_batch, run->schedule.slices);
        add_slices(sizes, &num, run->schedule.last_batch, run->schedule.slices);
        add_evaluation(run, sizes, &num);
    }
    hpct_run_build_options options = {
        .backend = run->serves ? "cpu" : NULL,
        .batch_sizes = sizes,
        .num_batch_sizes = num,
        .dense_targets = !run->serves && hpct_data_augment_mixes(&run->train->options),
        .plain_layout = true,
        .fp32 = run->serves};
    if (status == HPCT_OK)
        status = hpct_model_build(run->model, &options);
    if (status == HPCT_OK)
        status = build_host(run);
    if (status == HPCT_OK && hpct_model_synced_floats(run->model) > 0)
        status = hpct_fail(HPCT_ERR_USAGE, "synchronized BatchNormalization is not for --strategy "
                                           "parameter-server, whose workers do not step together");
    return status;
}

static size_t cut_gradients(const void *model, size_t at)
{
    return hpct_model_cut(model, at);
}

static size_t cut_anywhere(const void *nothing, size_t at)
{
    (void) nothing;
    return at;
}

static hpct_status divide(hpct_ps_run *run)
{
    size_t count, states, number = (size_t) run->servers + 1;
    hpct_model_gradients(run->host, &count);
    hpct_model_states(run->host, &states);
    run->bounds = calloc(number, sizeof *run->bounds);
    run->state_bounds = calloc(number, sizeof *run->state_bounds);
    if (run->bounds == NULL || run->state_bounds == NULL)
        return hpct_fail_memory(0);
    hpct_ps_partition(run->bounds, run->servers, count, cut_gradients, run->host);
    hpct_ps_partition(run->state_bounds, run->servers, states, cut_anywhere, NULL);
    return HPCT_OK;
}

/* What all processes compare. */
static hpct_status describe(hpct_ps_run *run)
{
    return hpct_train_identity_describe(
        &run->identity, &(hpct_train_identity_of){.model = run->model,
                                                  .train = run->train,
                                                  .validation = run->options.validation,
                                                  .fit = &run->options,
                                                  .global_batch = run->global_batch,
                                                  .steps = run->schedule.steps_per_epoch});
}

/* Processes with the same hash have the same run, and divide it in the same way. Numbers are hashed
 * as floats are sent, in host byte order. Weights of frozen layers are not sent. */
static hpct_status hash_plan(hpct_ps_run *run)
{
    uint64_t frozen;
    HPCT_TRY(describe(run));
    HPCT_TRY(hpct_run_state_hash_frozen(run->model, &frozen));
    json_t *compared = hpct_train_identity_of_ranks(run->identity);
    json_object_del(compared, HPCT_TRAIN_IDENTITY_OPTIONS); /* server 0 writes, and decides */
    hpct_train_identity_brief(compared, run->brief);
    char *text = compared != NULL ? json_dumps(compared, JSON_COMPACT) : NULL;
    json_decref(compared);
    if (text == NULL)
        return hpct_fail_memory(0);
    const hpct_ps_schedule_options *s = &run->schedule;
    const uint64_t facts[] = {hpct_digest_64(PACKAGE_VERSION, sizeof PACKAGE_VERSION),
                              hpct_digest_64(text, strlen(text)),
                              hpct_model_layout_fingerprint(run->host),
                              run->bounds[run->servers],
                              run->state_bounds[run->servers],
                              (uint64_t) run->servers,
                              (uint64_t) run->workers,
                              (uint64_t) s->slices,
                              (uint64_t) s->max_steps,
                              (uint64_t) s->full_batch,
                              (uint64_t) s->evaluation_slices,
                              frozen};
    run->plan = hpct_digest_64(facts, sizeof facts);
    free(text);
    return HPCT_OK;
}

/* Workers and servers have no communicator to compare affinity masks: if Slurm does not set a
 * task's number of CPUs, the tasks of a node share them. */
static void set_threads(const hpct_ps_run *run)
{
    size_t bytes = 0;
    const char *wanted = getenv("OMP_NUM_THREADS"), *on_node = getenv("SLURM_CPUS_ON_NODE");
    int local = hpct_context_config(run->context)->local_size;
    cpu_set_t *mask = hpct_rank_threads_mask(&bytes);
    if (mask == NULL || (wanted != NULL && atoi(wanted) >= 1))
        goto end;
    hpct_cpu_set_threads(hpct_rank_threads_share(hpct_rank_threads_cores(mask, bytes),
                                                 on_node != NULL ? 1 : local,
                                                 getenv("SLURM_CPUS_PER_TASK"), on_node, local));
end:
    if (mask != NULL)
        CPU_FREE(mask);
}

hpct_status hpct_ps_run_prepare(hpct_ps_run *run)
{
    HPCT_TRY(find_roles(run));
    HPCT_TRY(check_options(run));
    HPCT_TRY(hpct_fit_check_data(run->model, run->train, run->options.validation));
    if (run->serves && run->index == 0)
        HPCT_TRY(hpct_results_try_fit(&run->options, run->model));
    HPCT_TRY(hpct_context_join_seconds(&run->join_seconds));
    HPCT_TRY(count_steps(run));
    set_threads(run);
    HPCT_TRY(build(run));
    HPCT_TRY(divide(run));
    return hash_plan(run);
}

void hpct_ps_run_free(hpct_ps_run *run)
{
    if (run->host != run->model)
        hpct_model_free(run->host);
    hpct_data_sampler_free(run->sampler);
    free(run->addresses);
    free(run->nodes);
    free(run->bounds);
    free(run->state_bounds);
    json_decref(run->identity);
}

void hpct_ps_run_reason(const hpct_ps_run *run, hpct_ps_message *message)
{
    const char *text = hpct_last_error();
    size_t length = strlen(run->name);
    if (strncmp(text, run->name, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    *message = (hpct_ps_message){.type = HPCT_PS_LOST};
    hpct_net_frame_set(message->text, sizeof message->text, text);
}

/* ---- parts ---- */

static size_t part(const hpct_ps_run *run, int server, float *arena, float *states,
                   struct iovec *pieces)
{
    const size_t *b = &run->bounds[server], *s = &run->state_bounds[server];
    pieces[0] = (struct iovec){arena + b[0], (b[1] - b[0]) * sizeof *arena};
    pieces[1] =
        (struct iovec){states == NULL ? NULL : states + s[0], (s[1] - s[0]) * sizeof *states};
    return pieces[0].iov_len + pieces[1].iov_len;
}

size_t hpct_ps_run_parameters(const hpct_ps_run *run, int server, struct iovec *pieces)
{
    size_t count;
    return part(run, server, hpct_model_parameters(run->host, &count),
                hpct_model_states(run->host, &count), pieces);
}

int64_t hpct_ps_run_arena(const hpct_ps_run *run, int server, int arena, struct iovec *pieces)
{
    size_t count;
    if (arena == 0)
        return (int64_t) hpct_ps_run_parameters(run, server, pieces);
    float *slots = hpct_model_slots(run->host, arena - 1, &count);
    if (slots == NULL)
        return -1;
    part(run, server, slots, NULL, pieces);
    pieces[1] = (struct iovec){NULL, 0};
    return (int64_t) pieces[0].iov_len;
}

size_t hpct_ps_run_gradients(const hpct_ps_run *run, int server, float *states,
                             struct iovec *pieces)
{
    size_t count;
    return part(run, server, hpct_model_gradients(run->host, &count), states, pieces);
}

hpct_status hpct_ps_run_send(const hpct_ps_run *run)
{
    if (run->host == run->model)
        return HPCT_OK;
    HPCT_TRY(hpct_model_translate(run->model, run->host, HPCT_RUN_ARENA_PARAMETERS));
    return hpct_model_translate(run->model, run->host, HPCT_RUN_ARENA_STATES);
}

hpct_status hpct_ps_run_fetch(const hpct_ps_run *run)
{
    if (run->host == run->model)
        return HPCT_OK;
    HPCT_TRY(hpct_model_translate(run->host, run->model, HPCT_RUN_ARENA_GRADIENTS));
    return hpct_model_translate(run->host, run->model, HPCT_RUN_ARENA_STATES);
}
