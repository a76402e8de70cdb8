/* agent/data/foreign.h - files of data that are not read here, known by their first bytes. */
#ifndef HPCT_AGENT_DATA_FOREIGN_H
#define HPCT_AGENT_DATA_FOREIGN_H

#include <hpctrain/status.h>
#include <stddef.h>

/* "a Parquet file", or NULL: unknown. */
const char *hpct_data_foreign_name(const void *head, size_t length);

/* HPCT_ERR_DATA, naming the file and what to do, if `path` is such a file, or a folder with one in
 * it or a few levels below; else HPCT_OK. */
hpct_status hpct_data_foreign_refuse(const char *path);

/* Of what has an archive's name and could not be read: the status, with a message that names what
 * the file is instead if that is known. */
hpct_status hpct_data_foreign_misnamed(const char *path, hpct_status status);

#endif
