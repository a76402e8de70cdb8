/* tests/gpu_without/module/wall.h - memory that the process can reach between wall_open and
 * wall_close alone, and copies over the wall that lag behind: what is fetched comes no sooner than
 * it is waited for, and what was sent has to stay as it is until then, or the process ends. */
#ifndef HPCT_TESTS_GPU_WITHOUT_MODULE_WALL_H
#define HPCT_TESTS_GPU_WITHOUT_MODULE_WALL_H

#include "nn/backend/backend.h"

#define WALL_DEVICES 4

/* A thread uses one device, 0 until it enters another. */
void wall_enter(int device);
int wall_number(void);

hpct_status wall_make(void);       /* of the thread's; once, then nothing */
void wall_free_host(void *memory); /* ends all copies before */
void *wall_allocate(size_t bytes);
void wall_release(void *memory);
size_t wall_left(size_t *all);
bool wall_has(const void *memory); /* any of them */

/* An operation may speak with others meanwhile: the wall is closed when all who opened it have. */
void wall_open(void);
hpct_status wall_close(hpct_status status); /* returns it */

/* HPC_TRAIN_TEST_ACCOUNT: a file that gets a line at the end of the process: bytes sent, waits. */
hpct_status wall_send(void *memory, const void *host, size_t bytes);
/* What was sent beside is there from `take` on; a second time only after `taken`. */
hpct_status wall_send_beside(void *memory, const void *host, size_t bytes);
hpct_status wall_take(void);
hpct_status wall_taken(void);
hpct_status wall_fetch(void *host, const void *memory, size_t bytes);
hpct_status wall_wait(void);
hpct_status wall_mark(hpct_mark mark);
hpct_status wall_await(hpct_mark mark);
hpct_status wall_to_host(void *host, const void *memory, size_t bytes);
hpct_status wall_from_host(void *memory, const void *host, size_t bytes);

#endif
