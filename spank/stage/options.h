/* spank/stage/options.h - options of hpc-train-stage: a table of what each sets. */
#ifndef HPCT_SPANK_STAGE_OPTIONS_H
#define HPCT_SPANK_STAGE_OPTIONS_H

#include <hpctrain/status.h>

typedef enum hpct_stage_option_kind {
    HPCT_STAGE_OPTION_PRINT,   /* no value: prints `text`, and the program ends */
    HPCT_STAGE_OPTION_FLAG,    /* no value: `sets` is a bool * */
    HPCT_STAGE_OPTION_TEXT,    /* const char ** */
    HPCT_STAGE_OPTION_NUMBER,  /* long *, from `low` to `high` */
    HPCT_STAGE_OPTION_SECONDS, /* double * */
    HPCT_STAGE_OPTION_BYTES,   /* uint64_t *; `text` is an example */
    HPCT_STAGE_OPTION_CALL,    /* `call` is called with `sets` and the value; it may be repeated */
} hpct_stage_option_kind;

typedef struct hpct_stage_option {
    const char *name; /* without dashes; NULL ends a table */
    hpct_stage_option_kind kind;
    void *sets;
    const char *text;
    long low, high;
    hpct_status (*call)(void *context, char *value);
    char letter; /* the short option; '\0': none */
} hpct_stage_option;

#define HPCT_STAGE_OPTIONS_MOST 32 /* of a table */

/* Reads the options up to argv[optind], which is the first operand. Returns -1 to continue, else
 * the exit status after what was to be printed. An error names the nearest option; `help` is the
 * command that lists all. */
int hpct_stage_options_read(int argc, char **argv, const hpct_stage_option *options,
                            const char *help);

/* Prints the last error; returns the exit status. */
int hpct_stage_options_fail(hpct_status status);

#endif
