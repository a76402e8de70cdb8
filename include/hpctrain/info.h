/* hpctrain/info.h - what was built in, and what is here. */
#ifndef HPCTRAIN_INFO_H
#define HPCTRAIN_INFO_H

#include <hpctrain/status.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
HPCT_API const char *hpct_version(void);

/* Prints versions of the libraries below, processor, processors by affinity, and the layout as this
 * process reads it. Opens nothing and waits for nobody. HPCT_ERR_CONFIG, after printing the rest,
 * when the layout cannot be read. */
HPCT_API hpct_status hpct_info_print(FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
