/* spank/settings.h - the arguments of the plugin's line in plugstack.conf. Knows nothing of SPANK.
 */
#ifndef HPCT_SPANK_SETTINGS_H
#define HPCT_SPANK_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/cluster/ports.h"

#define HPCT_MAX_STAGE_SRC 32

typedef struct hpct_settings {
    char *tmpdir; /* the parent of the job directories */
    bool has_ports;
    hpct_port_range ports;
    bool on_by_default;
    uint64_t stage_max;                  /* bytes per step and node; 0: no bound but the disk's */
    char *stage_src[HPCT_MAX_STAGE_SRC]; /* allowed prefixes; none: every source */
    int num_stage_src;
    bool stage_follow; /* stage_links=follow: links out of a source stand for what they lead to */
    int last_try;      /* seconds that an epilog may spend on results that were not copied out */
    char *helper;      /* hpc-train-stage */
    char *gpu_helper;  /* hpc-train-gpus */
    bool verbose;      /* log=info */
} hpct_settings;

/* Reads `count` arguments of the form key=value. Unknown keys, keys given twice (stage_src may be)
 * and wrong values are HPCT_ERR_CONFIG, naming the argument. *out is freed with hpct_settings_free
 * in both cases; after a failure it holds the defaults for what was not read. */
hpct_status hpct_settings_read(int count, char *const *arguments, hpct_settings *out);
void hpct_settings_free(hpct_settings *settings);

#endif
