/* agent/report/png.h - SVG to PNG by librsvg, which is loaded when it is needed. */
#ifndef HPCT_AGENT_REPORT_PNG_H
#define HPCT_AGENT_REPORT_PNG_H

#include <hpctrain/status.h>
#include <stdio.h>

/* Returns HPCT_ERR_CONFIG if this build or this machine has no librsvg. */
hpct_status hpct_report_png_check(void);
/* Draws it at twice its size. */
hpct_status hpct_report_write_png(FILE *out, const char *svg, size_t size);

#endif
