/* base/output.h - output files of hpc-train.
 *
 * Symbolic links are followed. A regular file is written under a temporary name in its folder
 * (NAME.tmpN-PID) and renamed: readers see the earlier file or the complete new one. A new file's
 * mode follows the umask; a replaced file's mode, ACL and, if permitted, owner and group are kept.
 * Stale temporary files are removed. Devices and pipes are written directly; a pipe's reader has 10
 * s to open it. */
#ifndef HPCT_BASE_OUTPUT_H
#define HPCT_BASE_OUTPUT_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checks that the file can be written: creates one beside it, of `bytes` if the file system can
 * reserve them, renames and removes it. From then on, this process does not replace what another
 * program writes under this name: hpct_output_replace and hpct_output_place then return
 * HPCT_ERR_IO. Returns HPCT_ERR_IO with path and reason. Thread-safe. */
hpct_status hpct_output_try(const char *path, size_t bytes);

/* Whether two names are, or would be, the same regular file. */
bool hpct_output_same(const char *a, const char *b);

/* Creates a folder and its missing parents. Returns HPCT_ERR_IO, naming it. */
hpct_status hpct_output_make_folder(const char *folder);

typedef hpct_status hpct_output_writer(void *arg, int fd);

/* Calls `write` with a new empty file, syncs it and renames it to `path`; retries once. After a
 * second failure `path` is unchanged and the new file removed. Returns HPCT_ERR_IO, or what `write`
 * returned. */
hpct_status hpct_output_replace(const char *path, hpct_output_writer *write, void *arg);

/* The same for a file that is replaced every second: one attempt, and nothing is synced, so that a
 * crash of the machine may lose it. */
hpct_status hpct_output_refresh(const char *path, hpct_output_writer *write, void *arg);

/* A text that ends with a zero, replaced if `sync`, else refreshed. */
hpct_status hpct_output_put_text(const char *path, const char *text, bool sync);

/* Removes a regular file, unless another program has replaced it since this process has tried its
 * name or written it. A missing file is not an error. Returns HPCT_ERR_IO. */
hpct_status hpct_output_remove(const char *path);

/* As hpct_output_replace for a fallback path: one attempt, and `path` must not exist. `sync` false,
 * as a last resort: a file that cannot be synced is kept. */
hpct_status hpct_output_rescue(const char *path, hpct_output_writer *write, void *arg, bool sync);

/* The same in pieces, for files that are read while they are written. */
typedef struct hpct_output {
    int fd;
    const char *path; /* the caller's */
    char *target;     /* with symbolic links resolved */
    char *temporary;  /* NULL: it has its final name already */
    bool is_special;  /* a device or a pipe */
    bool replaces;    /* an earlier file exists */
} hpct_output;

/* Returns HPCT_ERR_IO if it cannot be created. `at_once`: under its final name if none exists. */
hpct_status hpct_output_create(hpct_output *file, const char *path, bool at_once);
#define HPCT_OUTPUT_END 64 /* last bytes of a file, with a zero */
/* Opens an existing regular file to continue it after its first `bytes`; what follows them is
 * removed. They begin with `begin` and end with `end`. Returns HPCT_ERR_IO if it is shorter or
 * cannot be opened, HPCT_ERR_CONFIG if it is another one, or being written; it then stays. */
hpct_status hpct_output_continue(hpct_output *file, const char *path, int64_t bytes,
                                 const char *begin, const char *end);
/* Syncs it and gives it its final name; it stays open. Returns HPCT_ERR_IO also if another program
 * replaced it. */
hpct_status hpct_output_place(hpct_output *file);
/* Closes it; removes it unless placed. No effect on a zeroed or closed struct. */
void hpct_output_close(hpct_output *file);

#endif
