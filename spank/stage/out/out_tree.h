/* spank/stage/out/out_tree.h - copies a folder into a possibly existing one, as much as possible:
 * unreadable files are reported and skipped. */
#ifndef HPCT_SPANK_STAGE_OUT_OUT_TREE_H
#define HPCT_SPANK_STAGE_OUT_OUT_TREE_H

#include <stdio.h>
#include <sys/stat.h>

#include "spank/stage/out/out_ours.h"
#include "spank/stage/tree/inodes.h"
#include "spank/stage/tree/report.h"

#define HPCT_STAGE_OUT_LINES 20 /* lines about skipped files; more are counted */

/* One run of copying out. */
typedef struct hpct_stage_out {
    hpct_stage_report *report;
    FILE *loss;     /* receives a line for everything not copied */
    char temp[128]; /* suffix of temporary names */
    void *links;    /* hpct_stage_inodes: the first names, in the folder that is being copied */
    int root;       /* where it goes */
    struct stat root_info;
    size_t root_name; /* bytes of its name, prefix of reported names */
    const char *only; /* pattern for the folder's own entries (fnmatch); NULL: all */
    const char *to;   /* the destination as a path */
    int64_t start;    /* of the step, on this node's clock (hpct_now_ms); 0: unknown */
    int64_t since;    /* the same in the destination's time, in ms; 0: not asked yet */
    hpct_stage_out_ours *ours;
    void *named;       /* hpct_stage_inodes: of this run */
    char suffix[64];   /* of the names of copies whose own is another step's */
    unsigned left_out; /* number of things not copied */
    unsigned beside;   /* number of things copied under such a name */
    hpct_status first; /* status of the first */
} hpct_stage_out;

/* Reports and counts something not copied. `status` and the last error give the reason. */
void hpct_stage_out_left(hpct_stage_out *out, hpct_status status);

/* Copies the open file `src` (its fstat: info) to `part` in the folder `at`, first under out->temp.
 * An existing file of equal size and times, newer than the source's last change, is kept. Returns
 * an error of the destination or a timeout; HPCT_OK, after hpct_stage_out_left, for an error of the
 * source. */
hpct_status hpct_stage_out_file(hpct_stage_out *out, int src, const struct stat *info,
                                const char *name, int at, const char *part);

/* Copies everything in the open folder `src` into the open folder `at`, as hpct_stage_out_file
 * does; other entries of `at` are kept. With `whole`, mode and times of `at` are set, too. Symbolic
 * links are copied, hard links recreated. Sockets, pipes, devices and .hpc-train are skipped. */
hpct_status hpct_stage_out_folder(hpct_stage_out *out, int src, const char *name, int at,
                                  bool whole);

/* Whether the open folder `src` has an entry that matches `only` as in a shell, where "*" does not
 * match a leading dot, or literally. .hpc-train, "." and ".." do not count. */
bool hpct_stage_out_matches(int src, const char *only);

/* Total size of the files below the open file or folder, hard links once, restricted by `only` at
 * the top; unreadable files count 0. */
hpct_status hpct_stage_out_measure(int src, const char *only, hpct_stage_report *report,
                                   uint64_t *bytes);

#endif
