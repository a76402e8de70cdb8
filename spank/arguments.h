/* spank/arguments.h - scanner of the command lines of srun, sbatch and salloc, and of batch
 * scripts, which Slurm does not pass to plugins. */
#ifndef HPCT_SPANK_ARGUMENTS_H
#define HPCT_SPANK_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The words of this process's command line, program first, NULL-terminated, truncated to 64 KiB. If
 * unreadable: no words, two NULLs. */
char *const *hpct_spank_arguments_here(void);

/* Whether the first word is `program`, with or without a path. */
bool hpct_spank_arguments_call(char *const *arguments, const char *program);

/* One word of a command line. */
typedef struct hpct_spank_word {
    bool is_option;   /* false for "-" and "--", too */
    char letter;      /* of the short option that may take a value; '\0': none */
    const char *name; /* [size], of a long option, without dashes; NULL: none */
    size_t size;
    const char *value; /* attached to the option; NULL: none */
} hpct_spank_word;

/* `alone`: short options without value, which may precede another one in the same word. */
hpct_spank_word hpct_spank_word_scan(const char *text, const char *alone);

/* Whether it is -LETTER or --NAME. */
bool hpct_spank_word_is(const hpct_spank_word *word, char letter, const char *name);

/* NULL if the file is not a script. */
FILE *hpct_spank_script_open(const char *path);

/* The options of a #SBATCH line, with the blank before them; NULL for other lines. */
const char *hpct_spank_script_options(const char *line);

/* Slurm ignores #SBATCH lines after the first command. */
bool hpct_spank_script_is_command(const char *line);

#endif
