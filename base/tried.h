/* base/tried.h - outputs whose names were tried before the first step: what another program writes
 * there afterwards is not replaced. `target` is where the links of `path` lead. Thread-safe. */
#ifndef HPCT_BASE_TRIED_H
#define HPCT_BASE_TRIED_H

#include <hpctrain/status.h>
#include <stdbool.h>

/* Notes what is there now: tried, or written by this process. `add` false: no effect on a name that
 * was not tried. */
hpct_status hpct_tried_note(const char *path, const char *target, bool add);

/* HPCT_ERR_IO, naming `path`, if there is a regular file which is not the noted one, or a link
 * leads elsewhere now. */
hpct_status hpct_tried_check(const char *path, const char *target);

#endif
