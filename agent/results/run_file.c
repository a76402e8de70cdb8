/* Facts to JSON. */
#include "agent/results/run_file.h"

#include "agent/rank/stop.h"
#include "agent/results/json_file.h"
#include "agent/results/status_file.h"
#include "base/file.h"
#include "base/status.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME "run.json"
#define MOST_COMMAND ((size_t) 1 << 20)

struct hpct_results_run_file {
    hpct_results_run_facts facts;
    json_t *command, *starts;
    char path[PATH_MAX];
    bool written;
};

/* The arguments of this process; null if they cannot be read. */
static json_t *read_command(void)
{
    char *text = malloc(MOST_COMMAND);
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t size = text != NULL && file != NULL ? fread(text, 1, MOST_COMMAND - 1, file) : 0;
    json_t *words = size > 0 ? json_array() : json_null();
    if (file != NULL)
        fclose(file);
    if (size > 0)
        text[size] = '\0';
    for (size_t at = 0; at < size; at += strlen(text + at) + 1)
        json_array_append_new(words, hpct_results_json_text(text + at));
    free(text);
    return words;
}

static json_t *this_start(const hpct_results_run_facts *f)
{
    return json_pack("{s:I,s:o,s:o,s:i,s:I}", "time", (json_int_t) time(NULL), "job",
                     hpct_results_json_text(f->job), "host", hpct_results_json_text(f->host),
                     "epoch", f->begin_epoch, "step", (json_int_t) f->begin_step);
}

static void copy_members(json_t *to, const json_t *from, const char *const *keys, size_t num)
{
    for (size_t i = 0; i < num; i++)
        json_object_set(to, keys[i], json_object_get(from, keys[i])); /* none: no effect */
}

static json_int_t steps_at(const json_t *root, json_int_t epoch, json_int_t step)
{
    json_int_t each = json_integer_value(json_object_get(root, "steps_per_epoch"));
    return (json_int_t) ((uint64_t) epoch * (uint64_t) each + (uint64_t) step);
}

/* A run that was killed has written its end nowhere: status.json has its last step. */
static void note_last_step(json_t *start, const json_t *root, const char *log_dir)
{
    char path[PATH_MAX];
    hpct_results_live_report last;
    snprintf(path, sizeof path, "%s/" HPCT_RESULTS_LIVE_FILE, log_dir);
    if (hpct_results_status_file_read(&last, path) != HPCT_OK)
        return;
    json_int_t begin = steps_at(root, json_integer_value(json_object_get(start, "epoch")),
                                json_integer_value(json_object_get(start, "step")));
    if (last.state.epoch > 0) {
        json_object_set_new(start, "ended", json_integer(last.time));
        json_object_set_new(
            start, "steps",
            json_integer(steps_at(root, last.state.epoch - 1, last.state.step) - begin));
        json_object_set_new(start, "images_per_second", json_real(last.state.images_per_second));
    }
    hpct_results_live_report_free(&last);
}

/* How the last start before this one has ended. */
static void note_end(json_t *start, const json_t *root, const hpct_results_run_facts *facts)
{
    static const char *const of_run[] = {"state", "why", "ended", "workers"};
    static const char *const of_summary[] = {"steps", "start_seconds", "train_seconds",
                                             "epoch_seconds", "images_per_second"};
    copy_members(start, root, of_run, sizeof of_run / sizeof *of_run);
    copy_members(start, json_object_get(root, "summary"), of_summary,
                 sizeof of_summary / sizeof *of_summary);
    const char *state = json_string_value(json_object_get(root, "state"));
    if (state == NULL || strcmp(state, "running") != 0)
        return;
    json_object_set_new(start, "state", json_string(facts->again ? "went back" : "lost"));
    note_last_step(start, root, facts->log_dir);
}

/* Those of the run that is continued, if its file is there and says them. */
static json_t *earlier_starts(const hpct_results_run_file *file)
{
    json_t *root = NULL, *starts = NULL;
    if (file->facts.continues && hpct_results_json_read(&root, file->path) == HPCT_OK)
        starts = json_incref(json_object_get(root, "starts"));
    if (json_array_size(starts) > 0)
        note_end(json_array_get(starts, json_array_size(starts) - 1), root, &file->facts);
    json_decref(root);
    if (json_is_array(starts))
        return starts;
    json_decref(starts);
    return json_array();
}

hpct_status hpct_results_run_file_open(hpct_results_run_file **out,
                                       const hpct_results_run_facts *facts)
{
    hpct_results_run_file *file = calloc(1, sizeof *file);
    if (file == NULL)
        return hpct_fail_memory(sizeof *file);
    file->facts = *facts;
    snprintf(file->path, sizeof file->path, "%s/" NAME, facts->log_dir);
    file->command = read_command();
    file->starts = earlier_starts(file);
    file->written = facts->continues;
    json_array_append_new(file->starts, this_start(facts));
    *out = file;
    return HPCT_OK;
}

void hpct_results_run_file_close(hpct_results_run_file *file)
{
    if (file == NULL)
        return;
    json_decref(file->command);
    json_decref(file->starts);
    free(file);
}

/* Whether an earlier run's is there, and this one has not written its own. */
static bool spares(const hpct_results_run_file *file)
{
    return !file->written && access(file->path, F_OK) == 0;
}

/* The ranks of each node, in the nodes' order of first appearance. */
static json_t *nodes_to_json(const hpct_results_run_facts *f)
{
    json_t *nodes = json_array();
    for (int rank = 0; f->nodes != NULL && rank < f->ranks; rank++) {
        json_t *node = NULL;
        size_t i;
        if (f->nodes[rank] == NULL)
            continue;
        json_array_foreach(nodes, i, node)
        {
            const char *name = json_string_value(json_object_get(node, "name"));
            if (name != NULL && strcmp(name, f->nodes[rank]) == 0)
                break;
        }
        if (i == json_array_size(nodes)) {
            node = json_pack("{s:o,s:[]}", "name", hpct_results_json_text(f->nodes[rank]), "ranks");
            json_array_append_new(nodes, node);
        }
        json_array_append_new(json_object_get(node, "ranks"), json_integer(rank));
    }
    return nodes;
}

