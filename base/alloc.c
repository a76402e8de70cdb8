/* Allocates lists and texts. */
#include "base/alloc.h"

#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST 16

hpct_status hpct_alloc_room(void *list, size_t *room, size_t count, size_t size)
{
    void *at;
    size_t more = 2 * *room > count ? 2 * *room : count;
    more = more > FEWEST ? more : FEWEST;
    if (count <= *room)
        return HPCT_OK;
    memcpy(&at, list, sizeof at);
    at = reallocarray(at, more, size);
    if (at == NULL)
        return hpct_fail_memory(more * size);
    memcpy(list, &at, sizeof at);
    *room = more;
    return HPCT_OK;
}

hpct_status hpct_alloc_text(char **out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(out, format, arguments);
    va_end(arguments);
    if (length >= 0)
        return HPCT_OK;
    *out = NULL;
    return hpct_fail_memory(0);
}
