/* base/fd.h - descriptors: whole reads and writes, and descriptors that may be none (-1). */
#ifndef HPCT_BASE_FD_H
#define HPCT_BASE_FD_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Closes `fd` unless it is -1, and keeps errno. */
void hpct_fd_close(int fd);

/* Write all bytes; false and errno on error. */
bool hpct_fd_write(int fd, const void *data, size_t size);
bool hpct_fd_write_at(int fd, const void *data, size_t size, off_t at);

/* Return the number of bytes, less than `size` only at the end of the file; -1 and errno on error.
 */
ssize_t hpct_fd_read(int fd, void *data, size_t size);
ssize_t hpct_fd_read_at(int fd, void *data, size_t size, off_t at);

/* The open folder's entries, read by a descriptor of their own. NULL and errno on error. */
DIR *hpct_fd_list(int fd);

/* Id of the mount that contains the open file; -1 if unknown. */
int hpct_fd_mount(int fd);

#endif
