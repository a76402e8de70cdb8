/* A loss that is not finite: which layer it comes from, and on which rank. The step's forward is
 * repeated, with the same pictures and random numbers, and looked at. */
#include "agent/rank/context.h"
#include "agent/results/run_file.h"
#include "agent/results/status_file.h"
#include "agent/strategy/state.h"
#include "agent/train/fit_run.h"
#include "base/status.h"
#include "nn/run/finite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pipelines have the rest of forward in backward. */
static hpct_status repeat(const hpct_fit_run *run, int count, int global_count)
{
    hpct_strategy *strategy = run->training.strategy;
    hpct_strategy_step_sums sums = {.last = true};
    if (strategy->ops->announce != NULL)
        strategy->ops->announce(strategy, &sums);
    HPCT_TRY(strategy->ops->forward(strategy, count, true));
    return strategy->ops->in_pieces ? strategy->ops->backward(strategy, count, global_count, &sums)
                                    : HPCT_OK;
}

/* Of the models of this rank the first that has found anything. */
static hpct_status find_first(const hpct_fit_run *run, int count, int global_count,
                              hpct_run_finite_found *found)
{
    int num = 0;
    while (hpct_strategy_model(run->training.strategy, num) != NULL)
        num++;
    hpct_run_finite_found *each = calloc((size_t) num, sizeof *each);
    HPCT_TRY(
        hpct_context_agree(run->training.context, each != NULL ? HPCT_OK : hpct_fail_memory(0)));
    for (int k = 0; k < num; k++)
        hpct_model_watch_finite(hpct_strategy_model(run->training.strategy, k), &each[k]);
    hpct_status status = repeat(run, count, global_count);
    for (int k = 0; k < num; k++) {
        hpct_model_watch_finite(hpct_strategy_model(run->training.strategy, k), NULL);
        if (found->place == HPCT_RUN_FINITE)
            *found = each[k];
    }
    free(each);
    return status;
}

static void format(char *text, size_t size, const hpct_run_finite_found *found, int rank)
{
    static const char *const what[] = {
        [HPCT_RUN_FINITE_NOT_INPUT] = "pictures",
        [HPCT_RUN_FINITE_NOT_WEIGHTS] = "weights of layer ",
        [HPCT_RUN_FINITE_NOT_OUTPUT] = "output of layer ",
    };
    if (found->place != HPCT_RUN_FINITE)
        snprintf(text, size, "%s%s on rank %d not finite", what[found->place],
                 found->place == HPCT_RUN_FINITE_NOT_INPUT ? "" : found->layer, rank);
}

hpct_status hpct_fit_note_nan(hpct_fit_run *run, int count, int global_count)
{
    hpct_train_training *t = &run->training;
    hpct_comm *comm = hpct_context_comm(t->context);
    size_t ranks = (size_t) comm->size;
    hpct_run_finite_found mine = {.place = HPCT_RUN_FINITE}, *all = NULL;
    run->nan = true;
    if (hpct_model_on_device(t->model)) /* its weights have been updated */
        return HPCT_OK;
    HPCT_TRY(find_first(run, count, global_count, &mine));
    all = calloc(ranks, sizeof *all);
    hpct_status status =
        hpct_context_agree(t->context, all != NULL ? HPCT_OK : hpct_fail_memory(0));
    if (status == HPCT_OK)
        status = comm->ops->allgather(comm, &mine, all, sizeof mine);
    for (size_t rank = ranks; status == HPCT_OK && rank-- > 0;)
        format(t->now.end.fault, sizeof t->now.end.fault, &all[rank], (int) rank);
    free(all);
    return status;
}

hpct_status hpct_fit_goes_back(hpct_fit_run *run, bool *back, char **path)
{
    const hpct_train_training *t = &run->training;
    const char *on_nan = t->options.on_nan, *fault = t->now.end.fault;
    *back = false;
    if (!run->nan || on_nan == NULL || strcmp(on_nan, "resume") != 0 || t->again ||
        t->begin.halvings > 0 || t->now.signal != 0)
        return HPCT_OK;
    HPCT_TRY(hpct_train_checkpoints_any(run->checkpoints, back));
    if (!*back)
        return HPCT_OK;
    *path = strdup(t->leads ? hpct_train_checkpoints_last(run->checkpoints) : "rank 0's");
    HPCT_TRY(hpct_context_agree(t->context, *path != NULL ? HPCT_OK : hpct_fail_memory(0)));
    if (t->leads)
        fprintf(stderr,
                "hpc-train: the loss of step %" PRId64
                " is not finite%s%s: back to %s, with half the "
                "learning rate\n",
                t->now.steps_done, fault[0] != '\0' ? ", " : "", fault, *path);
    return HPCT_OK;
}

void hpct_fit_restate_failed(const hpct_train_training *t, bool settled)
{
    const char *log_dir = t->options.log_dir;
    if (log_dir == NULL || !t->leads)
        return;
    char *kept = hpct_error_keep();
    if (hpct_results_status_file_end(log_dir, HPCT_RESULTS_LIVE_FAILED) != HPCT_OK ||
        (settled && hpct_results_run_file_restate(log_dir, "failed", kept) != HPCT_OK))
        fprintf(stderr, "hpc-train: %s\n", hpct_last_error());
    hpct_error_restore(kept);
}
