/* nn/file.h - whole files, read at once (nn/output.h: written); all of a piece in and out. */
#ifndef HPCT_NN_FILE_H
#define HPCT_NN_FILE_H

#include <hpctrain/status.h>
#include <stddef.h>

/* Reads a regular file of at most `max` bytes. The caller frees *data. HPCT_ERR_NO_INPUT when it
 * cannot be opened, HPCT_ERR_DATA when it is longer. */
hpct_status hpct_file_read(char **data, size_t *size, const char *path, size_t max);

/* All of it, or HPCT_ERR_IO with `path` in the message. */
hpct_status hpct_file_write_all(int fd, const void *data, size_t bytes, const char *path);
/* `bytes` from offset `at`; HPCT_ERR_DATA when the file ends before. */
hpct_status hpct_file_read_all(int fd, void *data, size_t bytes, long long at, const char *path);

/* HPCT_ERR_IO: "PATH: WHAT failed: …" with errno's text. */
hpct_status hpct_file_failed(const char *what, const char *path);

#endif
