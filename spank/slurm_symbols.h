/* spank/slurm_symbols.h - functions and variables of Slurm's library that the plugin takes as weak
 * symbols, and what goes without each. slurmd says which are missing when it loads the plugin;
 * hpc-train-check says it too. */
#ifndef HPCT_SPANK_SLURM_SYMBOLS_H
#define HPCT_SPANK_SLURM_SYMBOLS_H

typedef struct hpct_slurm_symbol {
    const char *name;
    const char *without; /* what happens where it is missing */
} hpct_slurm_symbol;

extern const hpct_slurm_symbol hpct_slurm_symbols[]; /* ends with a NULL name */

#endif
