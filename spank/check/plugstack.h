/* spank/check/plugstack.h - finds the plugin's line in Slurm's plugstack.conf, as Slurm reads it.
 */
#ifndef HPCT_CHECK_PLUGSTACK_H
#define HPCT_CHECK_PLUGSTACK_H

#include <hpctrain/status.h>
#include <stdbool.h>

#define HPCT_PLUGSTACK_ARGUMENTS 64

typedef struct hpct_plugstack_line {
    char *file; /* where it is */
    int line;
    bool required;
    char *plugin;                              /* the path as written */
    char *arguments[HPCT_PLUGSTACK_ARGUMENTS]; /* [count] */
    int count;
} hpct_plugstack_line;

/* Looks for a line whose plugin's file is called `name`, in `path` and in what it includes.
 * HPCT_ERR_NO_INPUT when a file cannot be read, HPCT_ERR_CONFIG when there is no such line.
 * *out is freed with hpct_plugstack_line_free. */
hpct_status hpct_plugstack_find(const char *path, const char *name, hpct_plugstack_line *out);
void hpct_plugstack_line_free(hpct_plugstack_line *line);

#endif
