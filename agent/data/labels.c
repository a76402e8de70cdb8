/* Labels beside the pictures: each row of a CSV file has a picture's name, and its class or a
 * number for each output. Everything that does not match is an error. */
#include "agent/data/labels.h"

#include "agent/data/csv.h"
#include "agent/data/foreign.h"
#include "agent/data/listing.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t) 1 << 31)
#define PREDICTED "probability" /* a column of hpc-train predict */

typedef struct reading {
    hpct_dataset *dataset;
    const hpct_data_label_form *form;
    hpct_data_csv csv;
    uint32_t *order; /* [pictures] sorted by name */
    size_t *lines;   /* [pictures] of their rows; 0: none so far */
    char **header;   /* [columns], in the text */
    size_t columns;  /* with the names */
    size_t of_class; /* the column of classes; 0: of numbers */
    char **classes;  /* [pictures] of each picture, in the text */
} reading;

static const char *name_of(const reading *r, uint32_t picture)
{
    return hpct_dataset_sample_name(r->dataset, picture);
}

/* ---- pictures by name ---- */

static int by_name(const void *a, const void *b, void *argument)
{
    const reading *r = argument;
    return strcmp(name_of(r, *(const uint32_t *) a), name_of(r, *(const uint32_t *) b));
}

static hpct_status sort_names(reading *r)
{
    size_t count = r->dataset->size;
    r->order = malloc((count + 1) * sizeof *r->order);
    r->lines = calloc(count + 1, sizeof *r->lines);
    if (r->order == NULL || r->lines == NULL)
        return hpct_fail_memory((count + 1) * sizeof *r->lines);
    for (size_t i = 0; i < count; i++)
        r->order[i] = (uint32_t) i;
    qsort_r(r->order, count, sizeof *r->order, by_name, r);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(name_of(r, r->order[i - 1]), name_of(r, r->order[i])) == 0)
            return hpct_fail(HPCT_ERR_DATA,
                             "%s: two pictures have the name %s, so that --labels cannot tell "
                             "which one is meant",
                             r->dataset->path, name_of(r, r->order[i]));
    }
    return HPCT_OK;
}

/* -1: there is none of this name. */
static int64_t find_picture(const reading *r, const char *name)
{
    size_t begin = 0, end = r->dataset->size;
    while (begin < end) {
        size_t middle = (begin + end) / 2;
        int order = strcmp(name, name_of(r, r->order[middle]));
        if (order == 0)
            return r->order[middle];
        *(order < 0 ? &end : &begin) = order < 0 ? middle : middle + 1;
    }
    return -1;
}

/* ---- the header ---- */

static hpct_status keep_header(reading *r)
{
    r->columns = r->csv.num_fields;
    r->header = malloc((r->columns + 1) * sizeof *r->header);
    if (r->header == NULL)
        return hpct_fail_memory((r->columns + 1) * sizeof *r->header);
    memcpy(r->header, r->csv.fields, r->columns * sizeof *r->header);
    if (find_picture(r, r->header[0]) >= 0)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s, line %zu: %s is a picture: the first line must name the columns, "
                         "such as file,class",
                         r->csv.path, r->csv.line, r->header[0]);
    return HPCT_OK;
}

__attribute__((format(printf, 3, 4))) static hpct_status refuse(const reading *r, size_t column,
                                                                const char *format, ...)
{
    char where[4096 + 64], what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(where, sizeof where, "%s, line %zu, column %zu (%s)", r->csv.path, r->csv.line,
             column + 1, r->header[column]);
    return hpct_fail(HPCT_ERR_DATA, "%s: %s", where, what);
}

/* Names go into weights, as JSON. */
static hpct_status check_name(const reading *r, size_t column, const char *name)
{
    return hpct_data_name_is_utf8(name, strlen(name))
               ? HPCT_OK
               : refuse(r, column,
                        "it is not UTF-8: save the file as UTF-8 (of Latin-1: iconv -f LATIN1 -t "
                        "UTF-8)");
}

static hpct_status check_names(const reading *r)
{
    for (size_t i = 1; i < r->columns; i++) {
        if (r->header[i][0] == '\0')
            return hpct_fail(HPCT_ERR_DATA, "%s, line %zu, column %zu: it has no name", r->csv.path,
                             r->csv.line, i + 1);
        HPCT_TRY(check_name(r, i, r->header[i]));
        for (size_t k = 1; k < i; k++) {
            if (strcmp(r->header[k], r->header[i]) == 0)
                return hpct_fail(HPCT_ERR_DATA,
                                 "%s, line %zu, column %zu: %s is the name of column %zu, too",
                                 r->csv.path, r->csv.line, i + 1, r->header[i], k + 1);
        }
    }
    return HPCT_OK;
}