static json_t *facts_to_json(const hpct_results_run_file *file, const hpct_results_summary *s)
{
    const hpct_results_run_facts *f = &file->facts;
    json_t *libraries = json_pack("{s:o,s:o}", "oneDNN", hpct_results_json_text(f->one_dnn), "MPI",
                                  hpct_results_json_text(f->mpi));
    return json_pack(
        "{s:i,s:o,s:O,s:O,s:o,s:I,s:o,s:o,s:s,s:o,s:f,s:I,s:i,s:i,s:I,s:I,s:i,s:i,s:i,"
        "s:o,s:o,s:o,s:o}",
        "format", 1, "version", hpct_results_json_text(f->version), "command", file->command,
        "starts", file->starts, "model", hpct_results_json_text(s->model), "parameters",
        (json_int_t) s->parameters, "strategy", hpct_results_json_text(s->strategy), "device",
        hpct_results_json_text(s->device), "precision", hpct_precision_policy(s->precision),
        "optimizer", hpct_results_json_text(s->optimizer), "learning_rate", s->learning_rate,
        "seed", (json_int_t) s->seed, "global_batch", s->global_batch, "epochs", f->epochs,
        "steps_per_epoch", (json_int_t) f->steps_per_epoch, "samples", (json_int_t) f->samples,
        "workers", s->workers, "replicas", s->replicas, "threads", s->threads, "nodes",
        nodes_to_json(f), "libraries", libraries, "data", hpct_results_json_text(f->data),
        "checkpoint_dir", hpct_results_json_text(f->checkpoint_dir));
}

/* What is to be written, for a second place. */
typedef struct content {
    const hpct_results_run_file *file;
    const hpct_results_summary *summary;
    const char *state, *why;
} content;

static hpct_status write_as(const content *c, const char *path)
{
    bool ended = strcmp(c->state, "running") != 0;
    json_t *root = facts_to_json(c->file, c->summary);
    if (root != NULL) {
        json_object_set(root, "identity", c->file->facts.identity);
        json_object_set_new(root, "state", json_string(c->state));
        json_object_set_new(root, "why", hpct_results_json_text(c->why));
        json_object_set_new(root, "ended",
                            ended ? json_integer((json_int_t) time(NULL)) : json_null());
        json_object_set_new(root, "summary",
                            ended ? hpct_results_summary_to_json(c->summary) : json_null());
    }
    return hpct_results_json_write(root, path);
}

static hpct_status put_elsewhere(void *what, const char *name, bool synced)
{
    return synced ? write_as(what, name) : HPCT_ERR_IO;
}

hpct_status hpct_results_run_file_write(hpct_results_run_file *file,
                                        const hpct_results_summary *summary, const char *state,
                                        const char *why)
{
    content c = {file, summary, state, why};
    hpct_status status = write_as(&c, file->path);
    if (status == HPCT_OK)
        file->written = true;
    bool ended = strcmp(state, "running") != 0;
    return status == HPCT_ERR_IO && ended
               ? hpct_results_rescue(status, file->path, put_elsewhere, &c)
               : status;
}

hpct_status hpct_results_run_file_restate(const char *log_dir, const char *state, const char *why)
{
    char path[PATH_MAX];
    json_t *root = NULL;
    snprintf(path, sizeof path, "%s/" NAME, log_dir);
    if (hpct_results_json_read(&root, path) != HPCT_OK)
        return HPCT_OK;
    const char *is = json_string_value(json_object_get(root, "state"));
    if (is == NULL || strcmp(is, state) == 0) {
        json_decref(root);
        return HPCT_OK;
    }
    json_object_set_new(root, "state", json_string(state));
    json_object_set_new(root, "why", hpct_results_json_text(why));
    json_object_set_new(root, "ended", json_integer((json_int_t) time(NULL)));
    return hpct_results_json_write(root, path);
}

/* The earlier run's files, of which nothing was left to train. */
static hpct_status finish_earlier(const hpct_results_run_file *file)
{
    if (!file->facts.continues)
        return HPCT_OK;
    HPCT_TRY(hpct_results_status_file_end(file->facts.log_dir, HPCT_RESULTS_LIVE_FINISHED));
    return hpct_results_run_file_restate(file->facts.log_dir, "finished", NULL);
}

hpct_status hpct_results_run_file_end(hpct_results_run_file *file,
                                      const hpct_results_summary *summary,
                                      const hpct_results_end *end, bool early)
{
    bool failed = end->diverged || end->failed != HPCT_OK;
    if (spares(file))
        return HPCT_OK;
    if (summary->steps == 0)
        return failed || end->signal != 0 ? HPCT_OK : finish_earlier(file);
    const char *state = failed ? "failed" : end->signal != 0 ? "stopped" : "finished";
    const char *why = end->diverged      ? "training diverged"
                      : end->signal != 0 ? hpct_rank_stop_name(end->signal)
                      : early            ? "stopped early"
                                         : NULL;
    return hpct_results_run_file_write(file, summary, state, why);
}

void hpct_results_run_file_fail(hpct_results_run_file *file, const hpct_results_summary *summary)
{
    char *kept = hpct_error_keep();
    if (hpct_results_run_file_write(file, summary, "failed", kept) != HPCT_OK)
        fprintf(stderr, "hpc-train: %s\n", hpct_last_error());
    hpct_error_restore(kept);
}
