/* tests/unit/agent/checkpoint/folder.h - folders of checkpoints for tests: made, saved to, damaged,
 * removed. */
#ifndef HPCT_TESTS_UNIT_AGENT_CHECKPOINT_FOLDER_H
#define HPCT_TESTS_UNIT_AGENT_CHECKPOINT_FOLDER_H

#include "agent/checkpoint/store.h"
#include "tests/unit/unit.h"

/* A new folder, in memory where there is such a file system. */
void folder_make(char dir[64]);
void folder_remove(const char *dir);

/* Whether DIR/name exists. */
bool folder_has(const char *dir, const char *name);
/* Entries of DIR whose names contain `part`. */
int folder_count(const char *dir, const char *part);

char *folder_read(const char *dir, const char *name, size_t *size);
void folder_write(const char *dir, const char *name, const char *data, size_t size);

/* Writes two parts whose numbers follow from `value`: the whole tensor "weights/w" and halves of
 * "optimizer/m", and commits them with the state {"value": …}. */
hpct_status folder_save(hpct_ckpt_store *store, const char *dir, int64_t step, int value,
                        bool best);

/* The value that all of a checkpoint follows from; -1: its tensors disagree. */
int folder_value(hpct_ckpt *checkpoint);

/* Loads the newest; its value, or minus the status. The notes are in folder_notes, a line each. */
int folder_load(const char *path, int64_t *step);
extern char folder_notes[8192];
void folder_note(void *context, const char *text);

#endif
