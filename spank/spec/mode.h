/* spank/spec/mode.h - staging modes: parsing and automatic choice. Used by the plugin and
 * hpc-train-stage; touches no file. */
#ifndef HPCT_SPANK_SPEC_MODE_H
#define HPCT_SPANK_SPEC_MODE_H

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

/* Parses "auto", "copy", "broadcast", "extract" (way chosen automatically), "extract,copy" or
 * "extract,broadcast". Returns HPCT_ERR_USAGE. */
hpct_status hpct_stage_mode_parse(const char *text, hpct_stage_mode *mode);

/* Facts about an entry for the choice. */
typedef struct hpct_stage_facts {
    int nodes;
    bool same; /* all nodes see the same source */
    bool extract;
    uint64_t bytes, entries;
} hpct_stage_facts;

/* HPCT_WAY_COPY or HPCT_WAY_BROADCAST; `why` receives the reason. */
hpct_stage_way hpct_stage_mode_choose(const hpct_stage_facts *facts, char *why, size_t size);

#endif
