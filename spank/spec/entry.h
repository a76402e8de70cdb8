/* spank/spec/entry.h - an entry of --hpc-train-stage: SRC[:DST]. Used by the plugin, which
 * checks before queueing, and hpc-train-stage. Touches no file. */
#ifndef HPCT_SPANK_SPEC_ENTRY_H
#define HPCT_SPANK_SPEC_ENTRY_H

#include <hpctrain/status.h>
#include <stdbool.h>

/* hpc-train's folder in the job directory: config files, lock, incomplete copies. */
#define HPCT_SPEC_PRIVATE_FOLDER ".hpc-train"

typedef struct hpct_spec_stage_entry {
    char *src; /* as given, without trailing slashes */
    char *dst; /* below the job directory: relative, without "." and ".." */
} hpct_spec_stage_entry;

typedef struct hpct_spec_stage_list {
    hpct_spec_stage_entry *entries;
    int count;
} hpct_spec_stage_list;

/* Parses "SRC[:DST][,SRC[:DST]…]"; a backslash escapes comma, colon and backslash. DST defaults to
 * the last component of SRC. Returns HPCT_ERR_USAGE, with what to write instead, for an empty SRC
 * or shell syntax (hpct_spec_entry_check_shell), a DST outside the job directory or named like our
 * folder, and overlapping entries. Freed with hpct_spec_stage_list_free. */
hpct_status hpct_spec_stage_list_parse(const char *text, hpct_spec_stage_list *out);

/* Adds the single entry `text` (commas are literal), with the same checks. */
hpct_status hpct_spec_stage_list_add(hpct_spec_stage_list *list, const char *text);
void hpct_spec_stage_list_free(hpct_spec_stage_list *list);

/* HPCT_ERR_USAGE for shell syntax in a path: leading "~", a backquote, or "$" before a name, digit
 * or bracket. No shell expands it within an option or #SBATCH line. The message ends with
 * `instead`: what to write. Also for a trailing carriage return, from a file with CRLF lines. */
hpct_status hpct_spec_entry_check_shell(const char *path, const char *instead);

/* HPCT_ERR_USAGE if an entry split at its colon was a URL: SRC a scheme, DST begins with two
 * slashes. */
hpct_status hpct_spec_entry_check_address(const char *src, const char *dst);

/* Copies the two parts of SRC[:DST] up to an unescaped byte of `ends` (or the end), without
 * backslashes; *text is left there, *dst is NULL without a colon. Both are to be freed in any case.
 */
hpct_status hpct_spec_entry_split(const char **text, const char *ends, char **src, char **dst);

/* Removes trailing slashes; "/" stays. */
void hpct_spec_entry_strip(char *path);

/* The last component; the path itself without a slash. */
const char *hpct_spec_entry_last_part(const char *path);

/* Whether a path is `folder` or lies in it, by its name. */
bool hpct_spec_entry_is_within(const char *path, const char *folder);

/* Whether a path is relative and has no "." or "..". */
bool hpct_spec_entry_is_below(const char *path);

#endif