static bool is_class_name(const char *name)
{
    return strcmp(name, "label") == 0 || strcmp(name, "class") == 0;
}

/* The only column, but for hpc-train predict's; 0: there are others. */
static size_t find_class_column(const reading *r)
{
    size_t found = 0;
    for (size_t i = 1; i < r->columns; i++) {
        if (is_class_name(r->header[i]) && found == 0)
            found = i;
        else if (strcmp(r->header[i], PREDICTED) != 0)
            return 0;
    }
    return found;
}

static hpct_status check_header(reading *r)
{
    int outputs = r->form->outputs;
    HPCT_TRY(hpct_data_csv_check_commas(&r->csv));
    HPCT_TRY(keep_header(r));
    if (r->form->kind == HPCT_TARGETS_CLASS)
        r->of_class = find_class_column(r);
    if (r->of_class > 0)
        return HPCT_OK;
    if (r->columns == (size_t) outputs + 1)
        return check_names(r);
    if (r->form->kind == HPCT_TARGETS_CLASS)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s, line %zu: after the name of the file the loss takes a column label "
                         "or class, or one for each of the model's %d outputs, not these %zu",
                         r->csv.path, r->csv.line, outputs, r->columns - 1);
    return hpct_fail(HPCT_ERR_DATA,
                     "%s, line %zu: after the name of the file the loss takes a column of numbers "
                     "for each of the model's %d output%s, not %zu",
                     r->csv.path, r->csv.line, outputs, outputs == 1 ? "" : "s", r->columns - 1);
}

/* ---- cells ---- */

/* A decimal number; strtof would also take "nan", "0x1p3" and spaces. */
static bool parse_number(const char *text, float *out)
{
    char *end;
    if (text[strspn(text, "+-.0123456789eE")] != '\0')
        return false;
    *out = strtof(text, &end);
    return end != text && *end == '\0' && isfinite(*out);
}

static hpct_status read_numbers(reading *r, uint32_t picture)
{
    float *row = r->dataset->targets + (size_t) picture * (size_t) r->form->outputs;
    for (size_t i = 1; i < r->columns; i++) {
        const char *text = r->csv.fields[i];
        if (text[0] == '\0')
            return refuse(r, i, "the cell is empty: it must be a number");
        if (!parse_number(text, &row[i - 1]))
            return refuse(r, i, "'%.80s' is not a finite number", text);
        if (r->form->kind != HPCT_TARGETS_NUMBERS && !(row[i - 1] >= 0 && row[i - 1] <= 1))
            return refuse(r, i, "%.80s does not lie in 0 to 1, as the model's loss demands", text);
    }
    return HPCT_OK;
}

/* The row of a class: the 1 among 0s. */
static hpct_status read_one_hot(reading *r, uint32_t picture)
{
    const float *row = r->dataset->targets + (size_t) picture * (size_t) r->form->outputs;
    int ones = 0;
    for (int i = 0; i < r->form->outputs; i++) {
        if (row[i] != 0 && row[i] != 1)
            return refuse(r, (size_t) i + 1,
                          "%.80s is neither 0 nor 1: the model's loss is of one "
                          "class for each picture",
                          r->csv.fields[i + 1]);
        if (row[i] == 1)
            r->dataset->labels[picture] = i;
        ones += row[i] == 1;
    }
    if (ones == 1)
        return HPCT_OK;
    return hpct_fail(
        HPCT_ERR_DATA,
        "%s, line %zu: %d columns are 1, and the model's loss is of one class for each "
        "picture (of any number of classes: --loss binary_crossentropy)",
        r->csv.path, r->csv.line, ones);
}

static hpct_status read_cells(reading *r, uint32_t picture)
{
    if (r->of_class > 0) {
        r->classes[picture] = r->csv.fields[r->of_class];
        return r->classes[picture][0] != '\0'
                   ? check_name(r, r->of_class, r->classes[picture])
                   : refuse(r, r->of_class, "the cell is empty: it must be the name of a class");
    }
    HPCT_TRY(read_numbers(r, picture));
    return r->form->kind == HPCT_TARGETS_CLASS ? read_one_hot(r, picture) : HPCT_OK;
}

static hpct_status read_row(reading *r)
{
    if (r->csv.num_fields != r->columns)
        HPCT_TRY(hpct_data_csv_check_commas(&r->csv));
    if (r->csv.num_fields != r->columns)
        return hpct_fail(HPCT_ERR_DATA, "%s, line %zu: there are %zu columns, the header has %zu",
                         r->csv.path, r->csv.line, r->csv.num_fields, r->columns);
    const char *name = r->csv.fields[0];
    int64_t picture = find_picture(r, name);
    if (picture < 0)
        return refuse(r, 0,
                      "%.300s is not a picture of the data: names are those that hpc-train predict "
                      "writes, from the data's folder on",
                      name);
    if (r->lines[picture] > 0)
        return refuse(r, 0, "%.300s has a row in line %zu already", name, r->lines[picture]);
    r->lines[picture] = r->csv.line;
    return read_cells(r, (uint32_t) picture);
}

