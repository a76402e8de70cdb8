/* tests/unit/agent/data/trees.h - folders and archives of small pictures, and what is read of them.
 */
#ifndef HPCT_TESTS_UNIT_AGENT_DATA_TREES_H
#define HPCT_TESTS_UNIT_AGENT_DATA_TREES_H

#include "agent/data/dataset.h"
#include "tests/unit/unit.h"

extern uint8_t tree_seed[65536]; /* the picture that was put last */

/* Skips the test in a build without libjpeg or libpng; tree_of and tree_tar call it. */
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
void tree_put_tar(const char *folder, const char *name, const char *const *names);
#define TREE_TAR(folder, name, ...)                                                                \
    tree_put_tar(folder, name, (const char *const[]){__VA_ARGS__, NULL})

/* Fails the test if it cannot be opened. */
hpct_dataset *tree_opened(const char *path, hpct_split split);

/* The split has so many pictures, of these classes (joined by ','), from PATH/FROM, and these words
 * in its notes ("": none). */
void tree_is_read(const char *path, hpct_split split, size_t pictures, const char *classes,
                  const char *from, const char *notes);

/* The split has pictures with these labels. */
void tree_has_labels(const char *path, hpct_split split, size_t count, const int32_t *labels);
#define TREE_HAS_LABELS(path, split, ...)                                                          \
    tree_has_labels(path, split, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t),               \
                    (const int32_t[]){__VA_ARGS__})

/* Opening it fails with the status, and the message names the file and says why. */
void tree_refuses(const char *path, hpct_split split, hpct_status status, const char *file,
                  const char *why);
/* The same of HPCT_TRAIN and HPCT_ERR_DATA. */
void tree_names_wrong(const char *path, const char *file, const char *why);
void tree_is_wrong(const char *path, const char *why);
void tree_is_refused(const char *path, hpct_split split, hpct_status status, const char *why);

#endif
