/* The layers of a document that are not supported: all of them in one message, by class. */
#include "nn/file/keras/refused.h"

#include "base/status.h"
#include "nn/file/keras/elements.h"
#include "nn/file/keras/reader.h"

#include <stdarg.h>
#include <string.h>

#define MOST_CLASSES 16 /* in the message */
#define MOST_NAMES 5    /* of a class */

typedef struct refused {
    const char *class_name, *names[MOST_NAMES]; /* names: of its first layers */
    bool custom;                                /* a class of Keras' name that is not Keras' own */
    size_t count;
} refused;

typedef struct tally {
    refused all[MOST_CLASSES];
    size_t count, others; /* others: layers of further classes */
} tally;

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* Whether the entry's class is supported; *custom: its name would be. A layer without a class is
 * an error of its own. */
static bool is_known(const json_t *entry, bool *custom)
{
    const char *class_name = text_of(entry, "class_name");
    bool input = strcmp(class_name, "InputLayer") == 0, operation = hpct_keras_is_operation(entry);
    bool found =
        operation ? hpct_keras_find_operation(entry) != NULL : hpct_keras_find(class_name) != NULL;
    *custom = found && !hpct_keras_is_own(entry);
    return class_name[0] == '\0' || input || (found && !*custom);
}

static refused *find(tally *t, const char *class_name, bool custom)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->all[i].custom == custom && strcmp(t->all[i].class_name, class_name) == 0)
            return &t->all[i];
    }
    return NULL;
}

/* What fit has instead of a layer, or NULL. */
static const char *instead_of(const char *class_name)
{
    static const struct {
        const char *class_name, *option;
    } options[] = {
        {"CutMix", "cutmix:ALPHA"},
        {"MixUp", "mixup:ALPHA"},
        {"RandAugment", "rand-augment:N:M"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(options[i].class_name, class_name) == 0)
            return options[i].option;
    }
    return NULL;
}

static void __attribute__((format(printf, 3, 4)))
append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

/* `"lstm" (LSTM)`, `"a", "b", "c", "d", "e" and 3 more (Lambda)`, `"cut_mix" (CutMix, in fit:
 * --augment cutmix:ALPHA)`. */
static void describe(const refused *one, char *text, size_t size)
{
    const char *option = one->custom ? NULL : instead_of(one->class_name);
    size_t more = one->count > MOST_NAMES ? one->count - MOST_NAMES : 0;
    for (size_t i = 0; i < one->count - more; i++)
        append(text, size, "%s\"%.63s\"", i == 0 ? "" : ", ", one->names[i]);
    if (more > 0)
        append(text, size, " and %zu more", more);
    append(text, size, " (%.63s%s%s%s)", one->class_name, one->custom ? ", a custom class" : "",
           option != NULL ? ", in fit: --augment " : "", option != NULL ? option : "");
}

static hpct_status refuse(const tally *t)
{
    char text[8192] = "", list[1024];
    size_t layers = t->others;
    for (size_t i = 0; i < t->count; i++) {
        append(text, sizeof text, "%s", i == 0 ? "" : ", ");
        describe(&t->all[i], text, sizeof text);
        layers += t->all[i].count;
    }
    if (t->others > 0)
        append(text, sizeof text, ", and %zu layers of other classes", t->others);
    hpct_keras_list(list, sizeof list);
    return hpct_fail(HPCT_ERR_DATA, "%zu of its layers %s not supported: %s; there are: %s", layers,
                     layers == 1 ? "is" : "are", text, list);
}

static void add_refused(tally *t, const json_t *entry, bool custom)
{
    const char *class_name = text_of(entry, "class_name");
    refused *one = find(t, class_name, custom);
    if (one == NULL && t->count == MOST_CLASSES) {
        t->others++;
        return;
    }
    if (one == NULL) {
        one = &t->all[t->count++];
        *one = (refused){.class_name = class_name, .custom = custom};
    }
    if (one->count < MOST_NAMES)
        one->names[one->count] = text_of(json_object_get(entry, "config"), "name");
    one->count++;
}

/* A model as a layer: its layers are looked at. */
static void look_at(tally *t, const json_t *layers)
{
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *entry = json_array_get(layers, i);
        bool custom = false;
        if (hpct_keras_is_model(entry))
            look_at(t, hpct_keras_layers_of(json_object_get(entry, "config")));
        else if (!is_known(entry, &custom))
            add_refused(t, entry, custom);
    }
}

hpct_status hpct_keras_check_classes(const json_t *layers)
{
    tally t = {.count = 0};
    look_at(&t, layers);
    return t.count == 0 ? HPCT_OK : refuse(&t);
}
