/* tests/unit/spank/place.h - a folder for job directories, as a test of their making and removal
 * needs it. As root the job's user is an unprivileged one; as anybody else, he himself. */
#ifndef HPCT_TESTS_UNIT_SPANK_PLACE_H
#define HPCT_TESTS_UNIT_SPANK_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

extern char place_base[64], place_parent[128]; /* the latter is BASE/jobs, not made yet */
extern uid_t place_uid;
extern gid_t place_gid;

int place_setup(void **state);
int place_teardown(void **state);

/* printf into one of a few buffers, which later calls use again. */
char *place_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fails the test when the command does. */
void place_shell(const char *command);
bool place_exists(const char *path);

/* A namespace of its own for mounts, whose end unmounts them; skips the test where it cannot be. */
void place_own_mounts(void);

/* HPC_TRAIN_LONG=1 asks for the larger number. */
int place_times(int usually, int long_run);

#endif
