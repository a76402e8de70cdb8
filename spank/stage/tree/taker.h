/* spank/stage/tree/taker.h - consumer of an archive's items: the writer, or the packer of a
 * broadcast. Called from one thread in the archive's order; the first item is the root, a folder.
 * An error of a callback ends reading with its status. */
#ifndef HPCT_SPANK_STAGE_TREE_TAKER_H
#define HPCT_SPANK_STAGE_TREE_TAKER_H

#include <hpctrain/status.h>
#include <stddef.h>

#include "spank/stage/tree/item.h"
#include "spank/stage/tree/report.h"
#include "spank/stage/tree/writer.h"

typedef struct hpct_taker {
    void *context;
    hpct_status (*add)(void *context, const hpct_item *item); /* all but files */
    hpct_status (*whole)(void *context, const hpct_item *item, const void *content); /* a small
                                                                  file: HPCT_TAKER_SMALL at most */
    hpct_status (*begin)(void *context, const hpct_item *item); /* a larger file, then */
    hpct_status (*data)(void *context, const void *data, size_t size);
    hpct_status (*hole)(void *context, uint64_t size);
    hpct_status (*end)(void *context);  /* not called after an error */
    hpct_status (*done)(void *context); /* after the last item; may be NULL */
} hpct_taker;

#define HPCT_TAKER_SMALL (128u << 10)

/* Passes all items to a writer opened with `loose`: its own threads create files while the caller
 * reads on. Errors are returned by a later call, at the latest by `done`. */
typedef struct hpct_hands hpct_hands;
hpct_status hpct_hands_open(hpct_hands **hands, hpct_writer *writer, hpct_report *report,
                            hpct_taker *taker);
/* Ends the threads; without `done` before, files may be missing or incomplete. NULL is allowed. */
void hpct_hands_close(hpct_hands *hands);

#endif
