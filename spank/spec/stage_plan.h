/* spank/spec/stage_plan.h - what is decided about staging: whether the nodes connect, and so
 * need ports, how each source is staged, and whether it fits on the disk. Used by the plugin,
 * before ports are chosen, and by hpc-train-stage. Touches no file. */
#ifndef HPCT_SPANK_SPEC_STAGE_PLAN_H
#define HPCT_SPANK_SPEC_STAGE_PLAN_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum hpct_spec_stage_mode {
    HPCT_SPEC_STAGE_AUTO,
    HPCT_SPEC_STAGE_COPY,      /* each node reads the source */
    HPCT_SPEC_STAGE_BROADCAST, /* the first node reads it and sends it to the others */
    HPCT_SPEC_NUM_STAGE_MODES,
} hpct_spec_stage_mode;

/* The value of --hpc-train-stage-mode. */
typedef struct hpct_spec_stage_request {
    hpct_spec_stage_mode mode;
    bool extract; /* archives are unpacked */
} hpct_spec_stage_request;

/* Parses "auto", "copy", "broadcast", "extract" (mode chosen automatically), "extract,copy" or
 * "extract,broadcast". Returns HPCT_ERR_USAGE. */
hpct_status hpct_spec_stage_request_parse(const char *text, hpct_spec_stage_request *request);

typedef struct hpct_spec_stage_plan {
    hpct_spec_stage_request request;
    int nodes;
    bool connect; /* the nodes connect and follow one protocol; each needs a port for it */
} hpct_spec_stage_plan;

/* The plan of a step with `sources` sources. `trusted`: nodes can authenticate; if not, they
 * connect only if a broadcast was asked for, which then is an error. */
hpct_spec_stage_plan hpct_spec_stage_plan_make(hpct_spec_stage_request request, int sources,
                                               int nodes, bool trusted);

/* A source, as one node or all nodes see it. */
typedef struct hpct_spec_stage_view {
    bool staged;  /* an unchanged copy is there */
    bool shared;  /* all nodes see the same source */
    bool extract; /* an archive to be unpacked */
    uint64_t bytes, blocks, entries;
} hpct_spec_stage_view;

/* The mode of a source, from what all nodes see: HPCT_SPEC_STAGE_COPY, HPCT_SPEC_STAGE_BROADCAST,
 * or, if all have it, HPCT_SPEC_STAGE_AUTO. `why` receives the reason. */
hpct_spec_stage_mode hpct_spec_stage_plan_mode(const hpct_spec_stage_plan *plan,
                                               const hpct_spec_stage_view *view, char *why,
                                               size_t size);

/* What a node's disk needs for the sources that are not staged. */
typedef struct hpct_spec_stage_need {
    uint64_t bytes, blocks, entries;
    bool known; /* false: an archive is among them, whose content is counted while it is written */
} hpct_spec_stage_need;

void hpct_spec_stage_need_add(hpct_spec_stage_need *need, const hpct_spec_stage_view *view);

/* HPCT_ERR_CONFIG if more than `max` bytes are needed; 0: no limit. */
hpct_status hpct_spec_stage_need_check(const hpct_spec_stage_need *need, uint64_t max);

/* Limit for an archive's content: what is left of `max` and of `room` bytes when `used` are
 * written, at least 1. */
uint64_t hpct_spec_stage_limit(uint64_t max, uint64_t room, uint64_t used);

#endif
