/* spank/check/plugstack.h - finds the plugin's line in Slurm's plugstack.conf, parsing it as Slurm
 * does. */
#ifndef HPCT_SPANK_CHECK_PLUGSTACK_H
#define HPCT_SPANK_CHECK_PLUGSTACK_H

#include <hpctrain/status.h>
#include <stdbool.h>

#define HPCT_CHECK_PLUGSTACK_ARGUMENTS 64

typedef struct hpct_check_plugstack_line {
    char *file; /* file that contains the line */
    int line;
    bool required;
    char *plugin;                                    /* the path as written */
    char *arguments[HPCT_CHECK_PLUGSTACK_ARGUMENTS]; /* [count] */
    int count;
} hpct_check_plugstack_line;

/* Finds the line of the plugin with file name `name` in `path` and its includes. Returns
 * HPCT_ERR_NO_INPUT if a file cannot be read, HPCT_ERR_CONFIG if there is no such line. *out is
 * freed with hpct_check_plugstack_line_free. */
hpct_status hpct_check_plugstack_find(const char *path, const char *name,
                                      hpct_check_plugstack_line *out);
void hpct_check_plugstack_line_free(hpct_check_plugstack_line *line);

#endif
