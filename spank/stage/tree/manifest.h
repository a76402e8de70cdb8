/* spank/stage/tree/manifest.h - record of what was staged under one name: every item with size,
 * time, mode and hash, so that a later step can verify it. Stored in the job directory's private
 * folder; it is the user's, and trusted only with the user's data. */
#ifndef HPCT_SPANK_STAGE_TREE_MANIFEST_H
#define HPCT_SPANK_STAGE_TREE_MANIFEST_H

#include <hpctrain/status.h>

#include "spank/stage/tree/item.h"
#include "spank/stage/tree/report.h"

typedef struct hpct_stage_manifest hpct_stage_manifest;

/* Creates an empty manifest, to be filled during the copy. NULL if out of memory. */
hpct_stage_manifest *hpct_stage_manifest_new(void);
void hpct_stage_manifest_free(hpct_stage_manifest *manifest); /* NULL is allowed */

/* Adds an item; `hash` is a file's. Thread-safe. Of several records for one path (archives) the
 * last counts. Folders that an archive has no item for are not recorded, and
 * hpct_stage_manifest_holds ignores them. */
hpct_status hpct_stage_manifest_note(hpct_stage_manifest *manifest, const hpct_stage_item *item,
                                     uint64_t hash);

/* Writes the manifest atomically as the file `name` in the open folder. `source` identifies source
 * and way of staging: see hpct_stage_walk_digest. The copy must have its final name. */
hpct_status hpct_stage_manifest_save(hpct_stage_manifest *manifest, int folder, const char *name,
                                     uint64_t source);

/* Returns HPCT_ERR_DATA if missing, damaged, or of another source. */
hpct_status hpct_stage_manifest_load(hpct_stage_manifest **manifest, int folder, const char *name,
                                     uint64_t source);

/* Whether the copy, the entry `last` of the open folder `above`, matches: same items, kinds, modes,
 * sizes, times and link targets; files touched since the manifest was saved (by inode change time)
 * are also hashed. False with the reason as message. */
bool hpct_stage_manifest_holds(hpct_stage_manifest *manifest, int above, const char *last,
                               hpct_stage_report *report);

#endif
