/* The last lines of a run: what it has written, and what can be done with it. */
#include "agent/results/results.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct lines {
    FILE *stream;
    int count;
} lines;

/* A file that is not there, as another has taken its place, is told of elsewhere. */
static void say(lines *out, const char *path, const char *what)
{
    if (path == NULL || access(path, F_OK) != 0)
        return;
    fprintf(out->stream, "%s%s: %s\n", out->count++ == 0 ? "written  " : "         ", path, what);
}

void hpct_results_say_written(const hpct_fit_options *o, const char *model, bool early,
                              FILE *stream)
{
    char text[HPCT_RESULTS_WHERE];
    lines out = {.stream = stream};
    snprintf(text, sizeof text,
             "weights; hpc-train evaluate --model %s --weights %s --data DIR, or --weights of a "
             "further run",
             model, o->save_weights != NULL ? o->save_weights : "");
    say(&out, o->save_weights, text);
    say(&out, o->save_best, "weights of the best epoch");
    snprintf(text, sizeof text,
             "the run's history; hpc-train report %s, or tensorboard --logdir %s",
             o->log_dir != NULL ? o->log_dir : "", o->log_dir != NULL ? o->log_dir : "");
    say(&out, o->log_dir, text);
    say(&out, o->checkpoint_dir,
        early ? "checkpoints; the same command goes on with more patience or a further target"
              : "checkpoints; the same command with more --epochs goes on");
    say(&out, o->summary_json, "summary");
    say(&out, o->confusion_matrix, "confusion matrix of the validation data");
    say(&out, o->timeline, "timeline; for ui.perfetto.dev");
    fflush(stream);
}
