/* spank/spec/out_entry.h - an entry of --hpc-train-stage-out: SRC:DST, with replacements
 * per node. Used by the plugin, which checks before queueing, and hpc-train-stage. Touches no file.
 */
#ifndef HPCT_SPANK_SPEC_OUT_ENTRY_H
#define HPCT_SPANK_SPEC_OUT_ENTRY_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Both with replacements: %j job, %A job array, %a index in it, %s step, %n node's number in the
 * job, %N its name, %t task, %% percent sign; digits before the letter pad numbers with zeros. */
typedef struct hpct_spec_out_entry {
    char *src;     /* below the job directory: relative, without ".."; "." is all of it */
    char *dst;     /* a path without trailing slash */
    bool several;  /* the last component of src has *, ? or [ (fnmatch); dst is a folder */
    bool per_task; /* %t: one copy per task of the node */
} hpct_spec_out_entry;

#define HPCT_SPEC_OUT_ENTRIES 128 /* maximal length of a list */

typedef struct hpct_spec_out_list {
    hpct_spec_out_entry *entries;
    int count;
} hpct_spec_out_list;

/* Parses "SRC:DST[,SRC:DST…]"; a backslash escapes comma, colon and backslash. A DST with trailing
 * slash is the folder to put SRC into. Returns HPCT_ERR_USAGE, with what to write instead, for a
 * missing part, a URL, a SRC outside the job directory, an unknown replacement, %t on one side
 * only, a pattern except in the last component of SRC, and two entries with one DST. Freed with
 * hpct_spec_out_list_free. */
hpct_status hpct_spec_out_list_parse(const char *text, hpct_spec_out_list *out);
void hpct_spec_out_list_free(hpct_spec_out_list *list);

/* HPCT_ERR_USAGE, with what to add, if two nodes would write to one DST. */
hpct_status hpct_spec_out_list_check_nodes(const hpct_spec_out_list *list);

/* The job's array, if any. */
typedef struct hpct_spec_out_array {
    bool is;
    uint32_t job, task;          /* %A, %a */
    uint32_t first, last, count; /* the numbers that there are; all 0: not known */
} hpct_spec_out_array;

/* HPCT_ERR_USAGE, with what to write, if two jobs of an array would write to one DST, or if %A or
 * %a is used outside an array. A DST may also contain the job's id or index as text, as written by
 * the script, unless it contains those of all jobs of the array, which no shell has put there;
 * `job` 0: unknown yet. `cwd`: base of a relative DST, may be NULL. */
hpct_status hpct_spec_out_list_check_array(const hpct_spec_out_list *list,
                                           const hpct_spec_out_array *array, uint32_t job,
                                           const char *cwd);

/* Values of the replacements. */
typedef struct hpct_spec_out_names {
    uint32_t job;
    hpct_spec_out_array array;
    const char *step; /* "0", "batch" */
    uint32_t node;
    const char *host;
    uint32_t task;
} hpct_spec_out_names;

/* Applies checked replacements; to be freed; NULL if out of memory. */
char *hpct_spec_out_name(const char *pattern, const hpct_spec_out_names *names);

/* A name as a path from the root, to be freed; NULL when out of memory. `cwd` may be NULL, as "".
 */
char *hpct_spec_out_path(const char *name, const char *cwd);

/* HPCT_ERR_USAGE when a DST of the list is in the job directory by its name: it is removed when the
 * job ends. Touches no file system, as that may hang. */
hpct_status hpct_spec_out_list_check_place(const hpct_spec_out_list *list,
                                           const hpct_spec_out_names *names, const char *cwd,
                                           const char *tmpdir);

#endif
