/* hpctrain/info.h - versions, hardware and layout. */
#ifndef HPCTRAIN_INFO_H
#define HPCTRAIN_INFO_H

#include <hpctrain/status.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version, "0.1.0". Static storage. */
HPCT_API const char *hpct_version(void);

/* Prints library versions, processor, CPU affinity, GPUs, and the layout as this process reads it.
 * Does not connect or block. Returns HPCT_ERR_CONFIG, after printing the rest, if the layout cannot
 * be read. */
HPCT_API hpct_status hpct_info_print(FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
