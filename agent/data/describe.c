/* Prints what a split contains. */
#include "agent/data/dataset.h"
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_bytes(FILE *stream, size_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double) bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    fprintf(stream, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void print_storage(const hpct_dataset *dataset, FILE *stream)
{
    bool decoded = dataset->pixels != NULL;
    size_t bytes = decoded ? dataset->size * dataset->stored_elements : dataset->encoded.num_bytes;
    fputs("  in memory: ", stream);
    print_bytes(stream, bytes);
    fputs(decoded                          ? " of pixels\n"
          : dataset->encoded.bytes != NULL ? " of encoded pictures, decoded for each step\n"
                                           : " in files, read and decoded for each step\n",
          stream);
}

/* Larger labels are not class numbers. */
#define MAX_LISTED 100000

/* Prints without the control characters of names, which would affect the terminal; only a line's
 * end stays. */
__attribute__((format(printf, 2, 3))) static void print(FILE *stream, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    int line = length - (format[strlen(format) - 1] == '\n');
    for (int i = 0; i < length; i++) {
        bool shown = ((unsigned char) text[i] >= 0x20 && text[i] != 0x7f) || i == line;
        fputc(shown ? text[i] : '?', stream);
    }
    if (length >= 0)
        free(text);
}

static hpct_status print_classes(const hpct_dataset *dataset, FILE *stream)
{
    int classes = hpct_dataset_num_classes(dataset);
    if (classes > MAX_LISTED) {
        fprintf(stream, "  labels:    0 to %d\n", dataset->max_label);
        return HPCT_OK;
    }
    size_t *counts = calloc((size_t) classes, sizeof *counts);
    if (counts == NULL)
        return hpct_fail_memory((size_t) classes * sizeof *counts);
    for (size_t i = 0; i < dataset->size; i++)
        counts[dataset->labels[i]]++;
    fprintf(stream, "  classes:   %d\n", classes);
    for (int c = 0; c < classes; c++) {
        bool named = c < dataset->num_classes;
        print(stream, "%7d  %s%s%zu\n", c, named ? dataset->classes[c] : "", named ? "  " : "",
              counts[c]);
    }
    free(counts);
    return HPCT_OK;
}

static void print_notes(const hpct_dataset *dataset, const char *before, FILE *stream)
{
    for (const char *note = dataset->notes; note != NULL && *note != '\0';) {
        size_t length = strcspn(note, "\n");
        print(stream, "%s%.*s\n", before, (int) length, note);
        note += length + (note[length] == '\n');
    }
}

hpct_status hpct_dataset_summary(const hpct_dataset *dataset, FILE *stream)
{
    char shape[64] = "of several sizes";
    if (dataset->stored.rank != 0)
        hpct_data_shape_text(shape, sizeof shape, dataset->stored);
    print(stream, "  from:      %s\n", hpct_dataset_source(dataset));
    fprintf(stream, "  samples:   %zu\n  shape:     %s\n", dataset->size, shape);
    print_storage(dataset, stream);
    hpct_status status = print_classes(dataset, stream);
    print_notes(dataset, "  note:      ", stream);
    if (status == HPCT_OK && ferror(stream) != 0)
        status = hpct_fail(HPCT_ERR_IO, "writing failed: %s", strerror(errno));
    return status;
}

/* ---- before a run ---- */

#define FIRST_NAMES 3

static void print_line(const hpct_dataset *dataset, const char *what, FILE *stream)
{
    bool rows = dataset->targets != NULL;
    int classes = rows ? dataset->num_targets : hpct_dataset_num_classes(dataset);
    fprintf(stream, "%s: %zu pictures, %d %s%s", what, dataset->size, classes,
            rows ? "output" : "class",
            classes == 1 ? ""
            : rows       ? "s"
                         : "es");
    for (int i = 0; i < dataset->num_classes && i < FIRST_NAMES; i++)
        print(stream, "%s%s", i == 0 ? " (" : ", ", dataset->classes[i]);
    if (dataset->num_classes > 0)
        fputs(classes > FIRST_NAMES ? ", ...)" : ")", stream);
    print(stream, ", from %s", hpct_dataset_source(dataset));
    if (dataset->label_path != NULL)
        print(stream, ", labels of %s", dataset->label_path);
    fputc('\n', stream);
}

/* Warns of unusual labels for a model with so many outputs. */
static void warn_of_labels(const hpct_dataset *dataset, const char *before, int outputs,
                           FILE *stream)
{
    int classes = hpct_dataset_num_classes(dataset);
    if (strcmp(hpct_dataset_format(dataset), "synthetic") == 0)
        return; /* generated to fit the model */
    if (dataset->min_label > 0 && dataset->num_classes == 0)
        fprintf(stream,
                "%sno picture has the label 0, the first label is %d: the model's outputs "
                "before it mean nothing\n",
                before, dataset->min_label);
    if (dataset->min_label == dataset->max_label)
        fprintf(stream, "%sall pictures are of one class\n", before);
    else if (classes < outputs)
        fprintf(
            stream,
            "%sthere are %d classes, the model has %d (--classes %d, if it is a built-in one)\n",
            before, classes, outputs, classes);
}

static void warn(const hpct_dataset *dataset, const char *what, int outputs, FILE *stream)
{
    char *before = NULL;
    if (asprintf(&before, "hpc-train: warning: %s: ", what) < 0)
        return;
    print_notes(dataset, before, stream);
    if (outputs > 0 && dataset->targets == NULL)
        warn_of_labels(dataset, before, outputs, stream);
    free(before);
}

/* If training continues from weights of other classes: warns of the first class that differs. */
static void warn_of_names(const hpct_model *model, const hpct_dataset *train, FILE *stream)
{
    char **names;
    int count, i = 0;
    bool numbers = train->targets != NULL;
    if ((numbers ? hpct_model_output_names(model, &names, &count, NULL)
                 : hpct_model_class_names(model, &names, &count)) != HPCT_OK)
        return;
    while (i < count && i < train->num_classes && strcmp(names[i], train->classes[i]) == 0)
        i++;
    if (i < count && i < train->num_classes)
        print(stream,
              "hpc-train: warning: %s %d is %s in the training data, but %s in the weights that "
              "training starts from\n",
              numbers ? "output" : "class", i, train->classes[i], names[i]);
    free(names);
}

static bool has_names(const hpct_dataset *dataset)
{
    return dataset->num_classes > dataset->max_label;
}

/* Warns that one side has numbers, the other class names: folders are numbered in the order of
 * names, numbers in a file may have another order. */
static void warn_of_numbers(const hpct_dataset *dataset, const char *names, const char *first,
                            FILE *stream)
{
    print(stream,
          "hpc-train: warning: the classes in %s are numbers, those of %s have names: 0 is taken "
          "for %s, and so on\n",
          hpct_dataset_source(dataset), names, first);
}

/* Compares whether both have class names. `train` may be NULL. */
static void compare_kinds(const hpct_model *model, const hpct_dataset *train,
                          const hpct_dataset *other, FILE *stream)
{
    char **names = NULL;
    int count = 0;
    if (train != NULL && has_names(train) && !has_names(other))
        warn_of_numbers(other, hpct_dataset_source(train), train->classes[0], stream);
    else if (train != NULL && has_names(other) && !has_names(train))
        warn_of_numbers(train, hpct_dataset_source(other), other->classes[0], stream);
    else if (train == NULL && !has_names(other) &&
             hpct_model_class_names(model, &names, &count) == HPCT_OK && count > 0)
        warn_of_numbers(other, "the weights", names[0], stream);
    free(names);
}

static bool has_same_notes(const hpct_dataset *a, const hpct_dataset *b)
{
    return a->notes != NULL && b->notes != NULL && strcmp(a->notes, b->notes) == 0;
}

/* Of arrays sorted by class the last samples are a class by themselves. */
static void warn_of_untrained(const hpct_dataset *train, const hpct_dataset *validation,
                              FILE *stream)
{
    int most = hpct_dataset_num_classes(validation);
    bool *trained = most <= MAX_LISTED ? calloc((size_t) most, sizeof *trained) : NULL;
    if (trained == NULL)
        return;
    for (size_t i = 0; i < train->size; i++) {
        if (train->labels[i] < most)
            trained[train->labels[i]] = true;
    }
    size_t untrained = 0;
    int first = 0;
    for (size_t i = validation->size; i-- > 0;) {
        untrained += !trained[validation->labels[i]];
        first = trained[validation->labels[i]] ? first : validation->labels[i];
    }
    if (untrained > 0)
        print(stream,
              "hpc-train: warning: validation: %zu of %zu pictures are of classes without a "
              "training picture, such as %d %s\n",
              untrained, validation->size, first,
              first < validation->num_classes ? validation->classes[first] : "");
    free(trained);
}

/* As Keras' own models have it, which are given 0 to 255. */
static void warn_of_scale(const hpct_model *model, const hpct_dataset *data, FILE *warnings)
{
    float factor = 1, offset = 0;
    if (data == NULL || !hpct_model_rescales_pixels(model))
        return;
    hpct_dataset_scale(data, &factor, &offset);
    if (factor < 1)
        fputs("hpc-train: warning: the model rescales pixels itself, or changes them as 0 to 255, "
              "and they are scaled before: --scale none gives it 0 to 255, as Keras does\n",
              warnings);
}

void hpct_dataset_announce(const hpct_model *model, const hpct_dataset *train,
                           const hpct_dataset *validation, FILE *lines, FILE *warnings)
{
    bool unlabelled = validation != NULL && validation->options.unlabelled;
    int outputs = unlabelled ? 0 : hpct_model_count_labels(model);
    bool both = train != NULL && validation != NULL;
    if (lines != NULL && train != NULL)
        print_line(train, "training", lines);
    if (lines != NULL && validation != NULL)
        print_line(validation, "validation", lines);
    if (lines != NULL)
        fflush(lines); /* so that warnings come after */
    if (warnings == NULL)
        return;
    if (train != NULL)
        warn(train, "training", outputs, warnings);
    if (train != NULL)
        warn_of_names(model, train, warnings);
    warn_of_scale(model, train != NULL ? train : validation, warnings);
    if (validation != NULL && !(both && has_same_notes(train, validation)))
        warn(validation, unlabelled ? "pictures" : "validation", train == NULL ? outputs : 0,
             warnings);
    if (validation != NULL && !unlabelled && validation->targets == NULL)
        compare_kinds(model, train, validation, warnings);
    if (both && train->targets == NULL && validation->targets == NULL)
        warn_of_untrained(train, validation, warnings);
    if (both && hpct_dataset_is_same(train, validation))
        fputs("hpc-train: warning: THE VALIDATION PICTURES ARE THE TRAINING PICTURES: val_loss and "
              "val_accuracy say nothing about others; give others with --validation-data\n",
              warnings);
}
