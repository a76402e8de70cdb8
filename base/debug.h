/* base/debug.h - HPC_TRAIN_DEBUG: a comma-separated list of topics for which a rank prints debug
 * lines to standard error. For people; no program parses these lines. */
#ifndef HPCT_BASE_DEBUG_H
#define HPCT_BASE_DEBUG_H

#include <stdbool.h>

typedef enum hpct_debug_topic {
    HPCT_DEBUG_COMM, /* "comm": how ranks are connected, and each collective that is set up */
    HPCT_DEBUG_PLAN, /* "plan": nodes, fusions and offsets of each model that is built */
    HPCT_DEBUG_OPS,  /* "ops": the kernel that oneDNN chose for each operation */
} hpct_debug_topic;

/* Whether HPC_TRAIN_DEBUG contains the topic. The first call reports unknown words. */
bool hpct_debugs(hpct_debug_topic topic);

/* Prints a line "hpc-train: debug TOPIC: ..." if the topic is enabled. */
__attribute__((format(printf, 2, 3))) void hpct_debug(hpct_debug_topic topic, const char *format,
                                                      ...);

#endif
