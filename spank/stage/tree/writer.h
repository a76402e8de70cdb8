/* spank/stage/tree/writer.h - creates a tree from untrusted items below a folder: nothing outside
 * that folder is created, opened or changed.
 *
 *     hpct_stage_writer_open(&w, incoming, "0", &options);
 *     for each item:
 *         file, in memory:   hpct_stage_writer_whole(w, &item, bytes, &hash);
 *         file, in pieces:   hpct_stage_writer_begin(w, &item, &sink);
 *                            hpct_stage_sink_data(sink, bytes, n);
 *                            hpct_stage_sink_data(sink, NULL, n); ... (a hole)
 *                            hpct_stage_sink_end(sink, &hash);
 *         anything else:     hpct_stage_writer_add(w, &item);
 *     hpct_stage_writer_finish(w);
 *     hpct_stage_writer_close(w);
 *
 * A folder comes before its contents, a hard link after the end of its file. Otherwise the order is
 * free, and several threads may create items (each sink by one thread at a time). After an error
 * close the writer and remove the result (hpct_stage_tree_remove(folder, root)).
 *
 * Every byte written is read back and hashed (hash.h) while it is in memory, and compared with the
 * hash of the input; the caller compares the returned hash with the one that came with the data.
 *
 * Errors: HPCT_ERR_DATA for an invalid item (name or link out of the folder, conflicting kinds,
 * more bytes than announced); HPCT_ERR_IO if the disk is full or fails; HPCT_ERR_CONFIG beyond
 * max_bytes. Messages name the file as `name`/path. */
#ifndef HPCT_SPANK_STAGE_TREE_WRITER_H
#define HPCT_SPANK_STAGE_TREE_WRITER_H

#include <hpctrain/status.h>
#include <stddef.h>

#include "spank/stage/tree/item.h"

typedef struct hpct_stage_writer hpct_stage_writer;
typedef struct hpct_stage_sink hpct_stage_sink;
typedef struct hpct_stage_lane hpct_stage_lane;
struct hpct_stage_manifest;

typedef struct hpct_stage_writer_options {
    const char *name;     /* for messages: the source as the user wrote it */
    uint64_t max_bytes;   /* limit of bytes (HPCT_ERR_CONFIG); 0: none */
    uint64_t max_entries; /* limit of items (HPCT_ERR_CONFIG); 0: none */
    bool loose; /* archives: missing folders are created, and a later file or link replaces an
                   earlier one; otherwise errors */
    struct hpct_stage_manifest *manifest; /* records every item with its hash; NULL: none */
} hpct_stage_writer_options;

/* Creates the tree as `root` (one name that does not exist) in the folder `folder`, which the
 * caller keeps open. The first item is the root itself (path ""): a folder, or a file and then the
 * only item. Modes and times ignore the umask. */
hpct_status hpct_stage_writer_open(hpct_stage_writer **writer, int folder, const char *root,
                                   const hpct_stage_writer_options *options);

/* Creates a folder, symbolic or hard link. A folder has mode 0700 until hpct_stage_writer_finish
 * sets mode and times. */
hpct_status hpct_stage_writer_add(hpct_stage_writer *writer, const hpct_stage_item *item);

/* Creates a file with item->size bytes at `content`. *hash (may be NULL): its hash. */
hpct_status hpct_stage_writer_whole(hpct_stage_writer *writer, const hpct_stage_item *item,
                                    const void *content, uint64_t *hash);

/* Begins a file; after HPCT_OK end it with hpct_stage_sink_end or hpct_stage_sink_drop. */
hpct_status hpct_stage_writer_begin(hpct_stage_writer *writer, const hpct_stage_item *item,
                                    hpct_stage_sink **sink);

/* Writes the next `size` bytes; NULL data: they are a hole. An error if they exceed the announced
 * size. */
hpct_status hpct_stage_sink_data(hpct_stage_sink *sink, const void *data, uint64_t size);

/* Ends the file: checks its size (else HPCT_ERR_DATA), sets mode and times. Frees the sink, also on
 * error. *hash (may be NULL): hash of the file's content. */
hpct_status hpct_stage_sink_end(hpct_stage_sink *sink, uint64_t *hash);

/* Frees the sink of an unwanted file, which remains incomplete. */
void hpct_stage_sink_drop(hpct_stage_sink *sink);

/* ---- blocks of one file by several threads ----
 *
 * Between hpct_stage_writer_begin and hpct_stage_sink_end, instead of hpct_stage_sink_data: each
 * block of HPCT_STAGE_HASH_BLOCK bytes by one lane, which belongs to one thread. All blocks must be
 * done. */
hpct_stage_lane *hpct_stage_lane_new(void);       /* NULL when out of memory */
void hpct_stage_lane_free(hpct_stage_lane *lane); /* NULL is allowed */

/* Begins a block; its bytes follow. `present`: they are in the file already (written by the kernel)
 * and are only compared. */
void hpct_stage_lane_begin(hpct_stage_lane *lane, hpct_stage_sink *sink, uint64_t block,
                           bool present);
hpct_status hpct_stage_lane_data(hpct_stage_lane *lane, const void *data, size_t size);

/* Buffer of HPCT_STAGE_LANE_PIECE bytes for hpct_stage_lane_data. Written data is read back into
 * it, which saves cache; it holds the file's bytes afterwards. */
#define HPCT_STAGE_LANE_PIECE (128u << 10)
char *hpct_stage_lane_buffer(hpct_stage_lane *lane);
hpct_status hpct_stage_lane_hole(hpct_stage_lane *lane, uint64_t size);
hpct_status hpct_stage_lane_end(hpct_stage_lane *lane);

/* Descriptor of the file, for copies by the kernel. Owned by the sink. */
int hpct_stage_sink_fd(const hpct_stage_sink *sink);

/* Sets modes and times of folders, innermost first. All sinks must have ended. */
hpct_status hpct_stage_writer_finish(hpct_stage_writer *writer);

/* Frees the writer; NULL is allowed. */
void hpct_stage_writer_close(hpct_stage_writer *writer);

#endif
