/* agent/report/readers.h - who besides its owner can read a file, so that a page made of it shows
 * it to nobody else. */
#ifndef HPCT_AGENT_REPORT_READERS_H
#define HPCT_AGENT_REPORT_READERS_H

#include <stdbool.h>
#include <sys/stat.h>

/* Of 0077: the bits of `group` and of others, if they can read the file at `path` and reach it
 * through all folders above it; 0 if that is not known. */
mode_t hpct_report_readers(const char *path, gid_t group);

#endif
