/* Minimum-cost flow from tasks to GPUs. Each task in turn takes the cheapest augmenting path (it
 * takes a GPU, whose task moves to another GPU, and so on) that ends at a GPU with room, which
 * keeps the assignment optimal at every step (successive shortest paths, see Ahuja, Magnanti,
 * Orlin, "Network Flows", chapter 9). Each further task of a GPU costs more than the previous one,
 * which balances the loads. */
#include "spank/gpu/assign.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/status.h"

#define NEVER INT64_MAX

typedef struct flow {
    int gpus, placed; /* `placed`: the number of tasks assigned so far, in order */
    const int *distance;
    int *chosen;
    int64_t distance_weight, load_weight;
    int load[HPCT_GPUS_MAX_GPUS];
    /* the cheapest move of an assigned task between two GPUs, and that task */
    int64_t move[HPCT_GPUS_MAX_GPUS][HPCT_GPUS_MAX_GPUS];
    int mover[HPCT_GPUS_MAX_GPUS][HPCT_GPUS_MAX_GPUS];
} flow;

/* Cost of the pair, independent of loads; NEVER if not permitted. */
static int64_t cost(const flow *f, int task, int gpu)
{
    int distance = f->distance[task * f->gpus + gpu], off = gpu - task % f->gpus;
    return distance < 0 ? NEVER : distance * f->distance_weight + (int64_t) off * off;
}

static void find_moves(flow *f)
{
    for (int from = 0; from < f->gpus; from++) {
        for (int to = 0; to < f->gpus; to++)
            f->move[from][to] = NEVER;
    }
    for (int task = 0; task < f->placed; task++) {
        int from = f->chosen[task];
        int64_t now = cost(f, task, from);
        for (int to = 0; to < f->gpus; to++) {
            int64_t then = cost(f, task, to);
            if (to == from || then == NEVER || then - now >= f->move[from][to])
                continue;
            f->move[from][to] = then - now;
            f->mover[from][to] = task;
        }
    }
}

static bool place(flow *f, int task)
{
    int64_t reach[HPCT_GPUS_MAX_GPUS], best = NEVER;
    int before[HPCT_GPUS_MAX_GPUS], end = -1;
    find_moves(f);
    for (int gpu = 0; gpu < f->gpus; gpu++) {
        reach[gpu] = cost(f, task, gpu);
        before[gpu] = -1;
    }
    bool shorter = true;
    while (shorter) { /* Bellman-Ford: moves may have negative cost, cycles may not */
        shorter = false;
        for (int from = 0; from < f->gpus; from++) {
            for (int to = 0; reach[from] != NEVER && to < f->gpus; to++) {
                if (f->move[from][to] == NEVER || reach[from] + f->move[from][to] >= reach[to])
                    continue;
                reach[to] = reach[from] + f->move[from][to];
                before[to] = from;
                shorter = true;
            }
        }
    }
    for (int gpu = 0; gpu < f->gpus; gpu++) {
        if (reach[gpu] == NEVER || reach[gpu] + f->load[gpu] * f->load_weight >= best)
            continue;
        best = reach[gpu] + f->load[gpu] * f->load_weight;
        end = gpu;
    }
    if (end < 0)
        return false;
    f->load[end]++;
    for (; before[end] >= 0; end = before[end])
        f->chosen[f->mover[before[end]][end]] = end;
    f->chosen[task] = end;
    f->placed++;
    return true;
}

hpct_status hpct_gpus_assign(int tasks, int gpus, const int *distance, int *chosen)
{
    if (tasks < 1 || tasks > HPCT_GPUS_MAX_TASKS || gpus < 1 || gpus > HPCT_GPUS_MAX_GPUS)
        return hpct_fail(HPCT_ERR_USAGE, "%d tasks and %d GPUs: at most %d and %d can be placed",
                         tasks, gpus, HPCT_GPUS_MAX_TASKS, HPCT_GPUS_MAX_GPUS);
    for (int i = 0; i < tasks * gpus; i++) {
        if (distance[i] > HPCT_GPUS_MAX_DISTANCE)
            return hpct_fail(HPCT_ERR_USAGE, "a distance of %d is above %d", distance[i],
                             HPCT_GPUS_MAX_DISTANCE);
    }
    flow *f = calloc(1, sizeof *f);
    if (f == NULL)
        return hpct_fail_memory(sizeof *f);
    *f = (flow){.gpus = gpus, .distance = distance, .chosen = chosen};
    /* each weight exceeds the maximal sum of the lower-priority terms */
    f->distance_weight = (int64_t) tasks * gpus * gpus + 1;
    f->load_weight = (f->distance_weight * (HPCT_GPUS_MAX_DISTANCE + 1)) * (tasks + 1);
    hpct_status status = HPCT_OK;
    for (int task = 0; task < tasks && status == HPCT_OK; task++) {
        if (!place(f, task))
            status = hpct_fail(HPCT_ERR_CONFIG, "task %d may have no GPU", task);
    }
    free(f);
    return status;
}
