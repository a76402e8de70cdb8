/* The plan of a graph: the choice kept from an earlier run, else the fastest of cuDNN's candidates;
 * and its execution. */
#include "nn/backend/cuda/dnn_parts.h"

#include "base/debug.h"
#include "base/status.h"
#include "nn/backend/cuda/buffers.h"
#include "nn/backend/cuda/self_test.h"
#include "nn/backend/cuda/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEASURED 12 /* candidates, at most */
#define PACKS 3
#define FORGOTTEN ""     /* kept instead of a choice that cannot be made any more */
#define NO_ENGINE "none" /* kept: searching again would take as long as finding one */

typedef hpct_dnn_descriptor descriptor;

/* Shared by equal graphs. */
typedef struct shared_plan {
    struct shared_plan *next;
    int users;
    const hpct_cuda *gpu; /* the plan's GPU */
    hpct_dnn_graph *graph;
    hpct_dnn_candidate chosen; /* name "": there is no engine, which is remembered as well; plan
                                  NULL: not made yet */
    char why[HPCT_DNN_WHY];    /* there is none */
} shared_plan;

typedef struct pack {
    descriptor pack;
    void *pointers[HPCT_DNN_MOST_TENSORS], *workspace;
} pack;

struct hpct_dnn_plan {
    shared_plan *shared;
    int num_pointers;
    int64_t numbers[HPCT_DNN_MOST_TENSORS];
    pack packs[PACKS];
    int next_pack;
};

static shared_plan *all_plans;

static descriptor make_pack(int count, const int64_t *numbers, void *const *pointers,
                            void *workspace)
{
    descriptor made;
    if (!hpct_dnn_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &made))
        return NULL;
    if (hpct_dnn_set(made, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, numbers) &&
        hpct_dnn_set(made, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                     pointers) &&
        hpct_dnn_set(made, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace) &&
        hpct_dnn_finalize(made))
        return made;
    hpct_dnn_destroy_all(&made, 1);
    return NULL;
}

typedef struct trial {
    descriptor plan, pack;
} trial;

static hpct_status run_trial(void *argument)
{
    const trial *t = argument;
    return HPCT_DNN(cudnnBackendExecute(hpct_cuda_gpu.dnn, t->plan, t->pack));
}

/* Whether the candidate runs, and computes what the graph says. */
static bool is_right(const hpct_cuda_self_test *test, const hpct_dnn_graph *graph,
                     const hpct_dnn_candidate *c, trial *t)
{
    bool right = false;
    if (hpct_cuda_self_test_run(test, run_trial, t, &right) != HPCT_OK)
        return false;
    if (!right)
        hpct_debug(HPCT_DEBUG_OPS, "cuDNN's engine %s is wrong, and not used, for %s", c->name,
                   graph->key);
    return right;
}

/* Times all candidates on separate buffers, those that are right; *best: the fastest, -1 if there
 * is none, or no memory to try them with: *tried is false. */
static void measure(const hpct_dnn_graph *graph, hpct_dnn_candidate *candidates, int count,
                    int *best, bool *tried)
{
    int64_t numbers[HPCT_DNN_MOST_TENSORS];
    void *pointers[HPCT_DNN_MOST_TENSORS];
    size_t tensors = 0, workspace = 0;
    for (int i = 0; i < graph->num_tensors; i++)
        tensors += graph->inside[i] ? 0 : hpct_cuda_align_up(graph->bytes[i]);
    for (int i = 0; i < count; i++)
        workspace =
            candidates[i].workspace_bytes > workspace ? candidates[i].workspace_bytes : workspace;
    int num = hpct_dnn_graph_numbers(graph, numbers);
    char *memory = hpct_cuda_tune_memory(tensors + hpct_cuda_align_up(workspace) +
                                         hpct_cuda_self_test_bytes(graph));
    *tried = memory != NULL;
    *best = -1;
    size_t at = 0;
    for (int i = 0; i < num; i++) {
        pointers[i] = memory + at;
        at += hpct_cuda_align_up(graph->bytes[numbers[i] - 1]);
    }
    hpct_cuda_self_test test = {0};
    bool opened = *tried && hpct_cuda_self_test_open(&test, graph, pointers,
                                                     memory + tensors +
                                                         hpct_cuda_align_up(workspace)) == HPCT_OK;
    for (int i = 0; i < count && opened; i++) {
        trial t = {candidates[i].plan, make_pack(num, numbers, pointers, memory + tensors)};
        double best_so_far = *best < 0 ? 0 : candidates[*best].seconds;
        if (t.pack != NULL && is_right(&test, graph, &candidates[i], &t) &&
            hpct_cuda_tune_time(run_trial, &t, best_so_far, &candidates[i].seconds) == HPCT_OK &&
            (*best < 0 || candidates[i].seconds < candidates[*best].seconds))
            *best = i;
        hpct_dnn_destroy_all(&t.pack, 1);
    }
    hpct_cuda_tune_release(memory);
}

