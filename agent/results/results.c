/* Outputs tried before a run; its weights saved, if need be elsewhere. */
#include "agent/results/results.h"

#include "agent/rank/stop.h"
#include "agent/results/live_report.h"
#include "agent/results/progress.h"
#include "base/file.h"
#include "base/links.h"
#include "base/output.h"
#include "base/status.h"
#include "nn/file/weights.h"

#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIVERGED 100
#define MOST_NAMES 1000 /* of one kind in one folder */
#define PREFIX_MAX 16

/* ---- names ---- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static char *folder_of(const char *path)
{
    char *copy = strdup(path), *folder = copy != NULL ? strdup(dirname(copy)) : NULL;
    free(copy);
    return folder;
}

/* ---- before step 1 ---- */

hpct_status hpct_results_try(const hpct_results_file *files, int num)
{
    for (int i = 0; i < num; i++) {
        for (int k = 0; k < i && files[i].path != NULL; k++) {
            if (files[k].path != NULL && hpct_output_same(files[i].path, files[k].path))
                return hpct_fail(HPCT_ERR_USAGE,
                                 "%s and %s would be one file, %s: give each a name of its own",
                                 files[k].option, files[i].option, files[i].path);
        }
    }
    for (int i = 0; i < num; i++) {
        hpct_status status =
            files[i].path != NULL ? hpct_output_try(files[i].path, files[i].bytes) : HPCT_OK;
        if (status != HPCT_OK)
            return hpct_fail_within(status, files[i].option);
    }
    return HPCT_OK;
}

/* A file in a checkpoint, or that a folder of checkpoints has, is not an output. */
static hpct_status check_apart(const hpct_results_file *file, const char *dir)
{
    static const char *const names[] = {"lock", "best.json"};
    char *inner = NULL, *outer = NULL, *target = hpct_links_follow(file->path);
    bool within = false;
    if (target != NULL && (inner = folder_of(target)) != NULL &&
        (outer = folder_of(inner)) != NULL) {
        bool in_dir = hpct_file_same_names(inner, dir);
        for (size_t i = 0; i < 2; i++)
            within |= in_dir && strcmp(base_of(target), names[i]) == 0;
        within |= strncmp(base_of(inner), "step-", 5) == 0 && hpct_file_same_names(outer, dir);
    }
    free(target);
    free(inner);
    free(outer);
    return within
               ? hpct_fail(HPCT_ERR_USAGE,
                           "%s %s would replace a file of --checkpoint-dir: give it another name",
                           file->option, file->path)
               : HPCT_OK;
}

static hpct_status try_files(const hpct_fit_options *o, const hpct_model *model)
{
    static const char *const names[] = {HPCT_RESULTS_HISTORY_EPOCHS, HPCT_RESULTS_HISTORY_STEPS,
                                        HPCT_RESULTS_LIVE_FILE};
    char logs[3][PATH_MAX];
    for (int i = 0; i < 3 && o->log_dir != NULL; i++)
        snprintf(logs[i], sizeof logs[i], "%s/%s", o->log_dir, names[i]);
    const bool logged = o->log_dir != NULL;
    const hpct_results_file files[] = {
        {"--summary-json", o->summary_json, 0},
        {"--timeline", o->timeline, 0},
        {"--confusion-matrix", o->confusion_matrix, 0},
        {"--metrics-file", o->metrics_file, 0},
        {"--save-weights", o->save_weights, hpct_model_count_parameters(model) * sizeof(float)},
        {"--save-best", o->save_best, hpct_model_count_parameters(model) * sizeof(float)},
        {"--log-dir", logged ? logs[0] : NULL, 0},
        {"--log-dir", logged ? logs[1] : NULL, 0},
        {"--log-dir", logged ? logs[2] : NULL, 0},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (files[i].path != NULL && o->checkpoint_dir != NULL)
            HPCT_TRY(check_apart(&files[i], o->checkpoint_dir));
    }
    return hpct_results_try(files, sizeof files / sizeof files[0]);
}

hpct_status hpct_results_try_fit(const hpct_fit_options *o, const hpct_model *model)
{
    if (o->save_weights != NULL)
        HPCT_TRY(hpct_model_check_weights_name(o->save_weights));
    if (o->save_best != NULL)
        HPCT_TRY(hpct_model_check_weights_name(o->save_best));
    if (o->checkpoint_dir != NULL)
        HPCT_TRY(hpct_output_make_folder(o->checkpoint_dir)); /* outputs may be in it */
    if (o->log_dir != NULL)
        HPCT_TRY(hpct_output_make_folder(o->log_dir));
    return try_files(o, model);
}

