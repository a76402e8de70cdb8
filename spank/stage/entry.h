/* spank/stage/entry.h - one thing to stage, as a user writes it: SRC[:DST]. Shared by the plugin,
 * which refuses bad ones before a job is queued, and by hpc-train-stage. Touches no file. */
#ifndef HPCT_STAGE_ENTRY_H
#define HPCT_STAGE_ENTRY_H

#include <hpctrain/status.h>
#include <stdbool.h>

/* The folder in the job directory that is ours: config files, lock, unfinished copies. */
#define HPCT_PRIVATE_FOLDER ".hpc-train"

typedef struct hpct_stage_entry {
    char *src; /* as written, without slashes at its end */
    char *dst; /* below the job directory: relative, without "." and ".." */
} hpct_stage_entry;

typedef struct hpct_stage_list {
    hpct_stage_entry *entries;
    int count;
} hpct_stage_list;

/* Reads "SRC[:DST][,SRC[:DST]…]"; a backslash takes the meaning from the comma, colon or backslash
 * behind it. DST defaults to the last part of SRC. HPCT_ERR_USAGE, saying what to write instead,
 * for an empty SRC or one for a shell (hpct_entry_check_shell), a DST that leaves the job directory
 * or takes our folder's name, and for two entries of which one would lie upon or within the other.
 * Freed with hpct_stage_list_free. */
hpct_status hpct_stage_list_parse(const char *text, hpct_stage_list *out);

/* Adds the one entry in `text` (commas mean nothing there) to a list, with the same checks. */
hpct_status hpct_stage_list_add(hpct_stage_list *list, const char *text);
void hpct_stage_list_free(hpct_stage_list *list);

/* HPCT_ERR_USAGE when a path has what a shell would have replaced: a "~" in front, a backquote, or
 * a "$" before a name, a figure or a bracket. No shell does within an option or in an #SBATCH line,
 * and a folder of that name is never meant. The message ends with `instead`: what to write. */
hpct_status hpct_entry_check_shell(const char *path, const char *instead);

/* HPCT_ERR_USAGE when an entry, cut at its colon, was an internet address: SRC a scheme's name, and
 * DST begins with two slashes. */
hpct_status hpct_entry_check_address(const char *src, const char *dst);

/* Copies *text up to one of the bytes in `ends` that has no backslash before it (or to the end),
 * without the backslashes; *text is left there. To be freed; NULL when out of memory. */
char *hpct_entry_cut(const char **text, const char *ends);

/* Takes the slashes from a path's end; "/" stays. */
void hpct_entry_strip(char *path);

/* What follows the last slash; the path itself without one. */
const char *hpct_entry_last_part(const char *path);

/* Whether a path is relative and each part of it a name, neither "." nor "..". */
bool hpct_entry_is_below(const char *path);

#endif
