/* spank/stage/out_entry.h - what to copy out of the job directory, as a user writes it: SRC:DST,
 * with names that differ from node to node. Shared by the plugin, which refuses bad ones before a
 * job is queued, and by hpc-train-stage. Touches no file. */
#ifndef HPCT_STAGE_OUT_ENTRY_H
#define HPCT_STAGE_OUT_ENTRY_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Both with their patterns: %j job, %A job array, %a number in it, %s step, %n number of the node
 * in the job, %N its name, %t task, %% a percent sign; digits before the letter fill a number up
 * with zeros to that width. */
typedef struct hpct_out_entry {
    char *src;    /* below the job directory: relative, without ".."; "." is all of it */
    char *dst;    /* a path; never ends with a slash */
    bool several; /* the last part of src, with *, ? or [, is what fnmatch takes; dst is a folder */
    bool per_task; /* %t: one copy for each task of the node */
} hpct_out_entry;

#define HPCT_OUT_ENTRIES 128 /* of a list, at most */

typedef struct hpct_out_list {
    hpct_out_entry *entries;
    int count;
} hpct_out_list;

/* Reads "SRC:DST[,SRC:DST…]"; a backslash takes the meaning from the comma, colon or backslash
 * behind it. A DST that ends with a slash is the folder to put SRC into. HPCT_ERR_USAGE, saying
 * what to write instead, for a missing part, an internet address, a SRC outside of the job
 * directory, an unknown pattern, a %t on one side only, a * anywhere but in the last part of SRC,
 * and two entries with one DST. Freed with hpct_out_list_free. */
hpct_status hpct_out_list_parse(const char *text, hpct_out_list *out);

/* Adds the one entry in `text` (commas mean nothing there) to a list, with the same checks. */
hpct_status hpct_out_list_add(hpct_out_list *list, const char *text);
void hpct_out_list_free(hpct_out_list *list);

/* HPCT_ERR_USAGE, saying what to add, when two nodes would both write to a DST of the list. */
hpct_status hpct_out_list_check_nodes(const hpct_out_list *list);

/* The job array that a job is in, if any. */
typedef struct hpct_out_array {
    bool is;
    uint32_t job, task; /* %A, %a */
} hpct_out_array;

/* HPCT_ERR_USAGE, saying what to write, when two jobs of an array would both write to a DST of the
 * list, or when a job that is in none uses %A or %a. A DST may also have the job's number, or that
 * in the array, written out, as a shell does in the script; `job` 0: they are not known yet. `cwd`:
 * what a relative DST starts from, may be NULL. */
hpct_status hpct_out_list_check_array(const hpct_out_list *list, const hpct_out_array *array,
                                      uint32_t job, const char *cwd);

/* What the patterns stand for. */
typedef struct hpct_out_names {
    uint32_t job;
    hpct_out_array array;
    const char *step; /* "0", "batch" */
    uint32_t node;
    const char *host;
    uint32_t task;
} hpct_out_names;

/* The name that a checked pattern makes, to be freed; NULL when out of memory. */
char *hpct_out_name(const char *pattern, const hpct_out_names *names);

#endif
