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

static refused *find(refused *all, size_t count, const char *class_name, bool custom)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].custom == custom && strcmp(all[i].class_name, class_name) == 0)
            return &all[i];
    }
    return NULL;
}

/* `"lstm" (LSTM)`, `"lambda" and 3 more (Lambda)`. */
static size_t describe(const refused *one, bool first, char *text, size_t size)
{
    char more[40] = "";
    if (one->count > 1)
        snprintf(more, sizeof more, " and %zu more", one->count - 1);
    int length = snprintf(text, size, "%s\"%.63s\"%s (%.63s%s)", first ? "" : ", ", one->name, more,
                          one->class_name, one->custom ? ", a custom class" : "");
    return length < 0 ? 0 : (size_t) length < size ? (size_t) length : size - 1;
}

static hpct_status refuse(const refused *all, size_t count, size_t others)
{
    char text[4096] = "", list[1024], further[80] = "";
    size_t used = 0, layers = others;
    for (size_t i = 0; i < count; i++) {
        used += describe(&all[i], i == 0, text + used, sizeof text - used);
        layers += all[i].count;
    }
    if (others > 0)
        snprintf(further, sizeof further, ", and %zu layers of other classes", others);
    hpct_keras_list(list, sizeof list);
    return hpct_fail(HPCT_ERR_DATA, "%zu of its layers %s not supported: %s%s; there are: %s",
                     layers, layers == 1 ? "is" : "are", text, further, list);
}

hpct_status hpct_keras_check_classes(const json_t *layers)
{
    refused all[MOST_CLASSES];
    size_t count = 0, others = 0;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *entry = json_array_get(layers, i);
        bool custom = false;
        if (is_known(entry, &custom))
            continue;
        const char *class_name = text_of(entry, "class_name");
        refused *one = find(all, count, class_name, custom);
        if (one != NULL)
            one->count++;
        else if (count < MOST_CLASSES)
            all[count++] = (refused){.class_name = class_name,
                                     .name = text_of(json_object_get(entry, "config"), "name"),
                                     .custom = custom,
                                     .count = 1};
        else
            others++;
    }
    return count == 0 ? HPCT_OK : refuse(all, count, others);
}
