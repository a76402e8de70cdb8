/* spank/settings.h - arguments of the plugin in plugstack.conf. Independent of SPANK. */
#ifndef HPCT_SPANK_SETTINGS_H
#define HPCT_SPANK_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cluster/ports.h"
#include "spank/spec/network.h"

#define HPCT_SPANK_MAX_STAGE_SRC 32

typedef struct hpct_spank_settings {
    char *tmpdir; /* parent of the job directories */
    bool has_ports;
    hpct_cluster_port_range ports;
    bool on_by_default;
    uint64_t stage_max; /* bytes per step and node; 0: limited only by the disk */
    char *stage_src[HPCT_SPANK_MAX_STAGE_SRC]; /* allowed prefixes; none: all sources */
    int num_stage_src;
    bool stage_follow; /* stage_links=follow: copy the targets of links that leave a source */
    int wait;          /* seconds that srun waits for nodes to prepare their tasks */
    int last_try;      /* seconds for an epilog to copy remaining results */
    char *helper;      /* hpc-train-stage */
    char *gpu_helper;  /* hpc-train-gpus */
    bool verbose;      /* log=info */
    hpct_spec_network network;
} hpct_spank_settings;

/* Parses `count` arguments key=value. Unknown or repeated keys (except stage_src) and wrong values
 * are HPCT_ERR_CONFIG, naming the argument. *out is freed with hpct_spank_settings_free in both
 * cases; on error it holds defaults for what was not read. */
hpct_status hpct_spank_settings_read(int count, char *const *arguments, hpct_spank_settings *out);
void hpct_spank_settings_free(hpct_spank_settings *settings);

#endif
