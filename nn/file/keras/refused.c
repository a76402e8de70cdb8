/* The layers of a document that are not supported: all of them in one message, each class once. */
#include "nn/file/keras/refused.h"

#include "base/status.h"
#include "nn/file/keras/elements.h"

#include <string.h>

#define MOST_CLASSES 16 /* in the message */

typedef struct refused {
    const char *class_name, *name; /* name: of its first layer */
    bool custom;                   /* a class of Keras' name that is not Keras' own */
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
    bool found = operation ? hpct_keras_find_operation(class_name) != NULL
                           : hpct_keras_find(class_name) != NULL;
    *custom = found && !hpct_keras_is_own(entry);
    return class_name[0] == '\0' || input || (found && !*custom);
}

/* Whether the entry is a Sequential, whose layers are then looked at. */
static bool is_nested(const json_t *entry)
{
    return strcmp(text_of(entry, "class_name"), "Sequential") == 0 && hpct_keras_is_own(entry);
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
        {"RandomContrast", "contrast:FACTOR"},
        {"RandomRotation", "rotation:FACTOR"},
        {"RandomZoom", "zoom:FACTOR"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(options[i].class_name, class_name) == 0)
            return options[i].option;
    }
    return NULL;
}

/* `"lstm" (LSTM)`, `"lambda" and 3 more (Lambda)`, `"random_zoom" (RandomZoom, in fit: --augment
 * zoom:FACTOR)`. */
static size_t describe(const refused *one, bool first, char *text, size_t size)
{
    const char *option = one->custom ? NULL : instead_of(one->class_name);
    char more[40] = "";
    if (one->count > 1)
        snprintf(more, sizeof more, " and %zu more", one->count - 1);
    int length =
        snprintf(text, size, "%s\"%.63s\"%s (%.63s%s%s%s)", first ? "" : ", ", one->name, more,
                 one->class_name, one->custom ? ", a custom class" : "",
                 option != NULL ? ", in fit: --augment " : "", option != NULL ? option : "");
    return length < 0 ? 0 : (size_t) length < size ? (size_t) length : size - 1;
}

static hpct_status refuse(const tally *t)
{
    char text[4096] = "", list[1024], further[80] = "";
    size_t used = 0, layers = t->others;
    for (size_t i = 0; i < t->count; i++) {
        used += describe(&t->all[i], i == 0, text + used, sizeof text - used);
        layers += t->all[i].count;
    }
    if (t->others > 0)
        snprintf(further, sizeof further, ", and %zu layers of other classes", t->others);
    hpct_keras_list(list, sizeof list);
    return hpct_fail(HPCT_ERR_DATA, "%zu of its layers %s not supported: %s%s; there are: %s",
                     layers, layers == 1 ? "is" : "are", text, further, list);
}

static void add_refused(tally *t, const json_t *entry, bool custom)
{
    const char *class_name = text_of(entry, "class_name");
    refused *one = find(t, class_name, custom);
    if (one != NULL)
        one->count++;
    else if (t->count < MOST_CLASSES)
        t->all[t->count++] = (refused){.class_name = class_name,
                                       .name = text_of(json_object_get(entry, "config"), "name"),
                                       .custom = custom,
                                       .count = 1};
    else
        t->others++;
}

/* within: in a Sequential, which must not have another in it: that is an error of its own. */
static void look_at(tally *t, const json_t *layers, bool within)
{
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *entry = json_array_get(layers, i);
        bool custom = false;
        if (is_nested(entry) && !within)
            look_at(t, json_object_get(json_object_get(entry, "config"), "layers"), true);
        else if (!is_nested(entry) && !is_known(entry, &custom))
            add_refused(t, entry, custom);
    }
}

hpct_status hpct_keras_check_classes(const json_t *layers)
{
    tally t = {.count = 0};
    look_at(&t, layers, false);
    return t.count == 0 ? HPCT_OK : refuse(&t);
}
