/* base/status.h - setting the message that hpct_last_error returns. */
#ifndef HPCT_BASE_STATUS_H
#define HPCT_BASE_STATUS_H

#include <hpctrain/status.h>
#include <stddef.h>

/* Keeps the formatted message for hpct_last_error and returns `status`, so that a function can end
 * with `return hpct_fail(HPCT_ERR_DATA, "%s: label %d …", …)`. Control characters in the message
 * become '?': it may quote names from foreign input. */
hpct_status hpct_fail(hpct_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the message kept (to name the file or option from further out). */
hpct_status hpct_fail_within(hpct_status status, const char *prefix);

/* hpct_fail(HPCT_ERR_INTERNAL, "out of memory …"); `bytes` is what was asked for, 0 if unknown. */
hpct_status hpct_fail_memory(size_t bytes);

/* The message, while things are closed that may fail, too, behind a failure that is to be told:
 *   char *told = hpct_error_keep(); ...; hpct_error_restore(told); */
char *hpct_error_keep(void);
void hpct_error_restore(char *kept); /* releases it */

#endif
