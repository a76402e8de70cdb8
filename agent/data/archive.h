/* agent/data/archive.h - archives that libarchive reads: tar, also compressed, and zip. */
#ifndef HPCT_AGENT_DATA_ARCHIVE_H
#define HPCT_AGENT_DATA_ARCHIVE_H

#include <archive.h>
#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether a name ends in `end` after other characters, in any case. */
bool hpct_data_name_ends(const char *name, const char *end);

/* Length of an archive's extension, such as ".tar.gz"; 0 for other names. */
size_t hpct_data_archive_extension(const char *name);
bool hpct_data_is_archive_name(const char *name);

/* A reader for all of them, which the caller opens; NULL when out of memory. */
struct archive *hpct_data_archive_reader(void);

/* Opens a file with a reader, which may be NULL. HPCT_ERR_NO_INPUT if it cannot be opened. */
hpct_status hpct_data_archive_open(struct archive *archive, const char *path);

/* HPCT_ERR_DATA with libarchive's reason. */
hpct_status hpct_data_archive_failed(struct archive *archive, const char *path);

#endif
