/* tests/apart/noting.h - recordings of the device behind the wall: calls that are noted, to be made
 * when the recording is replayed. */
#ifndef HPCT_TESTS_APART_NOTING_H
#define HPCT_TESTS_APART_NOTING_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

#define APART_ARGUMENT 96 /* bytes at most */

/* Whether the call is one of a recording now, not to be made. */
bool apart_note(hpct_status (*make)(const void *argument), const void *argument, size_t bytes);
bool apart_is_noting(void);

/* The how-manieth recording of this process is being replayed; 0: none. */
int apart_replaying(void);

#endif
