/* spank/stage/item.h - one thing in a tree, as the walk finds it, as the stream of a broadcast
 * carries it, and as the writer makes it. Holds no descriptors and owns nothing. */
#ifndef HPCT_STAGE_ITEM_H
#define HPCT_STAGE_ITEM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define HPCT_ITEM_DEPTH 256 /* at most so many parts has a path */

typedef enum hpct_item_kind {
    HPCT_ITEM_FILE,
    HPCT_ITEM_FOLDER,
    HPCT_ITEM_SYMLINK,
    HPCT_ITEM_HARDLINK, /* a further name of a file that came before */
} hpct_item_kind;

typedef struct hpct_item {
    hpct_item_kind kind;
    const char *path;   /* below the root: names with one '/' between; "" is the root itself */
    const char *target; /* symlink: its text; hard link: path of the earlier name; else NULL */
    uint64_t size;      /* file: bytes, holes included; else 0 */
    mode_t mode;        /* permission bits; others are not used */
    struct timespec times[2]; /* access and modification, as for futimens */
} hpct_item;

/* Whether `path` is "" or names with one '/' between, none of them "." or ".." or longer than 255
 * bytes, at most HPCT_ITEM_DEPTH of them, shorter than PATH_MAX. Any other bytes are fine. */
bool hpct_item_path_ok(const char *path);

/* Whether a symbolic link at `path` with this text stays within the root wherever its chain of
 * links may lead: it is relative, climbs only at its beginning, and not above the root. Judged by
 * its text; a link behind a link is itself judged, so that no chain of them leads out. */
bool hpct_item_link_stays(const char *path, const char *text);

#endif
