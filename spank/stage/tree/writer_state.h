/* spank/stage/tree/writer_state.h - internals of a writer, for writer.c and sink.c only. */
#ifndef HPCT_SPANK_STAGE_TREE_WRITER_STATE_H
#define HPCT_SPANK_STAGE_TREE_WRITER_STATE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "spank/stage/tree/folders.h"
#include "spank/stage/tree/writer.h"

typedef struct folder {
    char *path;
    mode_t mode;
    struct timespec times[2];
    size_t order; /* of creation */
} folder;

struct hpct_stage_writer {
    hpct_stage_writer_options options;
    char *name;
    int outer; /* folder that contains the root */
    char root[NAME_MAX + 1];
    int fd; /* the root if it is a folder, else -1 */
    bool has_root;
    mode_t umask; /* permission bits that the process umask may clear */
    hpct_stage_folders *folders;
    _Atomic uint64_t bytes, entries;
    pthread_mutex_t mutex; /* protects `list` */
    folder *list;
    size_t count, room;
};

/* Fails with "`name`/path: what"; hpct_stage_writer_fail_make: with errno, the copy cannot be
 * written. */
hpct_status hpct_stage_writer_fail(const hpct_stage_writer *w, hpct_status status, const char *path,
                                   const char *what);
hpct_status hpct_stage_writer_fail_make(const hpct_stage_writer *w, const char *path);

/* Counts bytes against the limit before they are written. */
hpct_status hpct_stage_writer_take(hpct_stage_writer *w, uint64_t size);

/* Creates an empty file and opens it for writing and reading back. */
hpct_status hpct_stage_writer_create(hpct_stage_writer *w, const hpct_stage_item *item, int *fd);

#endif
