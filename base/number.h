/* base/number.h - parsing of bounded unsigned decimal numbers; the order of doubles. */
#ifndef HPCT_BASE_NUMBER_H
#define HPCT_BASE_NUMBER_H

#include <stdbool.h>

/* Reads digits at *text (at least one; no sign or blank) and advances *text. False, with *text and
 * *value unchanged, if there is none or it exceeds `max`. */
bool hpct_number_scan(const char **text, long max, long *value);

/* True if all of `text` is a number within [min, max], stored in *value. */
bool hpct_number_parse(const char *text, long min, long max, long *value);

#endif
