/* spank/stage/out_tree.h - copies a folder into one that may be there already, saving as much as
 * can be saved: what cannot be read is named and left out, the rest is copied. */
#ifndef HPCT_STAGE_OUT_TREE_H
#define HPCT_STAGE_OUT_TREE_H

#include <stdio.h>
#include <sys/stat.h>

#include "spank/stage/out_links.h"
#include "spank/stage/report.h"

#define HPCT_OUT_LINES 20 /* lines about things left out; the rest is counted */

/* One run of copying out. */
typedef struct hpct_out {
    hpct_report *report;
    FILE *loss;            /* gets a line for all that was not copied */
    char temp[128];        /* what unfinished things are called, beside their names */
    hpct_out_links *links; /* of the folder that is being copied */
    int root;              /* where it goes */
    size_t root_name;      /* bytes of its name, which what is below it is called by */
    const char *only;      /* of that folder itself only what fnmatch takes; NULL: all */
    unsigned left_out;     /* things that could not be copied */
    hpct_status first;     /* why the first one was not */
} hpct_out;

/* Says that something was not copied, and counts it. `status` and the last error say why. */
void hpct_out_left(hpct_out *out, hpct_status status);

/* Copies the open file `src` (its fstat: info) to `part` in the folder `at`, first under out->temp.
 * What is there already with the same size and times stays. An error when the destination failed
 * or time is over; HPCT_OK, with hpct_out_left called, when only the source did. */
hpct_status hpct_out_file(hpct_out *out, int src, const struct stat *info, const char *name, int at,
                          const char *part);

/* Copies all that is in the open folder `src` into the open folder `at`, as hpct_out_file does;
 * what else is in `at` stays. With `whole`, `at` becomes like `src` in mode and times too. Links
 * are copied as they are, and files with several names get them again. Sockets, pipes and devices
 * are left out; so is our own folder. */
hpct_status hpct_out_folder(hpct_out *out, int src, const char *name, int at, bool whole);

/* Whether something is in the open folder `src` that `only` takes: as shells have it, so that "*"
 * does not take a name that begins with a dot; also the name that is just so. Our own folder, "."
 * and
 * ".." are nothing. */
bool hpct_out_matches(int src, const char *only);

/* Adds up the files below the open file or folder, each once, however many names it has, of the
 * folder itself only what `only` takes; what cannot be read counts nothing. */
hpct_status hpct_out_measure(int src, const char *only, hpct_report *report, uint64_t *bytes);

#endif
