/* agent/checkpoint/checkpoint.h - one checkpoint: opened, verified, read (see store.h). */
#ifndef HPCT_AGENT_CHECKPOINT_CHECKPOINT_H
#define HPCT_AGENT_CHECKPOINT_CHECKPOINT_H

#include "agent/checkpoint/store.h"

/* As hpct_ckpt_open, but every file is read and compared with the manifest before its content
 * is believed. HPCT_ERR_DATA names the first that differs. */
hpct_status hpct_ckpt_open_verified(hpct_ckpt **out, const char *folder);

/* Size and XXH3 of one file of a manifest. */
hpct_status hpct_ckpt_verify_file(const char *path, const hpct_ckpt_store_file *file);

#endif
