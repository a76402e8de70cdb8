/* Times for emulated steps: from a file, or measured by the ranks in turn. */
#include "agent/cost/emulate.h"

#include "agent/cost/compute.h"
#include "agent/cost/made_up.h"
#include "base/progress.h"
#include "base/status.h"
#include "nn/run/clone.h"
#include "nn/run/step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEPS 9          /* per median */
#define MOST_MEDIANS 40  /* repeated until half of the turn is over */
#define FIRST_TURN 5.0   /* seconds; quadrupled if a rank needs more */
#define LONGEST_TURN 600 /* seconds */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static void sleep_until(double due)
{
    struct timespec until = {.tv_sec = (time_t) due};
    until.tv_nsec = (long) (1e9 * (due - (double) until.tv_sec));
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* Of the ranks with equal operations the first one measures. */
typedef struct turns {
    int turns;   /* number of measuring ranks */
    int my_turn; /* this rank's turn, or -1 */
    int first;   /* the rank that measures for this one */
} turns;

static hpct_status find_turns(hpct_comm *comm, uint64_t mine, uint64_t *all, turns *found)
{
    hpct_status status = comm->ops->allgather(comm, &mine, all, sizeof mine);
    *found = (turns){.first = -1, .my_turn = -1};
    for (int rank = 0; status == HPCT_OK && rank < comm->size; rank++) {
        int same = 0;
        while (all[same] != all[rank])
            same++;
        if (same == rank && rank == comm->rank)
            found->my_turn = found->turns;
        found->turns += same == rank;
        if (found->first < 0 && all[rank] == mine)
            found->first = rank;
    }
    return status;
}

/* The whole model, timed in alternation with a shard as a reference. */
typedef struct yardstick {
    hpct_model *model; /* NULL: none */
    int count;
    double seconds; /* of its step, from the file */
} yardstick;

static double step_of(const hpct_run_step_seconds *seconds, int parts)
{
    double sum = seconds->loss + seconds->update;
    for (int i = 0; i < parts; i++)
        sum += seconds->parts[i].forward + seconds->parts[i].backward;
    return sum;
}

static hpct_status new_seconds(hpct_run_step_seconds *seconds, int parts)
{
    *seconds = (hpct_run_step_seconds){.parts = calloc((size_t) parts, sizeof *seconds->parts)};
    return seconds->parts != NULL ? HPCT_OK
                                  : hpct_fail_memory((size_t) parts * sizeof *seconds->parts);
}

static void scale(hpct_run_step_seconds *seconds, int parts, double factor)
{
    for (int i = 0; i < parts; i++) {
        seconds->parts[i].forward *= factor;
        seconds->parts[i].backward *= factor;
    }
    seconds->loss *= factor;
    seconds->update *= factor;
}

static void add(hpct_run_step_seconds *sum, int parts, const hpct_run_step_seconds *one)
{
    for (int i = 0; i < parts; i++) {
        sum->parts[i].forward += one->parts[i].forward;
        sum->parts[i].backward += one->parts[i].backward;
    }
    sum->loss += one->loss;
    sum->update += one->update;
}

static void keep_least(hpct_run_step_seconds *least, int parts, const hpct_run_step_seconds *one)
{
    for (int i = 0; i < parts; i++) {
        least->parts[i].forward = fmin(least->parts[i].forward, one->parts[i].forward);
        least->parts[i].backward = fmin(least->parts[i].backward, one->parts[i].backward);
    }
    least->loss = fmin(least->loss, one->loss);
    least->update = fmin(least->update, one->update);
}

/* Medians of some steps, scaled by the reference if there is one. */
static hpct_status measure_once(hpct_model *model, int count, const yardstick *by,
                                hpct_run_step_seconds *seconds)
{
    int parts = hpct_model_count_parts(model), whole = 0;
    hpct_run_step_seconds beside;
    HPCT_TRY(hpct_model_time_parts(model, count, STEPS, seconds));
    if (by->model == NULL)
        return HPCT_OK;
    whole = hpct_model_count_parts(by->model);
    hpct_status status = new_seconds(&beside, whole);
    if (status == HPCT_OK)
        status = hpct_model_time_parts(by->model, by->count, STEPS, &beside);
    if (status == HPCT_OK)
        scale(seconds, parts, by->seconds / step_of(&beside, whole));
    free(beside.parts);
    return status;
}

/* Takes half of the turn. With a reference the mean of several medians; else each operation's
 * minimum, as other load only slows down. */
static hpct_status measure_own(hpct_model *model, int count, const yardstick *by, double length,
                               hpct_run_step_seconds *seconds)
{
    double began = now();
    int parts = hpct_model_count_parts(model), medians = 1;
    hpct_run_step_seconds one;
    hpct_status status = new_seconds(&one, parts);
    if (status == HPCT_OK)
        status = measure_once(model, count, by, seconds);
    double taken = now() - began;
    while (status == HPCT_OK && medians < MOST_MEDIANS && now() + taken < began + length / 2) {
        status = measure_once(model, count, by, &one);
        medians++;
        if (by->model != NULL)
            add(seconds, parts, &one);
        else
            keep_least(seconds, parts, &one);
    }
    if (by->model != NULL)
        scale(seconds, parts, 1.0 / medians);
    free(one.parts);
    return status;
}

/* One turn per measuring rank, of known length: waiting ranks sleep instead of polling, which would
 * take processor time from the measuring one. *late: whether a rank took longer than its turn. */
static hpct_status take_turns(hpct_context *context, hpct_model *model, int count,
                              const yardstick *by, const turns *order, double length,
                              hpct_run_step_seconds *seconds, bool *late)
{
    hpct_comm *comm = hpct_context_comm(context);
    hpct_status status = hpct_context_agree(context, HPCT_OK); /* common start */
    double began = now();
    bool mine_late = false;
    if (status != HPCT_OK)
        return status;
    for (int turn = 0; turn < order->turns; turn++) {
        if (turn == order->my_turn) {
            status = measure_own(model, count, by, length, seconds);
            mine_late = now() > began + (turn + 1) * length;
        }
        hpct_waits before = hpct_enter_wait(HPCT_WAITS_UNSEEN); /* may take minutes */
        sleep_until(began + (turn + 1) * length);
        hpct_enter_wait(before);
    }
    status = hpct_context_agree(context, status);
    bool *all = calloc((size_t) comm->size, sizeof *all);
    status = status != HPCT_OK
                 ? status
                 : hpct_context_agree(context, all == NULL ? hpct_fail_memory(0) : HPCT_OK);
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, &mine_late, all, sizeof mine_late);
    *late = false;
    for (int rank = 0; status == HPCT_OK && rank < comm->size; rank++)
        *late = *late || all[rank];
    free(all);
    return status;
}

