/* hpctrain/top.h - shows a run under way. */
#ifndef HPCTRAIN_TOP_H
#define HPCTRAIN_TOP_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hpct_top_options {
    const char *run; /* hpct_fit_options.log_dir of the run, or the status.json in it; default: the
                        working folder */
    const char *job; /* instead of run: number of a Slurm job; the file is looked for in its working
                        folder and up to two levels below */
    bool once;       /* print once, also on a terminal */
} hpct_top_options;

/* Reads the run's status.json only; the run need not be on this machine. On a terminal redraws each
 * second until q or SIGINT; otherwise prints once. Returns HPCT_ERR_NO_INPUT if there is no such
 * file, HPCT_ERR_DATA if it is another one. */
HPCT_API hpct_status hpct_top(const hpct_top_options *options, FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
