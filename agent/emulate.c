/* Times for emulated steps: from a file, or measured by the ranks in turn. */
#include "agent/emulate.h"

#include "agent/compute.h"
#include "base/status.h"
#include "nn/step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEPS 9          /* of a median; */
#define MOST_MEDIANS 40  /* more of them until half of the turn is over */
#define FIRST_TURN 5.0   /* seconds; four times as long when somebody needs more */
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

/* Of the ranks with the same operations the first one measures. */
typedef struct turns {
    int turns;   /* how many there are who measure, */
    int my_turn; /* which of them this rank is, or -1, */
    int first;   /* and which rank measures for this one */
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

static void keep_least(double *kept, double found)
{
    *kept = fmin(*kept, found);
}

/* Of each operation the least of some medians: what others take of a machine makes it slower, never
 * faster. */
static hpct_status measure_own(hpct_model *model, int count, double length,
                               hpct_step_seconds *seconds)
{
    double began = now();
    int parts = hpct_model_count_parts(model);
    hpct_step_seconds one = {.parts = calloc((size_t) parts, sizeof *one.parts)};
    if (one.parts == NULL)
        return hpct_fail_memory((size_t) parts * sizeof *one.parts);
    hpct_status status = hpct_model_time_parts(model, count, STEPS, seconds);
    double taken = now() - began;
    for (int i = 1; i < MOST_MEDIANS && status == HPCT_OK && now() + taken < began + length / 2;
         i++) {
        status = hpct_model_time_parts(model, count, STEPS, &one);
        for (int k = 0; k < parts; k++) {
            keep_least(&seconds->parts[k].forward, one.parts[k].forward);
            keep_least(&seconds->parts[k].backward, one.parts[k].backward);
        }
        keep_least(&seconds->loss, one.loss);
        keep_least(&seconds->update, one.update);
    }
    free(one.parts);
    return status;
}

/* One turn each, of which all know the length: nobody who waits looks for messages meanwhile, which
 * would take processors from the one that measures. Tells whether all were done in time. */
static hpct_status take_turns(hpct_context *context, hpct_model *model, int count,
                              const turns *order, double length, hpct_step_seconds *seconds,
                              bool *late)
{
    hpct_comm *comm = hpct_context_comm(context);
    hpct_status status = hpct_context_agree(context, HPCT_OK); /* all begin together */
    double began = now();
    bool mine_late = false;
    if (status != HPCT_OK)
        return status;
    for (int turn = 0; turn < order->turns; turn++) {
        if (turn == order->my_turn) {
            status = measure_own(model, count, length, seconds);
            mine_late = now() > began + (turn + 1) * length;
        }
        sleep_until(began + (turn + 1) * length);
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

/* What was measured, to all that have the same operations. */
static hpct_status hand_out(hpct_comm *comm, const turns *order, hpct_step_seconds *seconds,
                            int parts, const uint64_t *all)
{
    hpct_status status = HPCT_OK;
    for (int rank = 0; rank < comm->size && status == HPCT_OK; rank++) {
        int same = 0;
        while (all[same] != all[rank])
            same++;
        if (same != rank)
            continue;
        /* ranks of other operations have other numbers of them: the size goes first */
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

static hpct_status measure(hpct_context *context, hpct_model *model, int count,
                           hpct_step_seconds *seconds)
{
    hpct_comm *comm = hpct_context_comm(context);
    turns order;
    bool late = true;
    uint64_t *all = calloc((size_t) comm->size, sizeof *all);
    hpct_status status = hpct_context_agree(context, all == NULL ? hpct_fail_memory(0) : HPCT_OK);
    if (status == HPCT_OK)
        status =
            find_turns(comm, hpct_model_parts_fingerprint(model) + (uint64_t) count, all, &order);
    for (double length = FIRST_TURN; status == HPCT_OK && late; length *= 4) {
        if (length > LONGEST_TURN)
            status = hpct_fail(HPCT_ERR_USAGE,
                               "--emulate: %d steps take longer than %d s: give a file of compute "
                               "times, or a smaller batch",
                               STEPS + 1, LONGEST_TURN);
        else
            status = take_turns(context, model, count, &order, length, seconds, &late);
    }
    if (status == HPCT_OK)
        status = hand_out(comm, &order, seconds, hpct_model_count_parts(model), all);
    free(all);
    return status;
}

static hpct_status read_times(hpct_model *model, hpct_compute_way way, int count, const char *path,
                              hpct_step_seconds *seconds)
{
    hpct_compute compute;
    hpct_status status = hpct_compute_read(&compute, model, path);
    if (status == HPCT_ERR_USAGE)
        return hpct_fail_within(status, "--emulate (a strategy that splits the model measures its "
                                        "parts itself: leave the file out)");
    if (status != HPCT_OK)
        return status;
    hpct_compute_at(&compute, way, count, seconds);
    hpct_compute_free(&compute);
    return HPCT_OK;
}

static void dilate(hpct_step_seconds *seconds, int parts, double dilation)
{
    for (int i = 0; i < parts; i++) {
        seconds->parts[i].forward *= dilation;
        seconds->parts[i].backward *= dilation;
    }
    seconds->loss *= dilation;
    seconds->update *= dilation;
}

hpct_status hpct_emulate(hpct_context *context, hpct_model *model, int count, const char *path,
                         double dilation)
{
    size_t bytes = (size_t) hpct_model_count_parts(model) * sizeof(hpct_part_seconds);
    hpct_step_seconds seconds = {.parts = calloc(1, bytes)};
    hpct_status status =
        hpct_context_agree(context, seconds.parts == NULL ? hpct_fail_memory(bytes) : HPCT_OK);
    if (status == HPCT_OK && *path != '\0')
        status = hpct_context_agree(
            context, read_times(model, hpct_context_size(context) == 1 ? HPCT_FUSED : HPCT_STORED,
                                count, path, &seconds));
    else if (status == HPCT_OK)
        status = measure(context, model, count, &seconds);
    if (status == HPCT_OK)
        dilate(&seconds, hpct_model_count_parts(model), dilation);
    if (status == HPCT_OK)
        status = hpct_context_agree(context, hpct_model_emulate(model, &seconds));
    free(seconds.parts);
    return status;
}