/* Broadcasts the measured times to all ranks with equal operations. */
static hpct_status hand_out(hpct_comm *comm, const turns *order, hpct_run_step_seconds *seconds,
                            int parts, const uint64_t *all)
{
    hpct_status status = HPCT_OK;
    for (int rank = 0; rank < comm->size && status == HPCT_OK; rank++) {
        int same = 0;
        while (all[same] != all[rank])
            same++;
        if (same != rank)
            continue;
        /* ranks with other operations have other sizes: the size is sent first */
        int32_t number = parts;
        status = comm->ops->broadcast(comm, &number, sizeof number, rank);
        size_t doubles = 2 * (size_t) number + 2;
        double *room = status == HPCT_OK ? calloc(doubles, sizeof *room) : NULL;
        if (room == NULL)
            return status != HPCT_OK ? status : hpct_fail_memory(doubles * sizeof *room);
        if (rank == comm->rank) {
            room[0] = seconds->loss;
            room[1] = seconds->update;
            memcpy(room + 2, seconds->parts, (doubles - 2) * sizeof *room);
        }
        status = comm->ops->broadcast(comm, room, doubles * sizeof *room, rank);
        if (status == HPCT_OK && order->first == rank) {
            seconds->loss = room[0];
            seconds->update = room[1];
            memcpy(seconds->parts, room + 2, (doubles - 2) * sizeof *room);
        }
        free(room);
    }
    return status;
}

