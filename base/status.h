/* base/status.h - sets the message of hpct_last_error(). */
#ifndef HPCT_BASE_STATUS_H
#define HPCT_BASE_STATUS_H

#include <hpctrain/status.h>
#include <stddef.h>

/* Records the formatted message and returns `status`: return hpct_fail(HPCT_ERR_DATA, "%s: label %d
 * …", …). Control characters become '?', as it may quote foreign input. */
hpct_status hpct_fail(hpct_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prepends "prefix: " to the message, e.g. the file or option from further out. */
hpct_status hpct_fail_within(hpct_status status, const char *prefix);

/* hpct_fail(HPCT_ERR_INTERNAL, "out of memory …"); `bytes` were requested, 0 if unknown. */
hpct_status hpct_fail_memory(size_t bytes);

/* Preserves the message while cleaning up with functions that may fail:
 *   char *told = hpct_error_keep(); ...; hpct_error_restore(told); */
char *hpct_error_keep(void);
void hpct_error_restore(char *kept); /* releases it */

/* Returns from the calling function with the call's status unless that is HPCT_OK. Only where
 * nothing is left to release. */
#define HPCT_TRY(call)                                                                             \
    do {                                                                                           \
        hpct_status hpct_tried_ = (call);                                                          \
        if (hpct_tried_ != HPCT_OK)                                                                \
            return hpct_tried_;                                                                    \
    } while (0)

#endif
