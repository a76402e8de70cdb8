/* The last lines of a run: what it has written, and what can be done with it. */
#include "agent/results/results.h"

#include "base/hint.h"
#include "nn/graph/compile.h"

#include <stdio.h>
#include <unistd.h>

/* Replaced files are reported elsewhere. */
static void print_output(FILE *stream, const char *what, const char *path, const char *hint)
{
    if (path != NULL && access(path, F_OK) == 0)
        fprintf(stream, "%s: %s%s\n", what, path, hint);
}

/* The command that shows a run's history, where it can still be typed after the step. */
static void print_history(FILE *stream, const char *log_dir)
{
    if (log_dir == NULL || access(log_dir, F_OK) != 0)
        return;
    fprintf(stream, "history: %s", log_dir);
    if (hpct_hint_lasts(log_dir)) {
        fputs("; to see it: hpc-train report", stream);
        hpct_hint_word(stream, NULL, log_dir);
    }
    fputc('\n', stream);
}

bool hpct_results_rate_spans(const hpct_model *model)
{
    hpct_schedule_kind kind = hpct_model_optimizer(model)->schedule.kind;
    return kind == HPCT_COSINE_DECAY || kind == HPCT_POLYNOMIAL_DECAY;
}

void hpct_results_say_written(const hpct_fit_options *o, const hpct_model *model, bool early,
                              FILE *stream)
{
    print_output(stream, "weights", o->save_weights,
                 "; for hpc-train evaluate, or --weights of a further run");
    print_output(stream, "weights of the best epoch", o->save_best, "");
    print_history(stream, o->log_dir);
    print_output(
        stream, "checkpoints", o->checkpoint_dir,
        early ? "; the same command goes on with more patience or a further target"
        : hpct_results_rate_spans(model)
            ? "; the same command with more --epochs goes on, and its learning rate begins "
              "higher than it ends here: --schedule then spans all of them"
            : "; the same command with more --epochs goes on");
    print_output(stream, "summary", o->summary_json, "");
    print_output(stream, "confusion matrix of the validation data", o->confusion_matrix, "");
    print_output(stream, "timeline", o->timeline, "; open it at ui.perfetto.dev");
    fflush(stream);
}