/* ---- classes and names ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* `names` become the data set's. */
static hpct_status set_names(hpct_dataset *dataset, char *const *names, size_t count)
{
    dataset->classes = calloc(count + 1, sizeof *dataset->classes);
    if (dataset->classes == NULL)
        return hpct_fail_memory((count + 1) * sizeof *dataset->classes);
    for (size_t i = 0; i < count; i++) {
        dataset->classes[i] = strdup(names[i]);
        if (dataset->classes[i] == NULL)
            return hpct_fail_memory(0);
        dataset->num_classes = (int) i + 1;
    }
    return HPCT_OK;
}

/* A class without a name is its number, as hpc-train predict writes it; -1: a name. */
static int number_of(const char *class, int outputs)
{
    size_t digits = strspn(class, "0123456789");
    bool plain = digits > 0 && digits < 10 && class[digits] == '\0';
    if (!plain || (class[0] == '0' && digits > 1))
        return -1;
    long number = strtol(class, NULL, 10);
    return number < outputs ? (int) number : -1;
}

static int largest_number(char *const *classes, size_t count, int outputs)
{
    int largest = -1;
    for (size_t i = 0; i < count; i++) {
        int number = number_of(classes[i], outputs);
        if (number < 0)
            return -1;
        largest = number > largest ? number : largest;
    }
    return largest;
}

/* The names of these numbers are "0" to that of the largest one. */
static hpct_status take_numbers(reading *r, int largest)
{
    hpct_dataset *dataset = r->dataset;
    for (size_t i = 0; i < dataset->size; i++)
        dataset->labels[i] = number_of(r->classes[i], r->form->outputs);
    dataset->classes = calloc((size_t) largest + 1, sizeof *dataset->classes);
    if (dataset->classes == NULL)
        return hpct_fail_memory(((size_t) largest + 1) * sizeof *dataset->classes);
    for (int i = 0; i <= largest; i++) {
        HPCT_TRY(hpct_alloc_text(&dataset->classes[i], "%d", i));
        dataset->num_classes = i + 1;
    }
    return HPCT_OK;
}

static hpct_status number_classes(reading *r, char **sorted)
{
    size_t count = 0, size = r->dataset->size;
    memcpy(sorted, r->classes, size * sizeof *sorted);
    qsort(sorted, size, sizeof *sorted, by_text);
    for (size_t i = 0; i < size; i++) {
        if (count == 0 || strcmp(sorted[count - 1], sorted[i]) != 0)
            sorted[count++] = sorted[i];
    }
    int largest = largest_number(sorted, count, r->form->outputs);
    if (largest >= 0)
        return take_numbers(r, largest);
    if (count > (size_t) r->form->outputs)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: there are %zu classes, the model has %d outputs; give it %zu "
                         "(--classes %zu, or units of the last layer of FILE.json)",
                         r->csv.path, count, r->form->outputs, count, count);
    for (size_t i = 0; i < size; i++) {
        char **found = bsearch(&r->classes[i], sorted, count, sizeof *sorted, by_text);
        r->dataset->labels[i] = (int32_t) (found - sorted);
    }
    return set_names(r->dataset, sorted, count);
}

static hpct_status set_classes(reading *r)
{
    size_t bytes = (r->dataset->size + 1) * sizeof(char *);
    char **sorted = malloc(bytes);
    hpct_status status = sorted != NULL ? number_classes(r, sorted) : hpct_fail_memory(bytes);
    free(sorted);
    return status;
}

static hpct_status check_missing(const reading *r)
{
    size_t missing = 0, first = 0;
    for (size_t i = r->dataset->size; i-- > 0;) {
        if (r->lines[i] == 0)
            first = i;
        missing += r->lines[i] == 0;
    }
    if (missing == 0)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_DATA,
                     "%s: there is no row for %zu of the %zu pictures (the first: %s)", r->csv.path,
                     missing, r->dataset->size, name_of(r, (uint32_t) first));
}

/* ---- all ---- */

