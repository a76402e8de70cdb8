/* spank/arguments.h - the command line of this process, for what Slurm does not hand to a plugin.
 */
#ifndef HPCT_SPANK_ARGUMENTS_H
#define HPCT_SPANK_ARGUMENTS_H

/* The words of the command line, the first is the program; ended by NULL. One block, to be freed
 * with free; NULL when they cannot be read. Of more than 64 KiB only the beginning. */
char **hpct_arguments_here(void);

#endif
