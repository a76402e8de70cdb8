/* tests/gpu_without/module/noting.h - recordings of the device behind the wall: calls that are
 * noted, to be made when the recording is replayed. */
#ifndef HPCT_TESTS_GPU_WITHOUT_MODULE_NOTING_H
#define HPCT_TESTS_GPU_WITHOUT_MODULE_NOTING_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>

#define MODULE_ARGUMENT 96 /* bytes at most */

/* Whether the call is one of a recording now, not to be made. */
bool module_note(hpct_status (*make)(const void *argument), const void *argument, size_t bytes);
bool module_is_noting(void);

/* The how-manieth recording of this process is being replayed; 0: none. */
int module_replaying(void);

#endif
