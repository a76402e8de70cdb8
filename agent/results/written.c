/* The last lines of a run: what it has written, and what can be done with it. */
#include "agent/results/results.h"

#include <stdio.h>
#include <unistd.h>

/* Replaced files are reported elsewhere. */
static void print_output(FILE *stream, const char *what, const char *path, const char *hint)
{
    if (path != NULL && access(path, F_OK) == 0)
        fprintf(stream, "%s: %s%s\n", what, path, hint);
}

void hpct_results_say_written(const hpct_fit_options *o, const char *model, bool early,
                              FILE *stream)
{
    char hint[HPCT_RESULTS_WHERE];
    snprintf(hint, sizeof hint,
             "; hpc-train evaluate --model %s --weights %s --data DIR, or --weights of a further "
             "run",
             model, o->save_weights != NULL ? o->save_weights : "");
    print_output(stream, "weights", o->save_weights, hint);
    print_output(stream, "weights of the best epoch", o->save_best, "");
    snprintf(hint, sizeof hint, "; hpc-train report %s, or tensorboard --logdir %s",
             o->log_dir != NULL ? o->log_dir : "", o->log_dir != NULL ? o->log_dir : "");
    print_output(stream, "history", o->log_dir, hint);
    print_output(stream, "checkpoints", o->checkpoint_dir,
                 early ? "; the same command goes on with more patience or a further target"
                       : "; the same command with more --epochs goes on");
    print_output(stream, "summary", o->summary_json, "");
    print_output(stream, "confusion matrix of the validation data", o->confusion_matrix, "");
    print_output(stream, "timeline", o->timeline, "; open it at ui.perfetto.dev");
    fflush(stream);
}
