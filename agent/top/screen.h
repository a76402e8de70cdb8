/* agent/top/screen.h - the lines of hpc-train top. Knows no file, clock or terminal. */
#ifndef HPCT_AGENT_TOP_SCREEN_H
#define HPCT_AGENT_TOP_SCREEN_H

#include "agent/results/live_report.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct hpct_top_screen {
    int width, height; /* of the terminal; height 0: all ranks, no line is cut */
    bool utf8, colour;
    int64_t now;        /* seconds since 1970 */
    const char *remark; /* a last line; NULL: none */
} hpct_top_screen;

/* Without escape sequences except for colours. What comes from the file cannot send any: characters
 * that are not printable ASCII are shown as '?'. */
void hpct_top_screen_draw(FILE *out, const hpct_top_screen *screen,
                          const hpct_results_live_report *report);

#endif
