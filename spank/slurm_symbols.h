/* spank/slurm_symbols.h - functions and variables of Slurm's library used as weak symbols, and the
 * consequence if one is missing. Reported by slurmd when it loads the plugin, and by
 * hpc-train-check. */
#ifndef HPCT_SPANK_SLURM_SYMBOLS_H
#define HPCT_SPANK_SLURM_SYMBOLS_H

typedef struct hpct_slurm_symbol {
    const char *name;
    const char *without; /* consequence if missing */
} hpct_slurm_symbol;

extern const hpct_slurm_symbol hpct_slurm_symbols[]; /* ended by an entry with a NULL name */

#endif
