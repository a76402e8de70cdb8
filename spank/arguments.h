/* spank/arguments.h - this process's command line, which Slurm does not pass to plugins. */
#ifndef HPCT_SPANK_ARGUMENTS_H
#define HPCT_SPANK_ARGUMENTS_H

/* The words of the command line, program first, NULL-terminated, in one allocation that the caller
 * frees; NULL if unreadable. Truncated to 64 KiB. */
char **hpct_arguments_here(void);

#endif
