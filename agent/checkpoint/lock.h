/* agent/checkpoint/lock.h - the lock of a folder: DIR/lock, made with link(), which is atomic on
 * NFS too. Its holder renews the file's time; one that is gone loses it. All times are compared by
 * the file server's clock. */
#ifndef HPCT_AGENT_CHECKPOINT_LOCK_H
#define HPCT_AGENT_CHECKPOINT_LOCK_H

#include "agent/checkpoint/store.h"

#include <hpctrain/status.h>

#define HPCT_CKPT_LOCK_FILE "lock"

typedef struct hpct_ckpt_lock hpct_ckpt_lock;

/* Seconds: how often the holder renews it, after how long without that it counts as gone, and how
 * long to wait for a holder on another machine. */
typedef struct hpct_ckpt_lock_times {
    double renew, gone, wait;
} hpct_ckpt_lock_times;

extern const hpct_ckpt_lock_times hpct_ckpt_lock_usual;

/* Takes the lock of `dir` (not copied) and starts a thread that renews it. A holder on this machine
 * whose process has ended is replaced at once; one on another machine if it has not renewed the
 * lock for `gone`, or does not for `wait`. Returns HPCT_ERR_CONFIG, naming the holder, if it lives.
 */
hpct_status hpct_ckpt_lock_take(hpct_ckpt_lock **out, const char *dir,
                                const hpct_ckpt_lock_times *times, hpct_ckpt_store_note *note,
                                void *context);

/* HPCT_ERR_CONFIG, naming the other run, if it is not this process' any more. A lock that was
 * removed is made again. */
hpct_status hpct_ckpt_lock_check(hpct_ckpt_lock *lock);

/* Removes it if it is still this process'. NULL is allowed. */
void hpct_ckpt_lock_release(hpct_ckpt_lock *lock);

#endif
