/* agent/cluster/number.h - decimal numbers as Slurm and users write them: digits only, bounded. */
#ifndef HPCT_CLUSTER_NUMBER_H
#define HPCT_CLUSTER_NUMBER_H

#include <stdbool.h>

/* Reads the digits at *text (at least one; no sign, no blank) and moves *text behind them.
 * False, with *text and *value as they were, when there is none or the number is above `max`. */
bool hpct_number_scan(const char **text, long max, long *value);

/* True when the whole of `text` is one number within [min, max], then put in *value. */
bool hpct_number_parse(const char *text, long min, long max, long *value);

#endif
