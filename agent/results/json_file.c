/* Whole JSON documents, written so that no reader sees half of one. */
#include "agent/results/json_file.h"

#include "base/output.h"
#include "base/status.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *hpct_results_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *hpct_results_json_text(const char *text)
{
    json_t *value = text != NULL ? json_string(text) : NULL;
    return value != NULL ? value : json_null();
}

hpct_status hpct_results_json_whole(int64_t *out, const json_t *object, const char *key,
                                    int64_t least, int64_t most)
{
    const json_t *value = json_object_get(object, key);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= least && *out <= most
               ? HPCT_OK
               : hpct_fail(HPCT_ERR_DATA, "its \"%s\" is missing or out of range", key);
}

hpct_status hpct_results_json_write(json_t *root, const char *path)
{
    char *text = NULL, *line = NULL;
    if (root != NULL)
        text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(root);
    if (text == NULL || asprintf(&line, "%s\n", text) < 0) {
        free(text);
        return hpct_fail_memory(0);
    }
    hpct_status status = hpct_output_put_text(path, line, true);
    free(text);
    free(line);
    return status;
}

hpct_status hpct_results_json_read(json_t **out, const char *path)
{
    json_error_t error;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s cannot be read: %s", path, strerror(errno));
    *out = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    fclose(file);
    if (*out == NULL)
        return hpct_fail(HPCT_ERR_DATA, "%s: line %d: %s", path, error.line, error.text);
    return HPCT_OK;
}