void hpct_results_note_loss(hpct_results_end *end, double loss, double mean)
{
    if (!end->has_loss)
        end->first_loss = loss;
    end->last_loss = loss;
    end->mean_loss = mean;
    end->has_loss = true;
}

/* One step may have an odd sample, and an epoch's mean a step that is long forgotten. */
bool hpct_results_diverged(const hpct_results_end *end)
{
    double most = DIVERGED * fmax(end->first_loss, 1);
    return end->has_loss &&
           (!isfinite(end->last_loss) || (end->last_loss > most && !(end->mean_loss <= most)));
}

/* ---- elsewhere ---- */

/* A long name loses its beginning: its end says the format. */
static hpct_status name_in(char **out, const char *folder, const char *base, const char *prefix)
{
    size_t length = strlen(base), most = NAME_MAX - PREFIX_MAX;
    char number[12] = "";
    *out = NULL;
    for (int i = 2; i < MOST_NAMES; i++) {
        if (asprintf(out, "%s/%s%s-%s", folder, prefix, number,
                     length > most ? base + length - most : base) < 0) {
            *out = NULL;
            return hpct_fail_memory(0);
        }
        if (faccessat(AT_FDCWD, *out, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            return HPCT_OK;
        free(*out);
        *out = NULL;
        snprintf(number, sizeof number, "-%d", i);
    }
    return hpct_fail(HPCT_ERR_IO, "%s: there are too many files %s-%s", folder, prefix, base);
}

hpct_status hpct_results_beside(char **out, const char *path, const char *prefix)
{
    char *folder = folder_of(path);
    if (folder == NULL)
        return hpct_fail_memory(0);
    hpct_status status = name_in(out, folder, base_of(path), prefix);
    free(folder);
    return status;
}

/* What is to be saved, and how. */
typedef struct rescue {
    hpct_results_rescuer *put;
    void *what;
    const char *prefix, *names[2]; /* the second NULL: there is one format */
} rescue;

static hpct_status save_in(const rescue *r, const char *folder, const char *base, bool synced,
                           char *where)
{
    char *name;
    hpct_status status = name_in(&name, folder, base, r->prefix);
    if (status == HPCT_OK)
        status = r->put(r->what, name, synced);
    if (status == HPCT_OK)
        snprintf(where, HPCT_RESULTS_WHERE, "%s", name);
    free(name);
    return status;
}

/* The nearest of three folders; in one that does not sync only when no other is left. */
static hpct_status save_in_any(const rescue *r, const char *path, char *where)
{
    char *own = folder_of(path), *working = getcwd(NULL, 0);
    const char *given = getenv("HPC_TRAIN_RESCUE_DIR");
    bool is_of_devices = own != NULL && strcmp(own, "/dev") == 0;
    const char *folders[] = {is_of_devices ? NULL : own,
                             given != NULL && given[0] != '\0' ? given : NULL, working};
    hpct_status status = HPCT_ERR_IO;
    if (folders[1] != NULL)
        hpct_output_make_folder(folders[1]);
    for (int k = 0; k < 4 && status != HPCT_OK; k++) {
        for (int i = 0; i < 3 && status != HPCT_OK && r->names[k % 2] != NULL; i++) {
            if (folders[i] != NULL)
                status = save_in(r, folders[i], r->names[k % 2], k < 2, where);
        }
    }
    free(working);
    free(own);
    return status;
}

static hpct_status put_weights(void *what, const char *name, bool synced)
{
    return hpct_model_rescue_weights(*(const hpct_model *const *) what, name, synced);
}

/* As safetensors where Keras' format itself is what fails. */
static hpct_status save_elsewhere(const hpct_model *model, const char *path, const char *prefix,
                                  char *where)
{
    char *plain = NULL;
    if (asprintf(&plain, "%s.safetensors", base_of(path)) < 0)
        plain = NULL;
    const rescue r = {put_weights, &model, prefix, {base_of(path), plain}};
    hpct_status status = save_in_any(&r, path, where);
    free(plain);
    return status;
}

hpct_status hpct_results_rescue(hpct_status failed, const char *path, hpct_results_rescuer *put,
                                void *what)
{
    const rescue r = {put, what, HPCT_RESULTS_RESCUED, {base_of(path), NULL}};
    char where[HPCT_RESULTS_WHERE], *why = hpct_error_keep();
    bool saved = save_in_any(&r, path, where) == HPCT_OK;
    hpct_error_restore(why);
    return saved ? hpct_fail(failed, "%s; what it was to hold is in %s", hpct_last_error(), where)
                 : failed;
}

hpct_status hpct_results_save(const hpct_model *model, const char *path, hpct_results_end *end)
{
    end->where[0] = '\0';
    end->diverged = hpct_results_diverged(end) || hpct_model_check_finite(model) == HPCT_ERR_DATA;
    if (end->diverged || end->failed != HPCT_OK)
        return save_elsewhere(
            model, path, end->diverged ? HPCT_RESULTS_DIVERGED : HPCT_RESULTS_RESCUED, end->where);
    hpct_status status = hpct_model_save_weights(model, path);
    if (status == HPCT_OK) {
        snprintf(end->where, sizeof end->where, "%s", path);
        return HPCT_OK;
    }
    char *why = hpct_error_keep();
    if (save_elsewhere(model, path, HPCT_RESULTS_RESCUED, end->where) != HPCT_OK) {
        status = hpct_fail(status, "%s; nor can the weights be saved elsewhere: %s",
                           why != NULL ? why : path, hpct_last_error());
        free(why);
        return status;
    }
    hpct_error_restore(why);
    return status;
}

static hpct_status put_summary(void *what, const char *name, bool synced)
{
    return synced ? hpct_results_summary_write(*(const hpct_results_summary *const *) what, name)
                  : HPCT_ERR_IO;
}

hpct_status hpct_results_write_summary(const hpct_results_summary *summary, const char *path,
                                       bool diverged)
{
    char *beside = NULL;
    hpct_status status = diverged && access(path, F_OK) == 0
                             ? hpct_results_beside(&beside, path, HPCT_RESULTS_DIVERGED)
                             : HPCT_OK;
    if (status == HPCT_OK)
        status = hpct_results_summary_write(summary, beside != NULL ? beside : path);
    free(beside);
    return status == HPCT_ERR_IO ? hpct_results_rescue(status, path, put_summary, &summary)
                                 : status;
}

/* ---- the last message ---- */

void hpct_results_note(hpct_results_end *end, hpct_status status)
{
    char *both = NULL;
    if (status == HPCT_OK)
        return;
    if (end->failed == HPCT_OK) {
        end->failed = status;
        end->why = hpct_error_keep();
    } else if (end->why != NULL && strstr(end->why, hpct_last_error()) == NULL &&
               asprintf(&both, "%s; %s", end->why, hpct_last_error()) >= 0) {
        free(end->why);
        end->why = both;
    }
}

static hpct_status has_diverged(const hpct_results_end *end, const char *lead, const char *where)
{
    char first[HPCT_RESULTS_METRIC_TEXT], last[HPCT_RESULTS_METRIC_TEXT],
        fault[sizeof end->fault + 64] = "";
    hpct_results_progress_metric(first, end->first_loss);
    hpct_results_progress_metric(last, end->last_loss);
    if (!isfinite(end->last_loss))
        snprintf(fault, sizeof fault, " (step %" PRId64 ", in epoch %d%s%s)", end->steps,
                 end->epoch, end->fault[0] != '\0' ? ", " : "", end->fault);
    return hpct_fail(
        HPCT_ERR_DATA,
        "training diverged: the loss was %s in the first step and %s in the last%s: a smaller "
        "--learning-rate, or --clip-norm, may help%s%s",
        first, last, fault, lead, where);
}

hpct_status hpct_results_tell(const hpct_results_end *end)
{
    const char *where = end->where, *lead = where[0] == '\0' ? "" : "; the weights are in ";
    if (end->failed != HPCT_OK)
        return hpct_fail(end->failed, "%s%s%s", end->why != NULL ? end->why : hpct_last_error(),
                         lead, where);
    if (end->diverged)
        return has_diverged(end, lead, where);
    if (end->signal == 0)
        return HPCT_OK;
    lead = where[0] == '\0' ? "" : "; the weights so far are in ";
    return hpct_fail(
        HPCT_ERR_STOPPED, "stopped by %s after step %" PRId64 ", in epoch %d of %d%s%s",
        hpct_rank_stop_name(end->signal), end->steps, end->epoch, end->epochs, lead, where);
}
