/* agent/checkpoint/lock.h - the lock of a folder: DIR/lock, made with link(), which is atomic on
 * NFS too. Its holder renews the file's time; one that is gone loses it. All times are compared by
 * the file server's clock. */
#ifndef HPCT_AGENT_CHECKPOINT_LOCK_H
#define HPCT_AGENT_CHECKPOINT_LOCK_H

#include "agent/checkpoint/store.h"

#include <hpctrain/status.h>

#define HPCT_LOCK_FILE "lock"

typedef struct hpct_lock hpct_lock;

/* Seconds: how often the holder renews it, after how long without that it counts as gone, and how
 * long to wait for a holder on another machine. */
typedef struct hpct_lock_times {
    double renew, gone, wait;
} hpct_lock_times;

extern const hpct_lock_times hpct_lock_usual;

/* Takes the lock of `dir` (not copied) and starts a thread that renews it. A holder on this machine
 * whose process has ended is replaced at once; one on another machine if it has not renewed the
 * lock for `gone`, or does not for `wait`. Returns HPCT_ERR_CONFIG, naming the holder, if it lives.
 */
hpct_status hpct_lock_take(hpct_lock **out, const char *dir, const hpct_lock_times *times,
                           hpct_store_note *note, void *context);

/* HPCT_ERR_CONFIG, naming the other run, if it is not this process' any more. A lock that was
 * removed is made again. */
hpct_status hpct_lock_check(hpct_lock *lock);

/* Removes it if it is still this process'. NULL is allowed. */
void hpct_lock_release(hpct_lock *lock);

#endif