static hpct_status keep(hpct_cuda_choices *choices, const char *key, const hpct_dnn_candidate *c)
{
    char value[HPCT_DNN_NAME_SIZE + 64];
    snprintf(value, sizeof value, "%.0f %s", 1e9 * c->seconds, c->name);
    return hpct_cuda_choices_keep(choices, key, value);
}

/* Uses a kept choice, whose plan is made later, or the kept fact that there is none; false:
 * search. */
static bool take_kept(shared_plan *s, const char *kept)
{
    double nanoseconds = 0;
    int used = 0;
    if (kept != NULL && strcmp(kept, NO_ENGINE) == 0) {
        snprintf(s->why, sizeof s->why, "cuDNN proposed no engine in an earlier run");
        return true;
    }
    if (kept == NULL || sscanf(kept, "%lf %n", &nanoseconds, &used) != 1 || kept[used] == '\0')
        return false;
    s->chosen.seconds = 1e-9 * nanoseconds;
    snprintf(s->chosen.name, sizeof s->chosen.name, "%s", kept + used);
    return true;
}

static hpct_status search(shared_plan *s, hpct_cuda_choices *choices, size_t limit)
{
    hpct_dnn_candidate candidates[MEASURED];
    int count = 0, best = -1, troubles = hpct_dnn_troubles;
    bool tried = true, any;
    hpct_status status = HPCT_OK;
    hpct_dnn_propose(s->graph, CUDNN_HEUR_MODE_A, limit, MEASURED, candidates, &count);
    any = count > 0;
    if (any)
        measure(s->graph, candidates, count, &best, &tried);
    if (best < 0) {
        for (int i = 0; i < count; i++)
            hpct_dnn_candidate_drop(&candidates[i]);
        count = 0;
        hpct_dnn_propose(s->graph, CUDNN_HEUR_MODE_FALLBACK, limit, MEASURED, candidates, &count);
        any = any || count > 0;
        if (count > 0)
            measure(s->graph, candidates, count, &best, &tried);
        else if (!any && hpct_dnn_troubles == troubles)
            status = hpct_cuda_choices_keep(choices, s->graph->key, NO_ENGINE);
    }
    if (best >= 0)
        status = keep(choices, s->graph->key, &candidates[best]);
    for (int i = 0; i < count; i++) {
        if (i != best)
            hpct_dnn_candidate_drop(&candidates[i]);
    }
    s->chosen = best >= 0 ? candidates[best] : (hpct_dnn_candidate){0};
    snprintf(s->why, sizeof s->why, "%s",
             !any     ? "cuDNN proposes no engine"
             : !tried ? "the device has no memory to try cuDNN's engines with"
                      : "none of cuDNN's engines runs and is right");
    return status;
}

static hpct_status choose(shared_plan *s)
{
    hpct_cuda_choices *choices = NULL;
    size_t limit = 0;
    HPCT_TRY(hpct_cuda_tune_choices(&choices));
    HPCT_TRY(hpct_cuda_tune_workspace_limit(&limit));
    if (take_kept(s, hpct_cuda_choices_find(choices, s->graph->key)))
        return HPCT_OK;
    return search(s, choices, limit);
}

/* Makes the plan; if the kept choice cannot be made any more, searches another one. */
static hpct_status make_chosen(shared_plan *s)
{
    hpct_cuda_choices *choices = NULL;
    size_t limit = 0;
    hpct_dnn_candidate made;
    if (s->chosen.plan != NULL || s->chosen.name[0] == '\0')
        return HPCT_OK;
    HPCT_TRY(hpct_cuda_tune_choices(&choices));
    HPCT_TRY(hpct_cuda_tune_workspace_limit(&limit));
    if (!hpct_dnn_candidate_make(s->graph, s->chosen.name, limit, &made)) {
        HPCT_TRY(hpct_cuda_choices_keep(choices, s->graph->key, FORGOTTEN));
        return search(s, choices, limit);
    }
    made.seconds = s->chosen.seconds;
    s->chosen = made;
    return HPCT_OK;
}

