/* agent/checkpoint/manifest.h - manifest.json, which completes a checkpoint, and best.json: their
 * texts. Independent of the file system; what is read is untrusted.
 *
 *   {"format": 1, "step": 100, "sequence": 7, "time": 1790000000, "state": "state.json",
 *    "files": [{"name": "state.json", "bytes": 20, "xxh3": "32 digits"}, …], "check": "32 digits"}
 *
 * "check" is XXH3-128 of the rest, as compact JSON with sorted keys. best.json has format, step,
 * sequence and check. */
#ifndef HPCT_AGENT_CHECKPOINT_MANIFEST_H
#define HPCT_AGENT_CHECKPOINT_MANIFEST_H

#include "agent/checkpoint/store.h"

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_CKPT_MANIFEST "manifest.json"
#define HPCT_CKPT_MANIFEST_BEST "best.json"
#define HPCT_CKPT_MANIFEST_MAX_BYTES ((size_t) 16 << 20)

typedef struct hpct_ckpt_manifest {
    int64_t step, sequence;
    int64_t time;                /* of the commit, seconds since 1970; to be shown only */
    hpct_ckpt_store_file *files; /* sorted by name; the state is one of them */
    size_t count, state;         /* state: index */
} hpct_ckpt_manifest;

/* Whether a name may be that of a checkpoint's file: letters, digits, '.', '-' and '_', the first
 * one no '.', at most 63 of them, and not the manifest's. */
bool hpct_ckpt_manifest_name_ok(const char *name);

/* HPCT_ERR_DATA if anything is missing, unknown, out of range, or the check differs. The caller
 * frees *out. */
hpct_status hpct_ckpt_manifest_parse(hpct_ckpt_manifest *out, const char *text, size_t length);
void hpct_ckpt_manifest_free(hpct_ckpt_manifest *manifest); /* a zeroed one is allowed */

/* The caller frees *out. HPCT_ERR_USAGE if a name occurs twice or may not be a file's. Sorts the
 * files. */
hpct_status hpct_ckpt_manifest_format(char **out, hpct_ckpt_manifest *manifest);

/* best.json. */
hpct_status hpct_ckpt_manifest_parse_best(int64_t *step, int64_t *sequence, const char *text,
                                          size_t length);
hpct_status hpct_ckpt_manifest_format_best(char **out, int64_t step, int64_t sequence);

#endif
