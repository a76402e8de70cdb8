/* spank/stage/taker.h - who takes the items of an archive as they come: the writer, or what packs
 * them for a broadcast. Calls come from one thread, in the archive's order; the first is the root,
 * a folder. A call that fails ends the reading, with its status. */
#ifndef HPCT_STAGE_TAKER_H
#define HPCT_STAGE_TAKER_H

#include <hpctrain/status.h>
#include <stddef.h>

#include "spank/stage/item.h"
#include "spank/stage/report.h"
#include "spank/stage/writer.h"

typedef struct hpct_taker {
    void *context;
    hpct_status (*add)(void *context, const hpct_item *item); /* all but files */
    hpct_status (*whole)(void *context, const hpct_item *item, const void *content); /* a small
                                                                  file: HPCT_TAKER_SMALL at most */
    hpct_status (*begin)(void *context, const hpct_item *item); /* a larger file; then */
    hpct_status (*data)(void *context, const void *data, size_t size);
    hpct_status (*hole)(void *context, uint64_t size);
    hpct_status (*end)(void *context);  /* which is not called after a failure */
    hpct_status (*done)(void *context); /* after the last item; NULL: not wanted */
} hpct_taker;

#define HPCT_TAKER_SMALL (128u << 10)

/* Gives everything to a writer, opened with `loose`: threads of its own make the files, while the
 * caller goes on reading. What fails there is told by a later call, at the latest by `done`. */
typedef struct hpct_hands hpct_hands;
hpct_status hpct_hands_open(hpct_hands **hands, hpct_writer *writer, hpct_report *report,
                            hpct_taker *taker);
/* Ends the threads; without `done` before, files may be missing or unfinished. NULL is fine. */
void hpct_hands_close(hpct_hands *hands);

#endif
