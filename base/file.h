/* base/file.h - whole files, read and written at once (output files: base/output.h). */
#ifndef HPCT_BASE_FILE_H
#define HPCT_BASE_FILE_H

#include <hpctrain/status.h>
#include <stddef.h>

/* Reads a regular file of at most `max` bytes. The caller frees *data. Returns HPCT_ERR_NO_INPUT if
 * it cannot be opened, HPCT_ERR_DATA if it is longer. */
hpct_status hpct_file_read(char **data, size_t *size, const char *path, size_t max);

/* Writes all bytes; HPCT_ERR_IO with `path` in the message. */
hpct_status hpct_file_write_all(int fd, const void *data, size_t bytes, const char *path);
/* Reads `bytes` at offset `at`; HPCT_ERR_DATA if the file is shorter. */
hpct_status hpct_file_read_all(int fd, void *data, size_t bytes, long long at, const char *path);

/* HPCT_ERR_IO: "PATH: WHAT failed: …" with the text of errno. */
hpct_status hpct_file_failed(const char *what, const char *path);

#endif
