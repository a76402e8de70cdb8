/* spank/stage/manifest.h - what was staged under one name: every item with its size, time, mode and
 * hash, so that a later step can tell that it is all still there. Kept in the job directory's
 * private folder; it is the user's own, and nothing is trusted to it but his own data. */
#ifndef HPCT_STAGE_MANIFEST_H
#define HPCT_STAGE_MANIFEST_H

#include <hpctrain/status.h>

#include "spank/stage/item.h"
#include "spank/stage/report.h"

typedef struct hpct_manifest hpct_manifest;

/* An empty one, to be filled while the copy is made. NULL when out of memory. */
hpct_manifest *hpct_manifest_new(void);
void hpct_manifest_free(hpct_manifest *manifest); /* NULL is fine */

/* Notes an item; `hash` is a file's. Several threads may. An item that was noted before (an archive
 * may name one twice) counts as it was noted last. */
hpct_status hpct_manifest_note(hpct_manifest *manifest, const hpct_item *item, uint64_t hash);

/* Folders that exist without an item of their own were made (archives): they are not noted, and
 * hpct_manifest_holds does not count them. */

/* Writes it as the file `name` (whole or not at all) in the open folder. `source` stands for what
 * was staged, and how: see hpct_walk_digest. The copy must be in its final place. */
hpct_status hpct_manifest_save(hpct_manifest *manifest, int folder, const char *name,
                               uint64_t source);

/* HPCT_ERR_DATA when it is not there, is damaged, or is about another source. */
hpct_status hpct_manifest_load(hpct_manifest **manifest, int folder, const char *name,
                               uint64_t source);

/* Whether the copy, the entry `last` of the open folder `above`, is what was noted: the same items,
 * with the same kinds, modes, sizes, times and link targets; of a file that was touched since the
 * manifest was saved (its inode's change time, which no program can set, is not older) also the
 * content is read and its hash compared. False with the reason as message. */
bool hpct_manifest_holds(hpct_manifest *manifest, int above, const char *last, hpct_report *report);

#endif
