/* The calling thread's last error message. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_SIZE 12288 /* two names of maximal length and the reason */

static _Thread_local char message[MESSAGE_SIZE];

const char *hpct_last_error(void)
{
    return message;
}

/* A file name must not control a terminal. Bytes above 0x7f stay: names are UTF-8. */
static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char) *text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

hpct_status hpct_fail(hpct_status status, const char *format, ...)
{
    char text[MESSAGE_SIZE]; /* the arguments may point into `message` */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    make_printable(text);
    memcpy(message, text, strlen(text) + 1);
    return status;
}

hpct_status hpct_fail_within(hpct_status status, const char *prefix)
{
    return hpct_fail(status, "%s: %s", prefix, message);
}

hpct_status hpct_fail_memory(size_t bytes)
{
    if (bytes == 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "out of memory");
    return hpct_fail(HPCT_ERR_INTERNAL, "out of memory: %zu bytes were needed", bytes);
}

char *hpct_error_keep(void)
{
    return strdup(message); /* NULL: the last message is printed */
}

void hpct_error_restore(char *kept)
{
    if (kept != NULL)
        memcpy(message, kept, strlen(kept) + 1);
    free(kept);
}
