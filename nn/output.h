/* nn/output.h - output files: all that hpc-train leaves behind is written here.
 *
 * Symbolic links are followed. A regular file gets its content under another name in its folder
 * (NAME.tmpN-PID), then its own name: a reader, and a later run, sees the earlier file or the new
 * one, whole. A new file's mode follows the umask; one that replaces another takes over its mode
 * and, where that is allowed, its owner and group. What no process is writing any more of such
 * files is removed. A device or a pipe is written to as it is. */
#ifndef HPCT_NN_OUTPUT_H
#define HPCT_NN_OUTPUT_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

/* That the file can be written, before hours of work: makes one beside it, of `bytes` where the
 * file system can reserve them, and removes it. HPCT_ERR_IO, with the path and the reason. */
hpct_status hpct_output_try(const char *path, size_t bytes);

/* Whether two names are, or would be, one regular file. */
bool hpct_output_same(const char *a, const char *b);

/* Makes a folder, and those above it, where they are missing. HPCT_ERR_IO, naming it. */
hpct_status hpct_output_make_folder(const char *folder);

typedef hpct_status hpct_output_writer(void *arg, int fd);

/* Calls `write` with a new, empty file, syncs it, and gives it the name `path`; once more where
 * that fails. After a second failure `path` is what it was, and the new file gone. HPCT_ERR_IO, or
 * what `write` returned. */
hpct_status hpct_output_replace(const char *path, hpct_output_writer *write, void *arg);

/* The same for the last chance to save something: `path` must not be there yet, and a file that
 * cannot be synced is kept. */
hpct_status hpct_output_rescue(const char *path, hpct_output_writer *write, void *arg);

/* The same in pieces, for files that are read while they are written. */
typedef struct hpct_output {
    int fd;
    const char *path; /* the caller's */
    char *target;     /* what its symbolic links lead to */
    char *temporary;  /* NULL: it has its own name already */
    bool is_special;  /* a device or a pipe */
    bool replaces;    /* an earlier file */
} hpct_output;

/* HPCT_ERR_IO when it cannot be made. `at_once`: under its own name where there is none yet. */
hpct_status hpct_output_create(hpct_output *file, const char *path, bool at_once);
/* Syncs it and gives it its name; it stays open. */
hpct_status hpct_output_place(hpct_output *file);
/* Closes it; one that was not placed is removed. Of a file of zeros, or closed already, nothing. */
void hpct_output_close(hpct_output *file);

#endif
