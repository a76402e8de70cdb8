/* base/file.h - whole files, read and written at once (output files: base/output.h). */
#ifndef HPCT_BASE_FILE_H
#define HPCT_BASE_FILE_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Reads a regular file of at most `max` bytes. The caller frees *data. Returns HPCT_ERR_NO_INPUT if
 * it cannot be opened, HPCT_ERR_DATA if it is longer. */
hpct_status hpct_file_read(char **data, size_t *size, const char *path, size_t max);

/* Writes all bytes; HPCT_ERR_IO with `path` in the message. */
hpct_status hpct_file_write_all(int fd, const void *data, size_t bytes, const char *path);
/* Reads `bytes` at offset `at`; HPCT_ERR_DATA if the file is shorter. */
hpct_status hpct_file_read_all(int fd, void *data, size_t bytes, long long at, const char *path);

/* Whether both are of one file or folder; of names, links are followed. */
bool hpct_file_same(const struct stat *a, const struct stat *b);
bool hpct_file_same_names(const char *a, const char *b);

/* fsync, where the file system has it; errno. */
bool hpct_file_sync(int fd);
/* Makes entries of a folder durable: new, renamed, removed ones. HPCT_ERR_IO. */
hpct_status hpct_file_sync_folder(const char *folder);

/* HPCT_ERR_IO: "PATH: WHAT failed: …" with the text of errno. */
hpct_status hpct_file_failed(const char *what, const char *path);

#endif
