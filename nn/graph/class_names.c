/* Class names, stored as the JSON list of the weights files. */
#include "base/status.h"
#include "nn/graph/graph.h"

#include <hpctrain/model.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

hpct_status hpct_model_set_class_names(hpct_model *model, const char *const *names, int count)
{
    json_t *list = json_array();
    char *text = NULL;
    int failed = 0;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < count && !failed; i++)
        failed = json_array_append_new(list, json_string(names[i])); /* NULL: not UTF-8 */
    if (count > 0 && !failed) {
        text = json_dumps(list, JSON_COMPACT);
        status = text != NULL ? HPCT_OK : hpct_fail_memory(0);
    }
    json_decref(list);
    free(model->class_names);
    model->class_names = text;
    return status;
}

/* The list may come from another program's file. */
static bool is_list_of_names(const json_t *list)
{
    size_t i;
    json_t *name;
    json_array_foreach(list, i, name)
    {
        if (!json_is_string(name))
            return false;
    }
    return json_is_array(list);
}

static hpct_status as_list(const json_t *names, char ***out)
{
    size_t i, count = json_array_size(names), bytes = (count + 1) * sizeof(char *);
    json_t *name;
    json_array_foreach(names, i, name) bytes += json_string_length(name) + 1;
    char **list = malloc(bytes), *to;
    if (list == NULL)
        return hpct_fail_memory(bytes);
    to = (char *) (list + count + 1);
    json_array_foreach(names, i, name)
    {
        size_t length = json_string_length(name) + 1;
        list[i] = memcpy(to, json_string_value(name), length);
        to += length;
    }
    list[count] = NULL;
    *out = list;
    return HPCT_OK;
}

hpct_status hpct_model_class_names(const hpct_model *model, char ***out, int *count)
{
    json_t *names = model->class_names != NULL
                        ? json_loads(model->class_names, JSON_REJECT_DUPLICATES, NULL)
                        : NULL;
    hpct_status status = HPCT_OK;
    *out = NULL;
    *count = 0;
    if (is_list_of_names(names))
        status = as_list(names, out);
    if (*out != NULL)
        *count = (int) json_array_size(names);
    json_decref(names);
    return status;
}
