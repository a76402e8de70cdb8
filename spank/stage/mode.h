/* spank/stage/mode.h - how things are staged: what a user may ask for, and what is chosen when he
 * leaves it open. Shared by the plugin and hpc-train-stage; touches no file. */
#ifndef HPCT_STAGE_MODE_H
#define HPCT_STAGE_MODE_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hpct_stage_way {
    HPCT_WAY_AUTO,
    HPCT_WAY_COPY,      /* each node reads the source */
    HPCT_WAY_BROADCAST, /* the first node reads it and sends it to the others */
} hpct_stage_way;

typedef struct hpct_stage_mode {
    hpct_stage_way way;
    bool extract; /* archives are unpacked */
} hpct_stage_mode;

/* "auto", "copy", "broadcast", "extract" (in the way that is best), "extract,copy" or
 * "extract,broadcast". HPCT_ERR_USAGE. */
hpct_status hpct_stage_mode_parse(const char *text, hpct_stage_mode *mode);

/* What is known of an entry when its way is chosen. */
typedef struct hpct_stage_facts {
    int nodes;
    bool same; /* all nodes see the same source */
    bool extract;
    uint64_t bytes, entries;
} hpct_stage_facts;

/* HPCT_WAY_COPY or HPCT_WAY_BROADCAST; `why` is filled with the reason, for people. */
hpct_stage_way hpct_stage_mode_choose(const hpct_stage_facts *facts, char *why, size_t size);

#endif
