/* agent/data/notes.h - remarks about the user's data, one per line: no errors, but perhaps
 * unexpected. */
#ifndef HPCT_AGENT_DATA_NOTES_H
#define HPCT_AGENT_DATA_NOTES_H

#include <hpctrain/status.h>

/* Adds a line to *notes, which is NULL or malloc'd. */
__attribute__((format(printf, 2, 3))) hpct_status hpct_data_note(char **notes, const char *format,
                                                                 ...);

#endif
