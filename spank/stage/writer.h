/* spank/stage/writer.h - makes a tree from items below a folder of ours, trusting none of them:
 * whatever they say, nothing outside that folder is made, opened or changed.
 *
 *     hpct_writer_open(&w, incoming, "0", &options);
 *     for each item:
 *         file, in memory:   hpct_writer_whole(w, &item, bytes, &hash);
 *         file, in pieces:   hpct_writer_begin(w, &item, &sink);
 *                            hpct_sink_data(sink, bytes, n); hpct_sink_hole(sink, n); ...
 *                            hpct_sink_end(sink, &hash);
 *         anything else:     hpct_writer_add(w, &item);
 *     hpct_writer_finish(w);
 *     hpct_writer_close(w);
 *
 * A folder's item comes before what is in it, a hard link's after its file's end. Apart from that
 * the order is free, and several threads may make items at once (each sink by one thread at a
 * time). After an error close the writer and remove what it made (hpct_tree_remove(folder, root)).
 *
 * Every byte that is written is read back and hashed (see hash.h) while it is still in memory, and
 * the hash compared with that of the bytes that were handed in; the caller compares the hash it
 * gets with the one that came with the data, where one did.
 *
 * Errors: HPCT_ERR_DATA for an item that cannot be meant (a name that leads out, a link out, a kind
 * twice, more bytes than it said); HPCT_ERR_IO when the disk is full or fails; HPCT_ERR_CONFIG
 * beyond max_bytes. Messages name the file as `name`/path. */
#ifndef HPCT_STAGE_WRITER_H
#define HPCT_STAGE_WRITER_H

#include <hpctrain/status.h>
#include <stddef.h>

#include "spank/stage/item.h"

typedef struct hpct_writer hpct_writer;
typedef struct hpct_sink hpct_sink;
typedef struct hpct_lane hpct_lane;
struct hpct_manifest;

typedef struct hpct_writer_options {
    const char *name;     /* for messages: the source as the user wrote it */
    uint64_t max_bytes;   /* refuse content beyond (HPCT_ERR_CONFIG); 0: no bound */
    uint64_t max_entries; /* refuse more items (HPCT_ERR_CONFIG); 0: no bound */
    bool loose;           /* archives: folders that no item named are made, and a later file or
                           * link takes the place of an earlier one. Else both are errors */
    struct hpct_manifest *manifest; /* every item is noted there with its hash; NULL: not */
} hpct_writer_options;

/* Makes the tree as `root` (one name, which does not exist) in the open folder `folder`, which
 * stays the caller's and must stay open. The first item is the root itself (path ""): a folder, or
 * a file and then the only item. Modes and times are kept without regard to the umask. */
hpct_status hpct_writer_open(hpct_writer **writer, int folder, const char *root,
                             const hpct_writer_options *options);

/* Makes a folder, a symbolic or a hard link. A folder is the owner's alone until
 * hpct_writer_finish gives it its mode and times. */
hpct_status hpct_writer_add(hpct_writer *writer, const hpct_item *item);

/* Makes a file whose item->size bytes are at `content`. *hash (may be NULL): its hash. */
hpct_status hpct_writer_whole(hpct_writer *writer, const hpct_item *item, const void *content,
                              uint64_t *hash);

/* Begins a file; after HPCT_OK end it with hpct_sink_end or hpct_sink_drop. */
hpct_status hpct_writer_begin(hpct_writer *writer, const hpct_item *item, hpct_sink **sink);

/* The next `size` bytes. They may be refused here when they exceed what the item said. */
hpct_status hpct_sink_data(hpct_sink *sink, const void *data, size_t size);

/* The next `size` bytes are a hole. */
hpct_status hpct_sink_hole(hpct_sink *sink, uint64_t size);

/* Ends the file: it has all the bytes that its item said (else HPCT_ERR_DATA), mode and times.
 * Frees the sink, also on failure. *hash (may be NULL): the hash of what is in the file now. */
hpct_status hpct_sink_end(hpct_sink *sink, uint64_t *hash);

/* Frees the sink of a file that is not wanted any more; the file is left unfinished. */
void hpct_sink_drop(hpct_sink *sink);

/* ---- blocks of one file by several threads ----
 *
 * Between hpct_writer_begin and hpct_sink_end, instead of hpct_sink_data: each block of
 * HPCT_HASH_BLOCK bytes by one lane, which belongs to one thread. All blocks must be done. */
hpct_lane *hpct_lane_new(void);       /* NULL when out of memory */
void hpct_lane_free(hpct_lane *lane); /* NULL is fine */

/* The block's bytes follow. `present`: they are in the file already (the kernel put them there),
 * and are only compared with what is handed in. */
hpct_status hpct_lane_begin(hpct_lane *lane, hpct_sink *sink, uint64_t block, bool present);
hpct_status hpct_lane_data(hpct_lane *lane, const void *data, size_t size);

/* Room for HPCT_LANE_PIECE bytes, which hpct_lane_data may be given. What was written is read back
 * to this very place, so that little of the processor's cache is needed; it holds the file's bytes
 * afterwards. */
#define HPCT_LANE_PIECE (128u << 10)
char *hpct_lane_buffer(hpct_lane *lane);
hpct_status hpct_lane_hole(hpct_lane *lane, uint64_t size);
hpct_status hpct_lane_end(hpct_lane *lane);

/* The file itself, for those who let the kernel fill it. It stays the sink's. */
int hpct_sink_fd(const hpct_sink *sink);

/* Gives the folders their modes and times, the innermost first. All sinks must have ended. */
hpct_status hpct_writer_finish(hpct_writer *writer);

/* Frees the writer; NULL is fine. */
void hpct_writer_close(hpct_writer *writer);

#endif