static void let_go(shared_plan *s)
{
    if (--s->users > 0)
        return;
    for (shared_plan **at = &all_plans; *at != NULL; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    hpct_dnn_candidate_drop(&s->chosen);
    hpct_dnn_graph_free(s->graph);
    free(s);
}

static shared_plan *find_equal(const hpct_dnn_graph *graph)
{
    shared_plan *s = all_plans;
    while (s != NULL && (s->gpu != hpct_cuda_gpu_here || strcmp(s->graph->key, graph->key) != 0))
        s = s->next;
    return s;
}

/* Adds an entry for a graph without an equal one; takes ownership of the graph. */
static hpct_status add(shared_plan **out, hpct_dnn_graph *graph)
{
    shared_plan *s = *out = calloc(1, sizeof *s);
    if (s == NULL) {
        hpct_dnn_graph_free(graph);
        return hpct_fail_memory(sizeof *s);
    }
    s->graph = graph;
    s->gpu = hpct_cuda_gpu_here;
    s->users = 1;
    s->next = all_plans;
    all_plans = s;
    hpct_status status = choose(s);
    if (status != HPCT_OK)
        let_go(s);
    return status;
}

/* The entry of this graph or an equal one; takes ownership of the graph. */
static hpct_status find_shared(shared_plan **out, hpct_dnn_graph *graph)
{
    hpct_status status = HPCT_OK;
    hpct_cuda_tune_lock();
    *out = find_equal(graph);
    if (*out != NULL) {
        (*out)->users++;
        hpct_dnn_graph_free(graph);
    } else {
        status = add(out, graph);
    }
    hpct_cuda_tune_unlock();
    return status;
}

hpct_status hpct_dnn_find(hpct_dnn_plan **out, hpct_dnn_graph *graph, char why[HPCT_DNN_WHY])
{
    shared_plan *s = NULL;
    *out = NULL;
    hpct_dnn_graph_finish(graph);
    hpct_status status = graph->refused ? HPCT_OK : graph->status;
    if (graph->refused)
        snprintf(why, HPCT_DNN_WHY, "%s", hpct_last_error());
    if (graph->status != HPCT_OK) {
        hpct_dnn_graph_free(graph);
        return status;
    }
    HPCT_TRY(find_shared(&s, graph));
    /* the entry stays: it also records that there is no engine */
    if (s->chosen.name[0] == '\0') {
        memcpy(why, s->why, HPCT_DNN_WHY);
        return HPCT_OK;
    }
    hpct_dnn_plan *plan = *out = calloc(1, sizeof *plan);
    if (plan == NULL)
        return hpct_fail_memory(sizeof *plan);
    plan->shared = s;
    plan->num_pointers = hpct_dnn_graph_numbers(s->graph, plan->numbers);
    return HPCT_OK;
}

hpct_status hpct_dnn_take(hpct_dnn_plan **plan)
{
    if (*plan == NULL)
        return HPCT_OK;
    hpct_cuda_tune_lock();
    hpct_status status = make_chosen((*plan)->shared);
    bool there = (*plan)->shared->chosen.plan != NULL;
    hpct_cuda_tune_unlock();
    if (there)
        return status;
    hpct_dnn_plan_free(*plan);
    *plan = NULL;
    return status;
}

void hpct_dnn_plan_free(hpct_dnn_plan *plan)
{
    if (plan == NULL)
        return;
    for (int i = 0; i < PACKS; i++)
        hpct_dnn_destroy_all(&plan->packs[i].pack, 1);
    hpct_cuda_tune_lock();
    let_go(plan->shared);
    hpct_cuda_tune_unlock();
    free(plan);
}

const char *hpct_dnn_name(const hpct_dnn_plan *plan)
{
    return plan->shared->chosen.name;
}

size_t hpct_dnn_workspace_bytes(const hpct_dnn_plan *plan)
{
    return plan->shared->chosen.workspace_bytes;
}

double hpct_dnn_seconds(const hpct_dnn_plan *plan)
{
    return plan->shared->chosen.seconds;
}

/* The variant pack for these pointers; replaces the oldest if there is none. */
static hpct_status find_pack(hpct_dnn_plan *plan, void *const *pointers, void *workspace,
                             descriptor *out)
{
    size_t bytes = (size_t) plan->num_pointers * sizeof *pointers;
    for (int i = 0; i < PACKS; i++) {
        const pack *p = &plan->packs[i];
        if (p->pack != NULL && p->workspace == workspace &&
            memcmp(p->pointers, pointers, bytes) == 0) {
            *out = p->pack;
            return HPCT_OK;
        }
    }
    for (int i = 0; i < plan->num_pointers; i++) {
        if ((uintptr_t) pointers[i] % HPCT_DNN_ALIGNMENT != 0)
            return hpct_fail(HPCT_ERR_INTERNAL, "cuDNN: a tensor is not aligned to %d bytes",
                             HPCT_DNN_ALIGNMENT);
    }
    pack *p = &plan->packs[plan->next_pack];
    plan->next_pack = (plan->next_pack + 1) % PACKS;
    hpct_dnn_destroy_all(&p->pack, 1);
    memcpy(p->pointers, pointers, bytes);
    p->workspace = workspace;
    p->pack = *out = make_pack(plan->num_pointers, plan->numbers, pointers, workspace);
    return p->pack != NULL
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_INTERNAL, "cuDNN: the pointers of a graph were not taken");
}

hpct_status hpct_dnn_execute(hpct_dnn_plan *plan, void *const *pointers, void *workspace)
{
    descriptor found = NULL;
    HPCT_TRY(find_pack(plan, pointers, workspace, &found));
    return HPCT_DNN(cudnnBackendExecute(hpct_cuda_gpu.dnn, plan->shared->chosen.plan, found));
}
