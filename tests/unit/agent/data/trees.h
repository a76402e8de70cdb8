/* tests/unit/agent/data/trees.h - folders and archives of small pictures, and what is read of them.
 */
#ifndef HPCT_TESTS_UNIT_AGENT_DATA_TREES_H
#define HPCT_TESTS_UNIT_AGENT_DATA_TREES_H

#include "agent/data/dataset.h"
#include "tests/unit/unit.h"

extern uint8_t tree_seed[65536]; /* the picture that was put last */

/* Skips the test in a build without libjpeg or libpng. */
void tree_needs_pictures(void);

/* A fresh folder with a picture for each name. */
const char *tree_of(const char *const *names);
#define TREE(...) tree_of((const char *const[]){__VA_ARGS__, NULL})
void tree_put(const char *folder, const char *name, const char *from); /* of pictures_seed */
void tree_empty_folder(const char *folder, const char *name);
char *tree_below(const char *folder, const char *name); /* until the next call */

/* FOLDER/NAME, packed as it is into an archive. */
void tree_pack(const char *archive, const char *folder, const char *name);

/* A tar with one picture for each name; a .cls has the first digit of its name. Its bytes. */
size_t tree_tar(uint8_t *out, size_t room, const char *const *names);

/* Fails the test if it cannot be opened. */
hpct_dataset *tree_opened(const char *path, hpct_split split);

/* The split has so many pictures, of these classes (joined by ','), from PATH/FROM, and these words
 * in its notes ("": none). */
void tree_is_read(const char *path, hpct_split split, size_t pictures, const char *classes,
                  const char *from, const char *notes);

/* Opening it fails with the status, and the message says why. */
void tree_is_refused(const char *path, hpct_split split, hpct_status status, const char *why);

#endif
