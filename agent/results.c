/* Outputs tried before a run; its weights saved, if need be elsewhere. */
#include "agent/results.h"

#include "agent/history.h"
#include "agent/progress.h"
#include "agent/stop.h"
#include "base/status.h"
#include "nn/output.h"
#include "nn/weights.h"

#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIVERGED 100
#define MOST_NAMES 1000 /* of one kind in one folder */
#define PREFIX_MAX 16

/* ---- before step 1 ---- */

hpct_status hpct_results_try(const hpct_result_file *files, int num)
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

static hpct_status try_with_logs(const hpct_fit_options *o, const hpct_model *model,
                                 const char *epochs, const char *steps)
{
    const hpct_result_file files[] = {
        {"--summary-json", o->summary_json, 0},
        {"--timeline", o->timeline, 0},
        {"--save-weights", o->save_weights, hpct_model_count_parameters(model) * sizeof(float)},
        {"--log-dir", epochs, 0},
        {"--log-dir", steps, 0},
    };
    return hpct_results_try(files, sizeof files / sizeof files[0]);
}

hpct_status hpct_results_try_fit(const hpct_fit_options *options, const hpct_model *model)
{
    char *epochs = NULL, *steps = NULL;
    const char *log = options->log_dir;
    hpct_status status = HPCT_OK;
    if (options->save_weights != NULL)
        status = hpct_model_check_weights_name(options->save_weights);
    if (status == HPCT_OK && log != NULL)
        status = hpct_output_make_folder(log);
    if (status == HPCT_OK && log != NULL &&
        (asprintf(&epochs, "%s/%s", log, HPCT_HISTORY_EPOCHS) < 0 ||
         asprintf(&steps, "%s/%s", log, HPCT_HISTORY_STEPS) < 0))
        status = hpct_fail_memory(0);
    if (status == HPCT_OK)
        status = try_with_logs(options, model, epochs, steps);
    free(epochs);
    free(steps);
    return status;
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

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

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

static char *folder_of(const char *path)
{
    char *copy = strdup(path), *folder = copy != NULL ? strdup(dirname(copy)) : NULL;
    free(copy);
    return folder;
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

static hpct_status save_in(const hpct_model *model, const char *folder, const char *base,
                           const char *prefix, char *where)
{
    char *name;
    hpct_status status = name_in(&name, folder, base, prefix);
    if (status == HPCT_OK)
        status = hpct_model_rescue_weights(model, name);
    if (status == HPCT_OK)
        snprintf(where, HPCT_RESULTS_WHERE, "%s", name);
    free(name);
    return status;
}

/* The nearest of three folders; and as safetensors where Keras' format itself is what fails. */
static hpct_status save_elsewhere(const hpct_model *model, const char *path, const char *prefix,
                                  char *where)
{
    char *own = folder_of(path), *working = getcwd(NULL, 0), *plain = NULL;
    const char *given = getenv("HPC_TRAIN_RESCUE_DIR");
    const char *folders[] = {own, given != NULL && given[0] != '\0' ? given : NULL, working};
    hpct_status status = HPCT_ERR_IO;
    if (asprintf(&plain, "%s.safetensors", base_of(path)) < 0)
        plain = NULL;
    if (folders[1] != NULL)
        hpct_output_make_folder(folders[1]);
    const char *names[] = {base_of(path), plain};
    for (int k = 0; k < 2 && status != HPCT_OK; k++) {
        for (int i = 0; i < 3 && status != HPCT_OK && names[k] != NULL; i++) {
            if (folders[i] != NULL)
                status = save_in(model, folders[i], names[k], prefix, where);
        }
    }
    free(plain);
    free(working);
    free(own);
    return status;
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

hpct_status hpct_results_write_summary(const hpct_summary *summary, const char *path, bool diverged)
{
    char *beside = NULL;
    hpct_status status = diverged && access(path, F_OK) == 0
                             ? hpct_results_beside(&beside, path, HPCT_RESULTS_DIVERGED)
                             : HPCT_OK;
    if (status == HPCT_OK)
        status = hpct_summary_write(summary, beside != NULL ? beside : path);
    free(beside);
    return status;
}

/* ---- the last message ---- */

void hpct_results_note(hpct_results_end *end, hpct_status status)
{
    if (status == HPCT_OK || end->failed != HPCT_OK)
        return;
    end->failed = status;
    end->why = hpct_error_keep();
}

static hpct_status has_diverged(const hpct_results_end *end, const char *lead, const char *where)
{
    char first[HPCT_LOSS_TEXT], last[HPCT_LOSS_TEXT];
    hpct_progress_loss(first, end->first_loss);
    hpct_progress_loss(last, end->last_loss);
    return hpct_fail(
        HPCT_ERR_DATA,
        "training diverged: the loss was %s in the first step and %s in the last: a smaller "
        "--learning-rate, or --clip-norm, may help%s%s",
        first, last, lead, where);
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
    return hpct_fail(HPCT_ERR_STOPPED,
                     "stopped by %s after step %" PRId64 ", in epoch %d of %d%s%s",
                     hpct_stop_name(end->signal), end->steps, end->epoch, end->epochs, lead, where);
}
