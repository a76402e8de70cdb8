/* agent/results/event_files.h - the event files of a run, DIR/train/events.out.tfevents.… and
 * DIR/validation/…: their names, and what becomes of an earlier run's. Independent of what is in
 * them.
 *
 * Each start of a run writes new files, whose names come after all that are there: readers take the
 * files of a folder in this order. A run that does not continue what is there moves it to
 * DIR/earlier-events/, once its first good epoch has ended; otherwise one curve would be drawn of
 * both. Without a good epoch its own records go to DIR/diverged-events/. */
#ifndef HPCT_AGENT_RESULTS_EVENT_FILES_H
#define HPCT_AGENT_RESULTS_EVENT_FILES_H

#include "base/protobuf.h"

#include <hpctrain/status.h>
#include <stdbool.h>

typedef struct hpct_results_event_files hpct_results_event_files;

enum { HPCT_RESULTS_EVENTS_TRAIN, HPCT_RESULTS_EVENTS_VALIDATION, HPCT_RESULTS_EVENTS_FILES };

/* Creates the folders, and the files unless an earlier run's are there. `num`: 1 without
 * validation. HPCT_ERR_IO, naming the file. */
hpct_status hpct_results_event_files_open(hpct_results_event_files **out, const char *folder,
                                          int num, bool continues);

/* Appends records, in memory. */
void hpct_results_event_files_add(hpct_results_event_files *files, int which,
                                  const hpct_protobuf *records);

/* Writes what was added. `epoch`: one has ended; `good`: and training has not diverged. HPCT_ERR_IO
 * if records are still missing: it is tried again with the next. */
hpct_status hpct_results_event_files_flush(hpct_results_event_files *files, bool epoch, bool good);

/* For a checkpoint, by which the run may be continued: moves an earlier run's files away. */
void hpct_results_event_files_mark(hpct_results_event_files *files);

/* Closes; HPCT_ERR_IO if not everything was written, saying where it is instead. NULL is allowed.
 */
hpct_status hpct_results_event_files_close(hpct_results_event_files *files);

#endif