/* One-hot rows are read as numbers first. */
static hpct_status take_memory(reading *r)
{
    size_t count = r->dataset->size + 1, bytes;
    if (__builtin_mul_overflow(count * sizeof *r->dataset->targets, (size_t) r->form->outputs,
                               &bytes))
        return hpct_fail_memory(0);
    if (r->of_class > 0)
        r->classes = calloc(count, sizeof *r->classes);
    else
        r->dataset->targets = calloc(1, bytes);
    return r->classes != NULL || r->dataset->targets != NULL ? HPCT_OK : hpct_fail_memory(bytes);
}

static hpct_status read_rows(reading *r)
{
    bool any = false;
    HPCT_TRY(hpct_data_csv_next(&r->csv, &any));
    if (!any)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s: it is empty: the first line must name the columns, "
                         "such as file,class",
                         r->csv.path);
    HPCT_TRY(check_header(r));
    HPCT_TRY(take_memory(r));
    for (;;) {
        HPCT_TRY(hpct_data_csv_next(&r->csv, &any));
        if (!any)
            return check_missing(r);
        HPCT_TRY(read_row(r));
    }
}

static hpct_status finish(reading *r)
{
    hpct_dataset *dataset = r->dataset;
    HPCT_TRY(r->of_class > 0 ? set_classes(r) : set_names(dataset, r->header + 1, r->columns - 1));
    if (r->form->kind == HPCT_TARGETS_CLASS) {
        free(dataset->targets);
        dataset->targets = NULL;
    } else { /* a WebDataset has labels of its own */
        memset(dataset->labels, 0, dataset->size * sizeof *dataset->labels);
        dataset->num_targets = r->form->outputs;
        dataset->kind = r->form->kind;
    }
    dataset->options.unlabelled = false;
    dataset->label_path = strdup(r->csv.path);
    return dataset->label_path != NULL ? hpct_dataset_finish(dataset) : hpct_fail_memory(0);
}

/* After an error the data set is without labels again, and may be given others. */
static void forget(hpct_dataset *dataset)
{
    for (int i = 0; i < dataset->num_classes; i++)
        free(dataset->classes[i]);
    free(dataset->classes);
    free(dataset->targets);
    free(dataset->label_path);
    dataset->classes = NULL;
    dataset->num_classes = 0;
    dataset->targets = NULL;
    dataset->num_targets = 0;
    dataset->label_path = NULL;
    dataset->options.unlabelled = true;
}

hpct_status hpct_data_labels_take(hpct_dataset *dataset, const hpct_data_label_form *form,
                                  const char *path, char *text, size_t size)
{
    reading r = {.dataset = dataset, .form = form};
    hpct_status status = hpct_data_csv_open(&r.csv, text, size, path);
    if (status == HPCT_OK)
        status = sort_names(&r);
    if (status == HPCT_OK)
        status = read_rows(&r);
    if (status == HPCT_OK)
        status = finish(&r);
    if (status != HPCT_OK)
        forget(dataset);
    hpct_data_csv_close(&r.csv);
    free(r.order);
    free(r.lines);
    free(r.header);
    free(r.classes);
    return status;
}

hpct_status hpct_dataset_read_labels(hpct_dataset *dataset, const char *path,
                                     const hpct_model *model)
{
    char *text;
    size_t size;
    hpct_data_label_form form = {.kind = hpct_model_target_kind(model),
                                 .outputs = hpct_model_output_shape(model).size[0]};
    if (dataset->label_path != NULL || hpct_dataset_sample_name(dataset, 0) == NULL ||
        !dataset->options.unlabelled)
        return hpct_fail(HPCT_ERR_USAGE,
                         "--labels %s: it names files of pictures in a folder or archive, and %s "
                         "is %s, with labels of its own",
                         path, hpct_dataset_source(dataset), hpct_dataset_format(dataset));
    HPCT_TRY(hpct_file_read(&text, &size, path, MAX_BYTES));
    const char *foreign = hpct_data_foreign_name(text, size);
    hpct_status status = foreign != NULL && size > 0
                             ? hpct_fail(HPCT_ERR_DATA, "%s is %s, not a CSV file", path, foreign)
                             : hpct_data_labels_take(dataset, &form, path, text, size);
    free(text);
    return status;
}

hpct_status hpct_dataset_check_targets(const hpct_dataset *dataset, const hpct_model *model)
{
    int outputs = hpct_model_output_shape(model).size[0];
    if (dataset->targets == NULL)
        return HPCT_OK;
    if (dataset->num_targets != outputs)
        return hpct_fail(HPCT_ERR_DATA, "%s has %d columns of numbers, the model has %d outputs",
                         dataset->label_path, dataset->num_targets, outputs);
    if (dataset->kind != hpct_model_target_kind(model))
        return hpct_fail(HPCT_ERR_DATA,
                         "%s was read for another loss than the model has: compile it before",
                         dataset->label_path);
    return HPCT_OK;
}