/* Times of the whole model from the file. */
static hpct_status read_times(const hpct_cost_emulate_options *o, hpct_cost_compute_way way,
                              int count, hpct_run_step_seconds *seconds)
{
    hpct_cost_compute compute;
    HPCT_TRY(hpct_cost_compute_read(&compute, o->whole, o->path));
    hpct_cost_compute_at(&compute, way, count, seconds);
    hpct_cost_compute_free(&compute);
    return HPCT_OK;
}

/* Builds a clone of the whole model, and reads its step time from the file. It stays built until
 * all turns are over. */
static hpct_status make_yardstick(const hpct_cost_emulate_options *o, yardstick *by)
{
    hpct_run_step_seconds seconds;
    int parts = hpct_model_count_parts(o->whole);
    hpct_run_build_options build = {
        .batch_sizes = &o->share, .num_batch_sizes = 1, .fuse_update = true};
    hpct_status status = new_seconds(&seconds, parts);
    if (status == HPCT_OK)
        status = read_times(o, HPCT_COST_FUSED, o->share, &seconds);
    by->seconds = step_of(&seconds, status == HPCT_OK ? parts : 0);
    by->count = o->share;
    free(seconds.parts);
    if (status == HPCT_OK)
        status = hpct_model_clone(&by->model, o->whole);
    if (status == HPCT_OK)
        status = hpct_model_initialize(by->model, 0);
    if (status == HPCT_OK)
        status = hpct_model_build(by->model, &build);
    return status == HPCT_OK ? hpct_cost_made_up_batch(by->model, o->share, 0) : status;
}

static hpct_status measure(hpct_context *context, const hpct_cost_emulate_options *o,
                           hpct_run_step_seconds *seconds)
{
    hpct_comm *comm = hpct_context_comm(context);
    turns order;
    yardstick by = {0};
    bool late = true;
    hpct_status status;
    uint64_t *all = hpct_context_allocate(context, (size_t) comm->size * sizeof *all, &status);
    if (status == HPCT_OK)
        status = find_turns(comm, hpct_model_parts_fingerprint(o->model) + (uint64_t) o->count, all,
                            &order);
    if (status == HPCT_OK && *o->path != '\0')
        status = hpct_context_agree(context, order.my_turn >= 0 ? make_yardstick(o, &by) : HPCT_OK);
    for (double length = FIRST_TURN; status == HPCT_OK && late; length *= 4) {
        if (length > LONGEST_TURN)
            status = hpct_fail(HPCT_ERR_USAGE,
                               "--emulate: %d steps take longer than %d s: give a file of compute "
                               "times, or a smaller batch",
                               STEPS + 1, LONGEST_TURN);
        else
            status = take_turns(context, o->model, o->count, &by, &order, length, seconds, &late);
    }
    if (status == HPCT_OK)
        status = hand_out(comm, &order, seconds, hpct_model_count_parts(o->model), all);
    hpct_model_free(by.model);
    free(all);
    return status;
}

hpct_status hpct_cost_emulate(hpct_context *context, const hpct_cost_emulate_options *o)
{
    hpct_run_step_seconds seconds;
    int parts = hpct_model_count_parts(o->model);
    bool is_whole =
        hpct_model_parts_fingerprint(o->model) == hpct_model_parts_fingerprint(o->whole);
    hpct_cost_compute_way way =
        hpct_context_size(context) == 1 ? HPCT_COST_FUSED : HPCT_COST_STORED;
    hpct_status status = hpct_context_agree(context, new_seconds(&seconds, parts));
    if (status == HPCT_OK && *o->path != '\0' && is_whole)
        status = hpct_context_agree(context, read_times(o, way, o->count, &seconds));
    else if (status == HPCT_OK)
        status = measure(context, o, &seconds);
    if (status == HPCT_OK)
        scale(&seconds, parts, o->dilation);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, hpct_model_emulate(o->model, &seconds));
    free(seconds.parts);
    return status;
}
