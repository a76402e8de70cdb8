/* Collects lines. */
#include "agent/data/notes.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

hpct_status hpct_data_note(char **notes, const char *format, ...)
{
    char *line = NULL, *all = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&line, format, arguments);
    va_end(arguments);
    if (length < 0)
        return hpct_fail_memory(0);
    hpct_status status = hpct_alloc_text(&all, "%s%s\n", *notes != NULL ? *notes : "", line);
    free(line);
    HPCT_TRY(status);
    free(*notes);
    *notes = all;
    return HPCT_OK;
}
