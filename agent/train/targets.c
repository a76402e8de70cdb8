/* Targets of a data set, and the options that go with them. */
#include "agent/train/targets.h"

#include "agent/data/dataset.h"
#include "agent/results/metric.h"
#include "agent/train/trained_with.h"
#include "base/status.h"
#include "nn/run/step.h"

#include <stdlib.h>
#include <string.h>

static hpct_status refuse(const char *option, const hpct_dataset *dataset)
{
    return hpct_fail(HPCT_ERR_USAGE,
                     "%s is for one class per picture: --labels %s has a number for each of %d "
                     "outputs",
                     option, dataset->label_path, dataset->num_targets);
}

/* Of the model's kind of targets, which is set. */
static hpct_status check_metrics(const hpct_model *model, const hpct_dataset *dataset,
                                 unsigned metrics)
{
    bool numbers = hpct_model_judged(model) == HPCT_TARGETS_NUMBERS;
    for (const hpct_results_metric *m = hpct_results_metric_table; m->name != NULL; m++) {
        if ((metrics & m->bit) == 0)
            continue;
        if (m->kind == HPCT_RESULTS_METRIC_OF_NUMBERS && !numbers)
            return hpct_fail(HPCT_ERR_USAGE,
                             "--metrics %s is of numbers: it needs --labels with a column for each "
                             "output, and --loss mean_squared_error or huber",
                             m->name);
        if (m->kind == HPCT_RESULTS_METRIC_OF_CLASSES && dataset->targets != NULL)
            return refuse("--metrics", dataset);
    }
    return HPCT_OK;
}

static hpct_status check_options(const hpct_model *model, const hpct_dataset *train,
                                 const hpct_fit_options *options)
{
    int num_weights;
    if (options->confusion_matrix != NULL)
        return refuse("--confusion-matrix", train);
    if (hpct_model_top_k(model) > 0)
        return refuse("--top-k", train);
    return hpct_model_class_weights(model, &num_weights) != NULL ? refuse("--class-weight", train)
                                                                 : HPCT_OK;
}

static hpct_status check_columns(const hpct_dataset *validation, const hpct_dataset *train)
{
    if (validation->num_targets != train->num_targets)
        return hpct_fail(HPCT_ERR_DATA, "%s has %d columns of numbers, and %s %d",
                         validation->label_path, validation->num_targets, train->label_path,
                         train->num_targets);
    for (int i = 0; i < train->num_targets; i++) {
        if (strcmp(validation->classes[i], train->classes[i]) != 0)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s, line 1, column %d: it is %s, and %s in %s: the columns must be "
                             "the same",
                             validation->label_path, i + 2, validation->classes[i],
                             train->classes[i], train->label_path);
    }
    return HPCT_OK;
}

static hpct_status check_validation(const hpct_dataset *train, const hpct_dataset *validation)
{
    if (validation == NULL || (train->targets == NULL) == (validation->targets == NULL))
        return validation != NULL && train->targets != NULL ? check_columns(validation, train)
                                                            : HPCT_OK;
    if (validation->targets == NULL)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--labels %s has a number for each output, the validation data have "
                         "classes: give their numbers with --validation-labels",
                         train->label_path);
    return hpct_fail(HPCT_ERR_USAGE,
                     "--validation-labels %s has a number for each output, the training data have "
                     "classes: give their numbers with --labels",
                     validation->label_path);
}

/* ---- names of classes, or of outputs, that the weights have ---- */

static int find_name(char *const *names, int count, const char *name)
{
    int i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i < count ? i : -1;
}

/* The same names in another order would train each output for another class. */
static hpct_status compare_names(const hpct_dataset *train, char *const *saved, int count)
{
    int moved = -1, others = train->num_classes != count;
    for (int i = 0; i < train->num_classes; i++) {
        int at = find_name(saved, count, train->classes[i]);
        others += at < 0;
        moved = at >= 0 && at != i && moved < 0 ? i : moved;
    }
    if (others > 0 || moved < 0)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: %s is number %d here and %d in the weights, which have the same names in "
                     "another order: order them as the weights, or leave the last layer out of "
                     "--weights",
                     train->label_path != NULL ? train->label_path : hpct_dataset_source(train),
                     train->classes[moved], moved, find_name(saved, count, train->classes[moved]));
}

static hpct_status check_names(const hpct_model *model, const hpct_dataset *train)
{
    char **saved = NULL;
    int count = 0;
    hpct_status status = train->targets != NULL
                             ? hpct_model_output_names(model, &saved, &count, NULL)
                             : hpct_model_class_names(model, &saved, &count);
    if (status == HPCT_OK && count > 0 && train->num_classes > 0)
        status = compare_names(train, saved, count);
    free(saved);
    return status;
}

hpct_status hpct_train_targets_begin(hpct_model *model, const hpct_dataset *train,
                                     const hpct_fit_options *options)
{
    const char *const *names = (const char *const *) train->classes;
    HPCT_TRY(check_validation(train, options->validation));
    HPCT_TRY(check_names(model, train));
    HPCT_TRY(hpct_train_trained_with_note(model, train));
    hpct_model_take_targets(model, train->targets != NULL);
    HPCT_TRY(check_metrics(model, train, options->metrics));
    if (train->targets == NULL)
        return hpct_model_set_class_names(model, names, train->num_classes);
    HPCT_TRY(check_options(model, train, options));
    hpct_status status = hpct_model_set_output_names(model, names, train->num_classes);
    return status == HPCT_OK ? HPCT_OK : hpct_fail_within(status, train->label_path);
}

hpct_status hpct_train_targets_check_apart(const hpct_dataset *train)
{
    return train->targets != NULL
               ? hpct_fail(HPCT_ERR_USAGE,
                           "--labels %s has a number for each output, which is not for --strategy "
                           "parameter-server: its workers take one class per picture",
                           train->label_path)
               : HPCT_OK;
}

hpct_status hpct_train_targets_evaluate(hpct_model *model, const hpct_dataset *dataset,
                                        const hpct_evaluate_options *options)
{
    hpct_model_take_targets(model, dataset->targets != NULL);
    HPCT_TRY(check_metrics(model, dataset, options->metrics));
    if (dataset->targets == NULL)
        return HPCT_OK;
    if (options->confusion_matrix != NULL)
        return refuse("--confusion-matrix", dataset);
    return hpct_dataset_check_targets(dataset, model);
}
