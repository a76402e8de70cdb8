/* spank/stage/writer_state.h - a writer from within: for writer.c and sink.c alone. */
#ifndef HPCT_STAGE_WRITER_STATE_H
#define HPCT_STAGE_WRITER_STATE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "spank/stage/folders.h"
#include "spank/stage/writer.h"

typedef struct folder {
    char *path;
    mode_t mode;
    struct timespec times[2];
    size_t order; /* of making */
} folder;

struct hpct_writer {
    hpct_writer_options options;
    char *name;
    int outer; /* the folder that the root lies in */
    char root[NAME_MAX + 1];
    int fd; /* the root when it is a folder, else -1 */
    bool has_root;
    mode_t umask; /* bits that open and mkdir may take away */
    hpct_folders *folders;
    _Atomic uint64_t bytes, entries;
    pthread_mutex_t mutex; /* for `list` */
    folder *list;
    size_t count, room;
};

/* "`name`/path: what"; and with errno, that the copy cannot be written. */
hpct_status hpct_writer_fail(const hpct_writer *w, hpct_status status, const char *path,
                             const char *what);
hpct_status hpct_writer_fail_make(const hpct_writer *w, const char *path);

/* Bytes that will be written, before they are. */
hpct_status hpct_writer_take(hpct_writer *w, uint64_t size);

/* Makes an empty file and opens it for writing and reading back. */
hpct_status hpct_writer_create(hpct_writer *w, const hpct_item *item, int *fd);

#endif
