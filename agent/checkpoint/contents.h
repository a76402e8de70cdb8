/* agent/checkpoint/contents.h - what a folder of checkpoints holds, by names and manifests. */
#ifndef HPCT_AGENT_CHECKPOINT_CONTENTS_H
#define HPCT_AGENT_CHECKPOINT_CONTENTS_H

#include "agent/checkpoint/manifest.h"

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_CKPT_CONTENTS_NAME 16 /* "step-0000000100" and the final zero */

typedef enum hpct_ckpt_contents_kind {
    HPCT_CKPT_CONTENTS_COMPLETE,
    HPCT_CKPT_CONTENTS_DAMAGED,    /* it has a manifest that is not valid */
    HPCT_CKPT_CONTENTS_INCOMPLETE, /* it has none */
} hpct_ckpt_contents_kind;

typedef struct hpct_ckpt_contents_entry {
    char name[HPCT_CKPT_CONTENTS_NAME];
    char *folder; /* its path */
    int64_t step;
    hpct_ckpt_contents_kind kind;
    hpct_ckpt_manifest manifest; /* of a complete one */
    char *reason;                /* what is wrong with a damaged one */
    bool best;                   /* best.json names it */
} hpct_ckpt_contents_entry;

typedef struct hpct_ckpt_contents {
    hpct_ckpt_contents_entry *entries; /* complete ones, newest first, then the others by step */
    size_t count, room;
    char *best_fault; /* what is wrong with best.json; NULL: nothing, or it does not exist */
} hpct_ckpt_contents;

/* HPCT_ERR_NO_INPUT if there is no such folder. The caller frees *out. */
hpct_status hpct_ckpt_contents_read(hpct_ckpt_contents *out, const char *dir);
void hpct_ckpt_contents_free(hpct_ckpt_contents *contents);

/* Whether a path is one checkpoint's folder: it has a manifest, or such a name. */
bool hpct_ckpt_contents_is_one(const char *path);
/* Whether there is a manifest in it, valid or not. */
bool hpct_ckpt_contents_has_manifest(const char *folder);

/* Creates DIR/step-… unless it exists; *folder is its path, which the caller frees. */
hpct_status hpct_ckpt_contents_make(char **folder, const char *dir, int64_t step);

/* Reads the manifest of one checkpoint. HPCT_ERR_NO_INPUT: it has none. */
hpct_status hpct_ckpt_contents_manifest(hpct_ckpt_manifest *out, const char *folder);

/* Whether all files of a complete checkpoint exist with the size that they had. */
bool hpct_ckpt_contents_is_whole(const hpct_ckpt_contents_entry *entry);

#endif
