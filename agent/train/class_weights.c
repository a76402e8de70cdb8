/* Weights of classes: from a file, or balanced by how many samples they have. */
#include "agent/train/class_weights.h"

#include "agent/data/dataset.h"
#include "agent/rank/context.h"
#include "base/kind.h"
#include "base/status.h"

#include <hpctrain/train.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t) 16 << 20)

/* ---- a file ---- */

/* A number from 0, in digits without others before it. */
static int number_of(const char *key, int labels)
{
    size_t length = strspn(key, "0123456789");
    if (length == 0 || key[length] != '\0' || length > 9 || (key[0] == '0' && length > 1))
        return -1;
    int number = atoi(key);
    return number < labels ? number : -1;
}

static int find_class(const char *key, int labels, char *const *names, int num_names)
{
    for (int i = 0; i < num_names && i < labels; i++) {
        if (strcmp(names[i], key) == 0)
            return i;
    }
    return number_of(key, labels);
}

/* *weight is NaN until it is set. */
static hpct_status read_weight(double *weight, const char *key, const json_t *value,
                               const char *path)
{
    double number = json_is_number(value) ? json_number_value(value) : -1;
    if (!isnan(*weight))
        return hpct_fail(HPCT_ERR_DATA, "%s: class \"%s\" has a weight by name and by number", path,
                         key);
    if (!(number >= 0) || !isfinite((float) number))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: the weight of class \"%s\" should be a number that is not negative",
                         path, key);
    *weight = number;
    return HPCT_OK;
}

static hpct_status take_all(double *weights, int labels, json_t *root, char *const *names,
                            int num_names, const char *path)
{
    const char *key;
    json_t *value;
    if (!json_is_object(root))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: expected an object of weights by class: {\"0\": 1.0, \"1\": 2.5}",
                         path);
    for (int i = 0; i < labels; i++)
        weights[i] = NAN;
    json_object_foreach (root, key, value) {
        int class = find_class(key, labels, names, num_names);
        if (class < 0)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: \"%s\" is neither the name of a class nor a number from 0 to %d",
                             path, key, labels - 1);
        HPCT_TRY(read_weight(&weights[class], key, value, path));
    }
    for (int i = 0; i < labels; i++)
        weights[i] = isnan(weights[i]) ? 1 : weights[i];
    return HPCT_OK;
}

hpct_status hpct_train_class_weights_parse(double *weights, int labels, const char *text,
                                           char *const *names, int num_names, const char *path)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: line %d: %s", path, error.line, error.text);
    hpct_status status = take_all(weights, labels, root, names, num_names, path);
    json_decref(root);
    return status;
}

static hpct_status read_file(double *weights, int labels, const char *path,
                             const hpct_dataset *train)
{
    char *data, *text;
    HPCT_TRY(hpct_kind_read_text(&data, &text, path, MOST_BYTES));
    hpct_status status = hpct_train_class_weights_parse(weights, labels, text, train->classes,
                                                        train->num_classes, path);
    free(data);
    return status;
}

/* ---- auto ---- */

/* n / (classes * count), over the classes that have samples: scikit-learn's "balanced". */
static hpct_status balance(double *weights, int labels, const hpct_dataset *train)
{
    int present = 0;
    if (train->max_label >= labels)
        return hpct_fail(HPCT_ERR_DATA, "%s has label %d, the model %d classes, from 0",
                         train->path, train->max_label, labels);
    for (int i = 0; i < labels; i++)
        weights[i] = 0;
    for (size_t s = 0; s < train->size; s++)
        weights[train->labels[s]]++;
    for (int i = 0; i < labels; i++)
        present += weights[i] > 0;
    for (int i = 0; i < labels; i++)
        weights[i] = weights[i] > 0 ? (double) train->size / (present * weights[i]) : 1;
    return HPCT_OK;
}

hpct_status hpct_class_weights(hpct_context *context, const char *how, const hpct_dataset *train,
                               double *weights, int labels)
{
    bool apart = hpct_context_is_apart(context), leads = hpct_context_rank(context) == 0;
    if (train->targets != NULL)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--class-weight is for one class per picture: --labels %s has a number "
                         "for each of %d outputs",
                         train->label_path, train->num_targets);
    if (strcmp(how, "auto") == 0)
        return balance(weights, labels, train);
    hpct_status status = leads || apart ? read_file(weights, labels, how, train) : HPCT_OK;
    if (status != HPCT_OK)
        hpct_fail_within(status, "--class-weight");
    if (apart)
        return status;
    hpct_comm *comm = hpct_context_comm(context);
    HPCT_TRY(hpct_context_agree(context, status));
    return comm->ops->broadcast(comm, weights, (size_t) labels * sizeof *weights, 0);
}
