/* The list of what a weight file does not have for a model. */
#include "nn/file/keras/skips.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOWN 16 /* items */

/* Appends to the text, which is replaced. */
static hpct_status append(hpct_keras_skips *skips, const char *between, const char *item)
{
    char *longer = NULL;
    bool first = skips->text == NULL;
    if (asprintf(&longer, "%s%s%s", first ? "" : skips->text, first ? "" : between, item) < 0)
        return hpct_fail_memory(0);
    free(skips->text);
    skips->text = longer;
    return HPCT_OK;
}

hpct_status hpct_keras_skips_add(hpct_keras_skips *skips, const char *format, ...)
{
    char item[512];
    va_list args;
    if (++skips->count > SHOWN)
        return HPCT_OK;
    va_start(args, format);
    vsnprintf(item, sizeof item, format, args);
    va_end(args);
    return append(skips, ", ", item);
}

hpct_status hpct_keras_skips_end(hpct_keras_skips *skips)
{
    char more[32];
    if (skips->loaded == 0)
        return hpct_fail(HPCT_ERR_DATA, "it has no weights that fit a layer of the model");
    if (skips->count <= SHOWN)
        return HPCT_OK;
    snprintf(more, sizeof more, "%d more", skips->count - SHOWN);
    return append(skips, " and ", more);
}
