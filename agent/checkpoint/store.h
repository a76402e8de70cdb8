/* agent/checkpoint/store.h - checkpoints in a folder. Independent of models, ranks and training.
 *
 * DIR/lock                          the run that may commit and remove
 * DIR/best.json                     the checkpoint to keep beside the newest
 * DIR/step-0000000100/part-….safetensors, state.json, manifest.json
 *
 * A checkpoint is complete once its manifest is there: step, sequence, and name, bytes and
 * XXH3-128 of each file. The newest is the one committed last (the highest sequence): a run that
 * goes on from an older one may commit smaller steps. Every file is written under a temporary name,
 * synced and renamed; nothing that is complete is removed before the next one is. Checksums are
 * against damage, not forgery. */
#ifndef HPCT_AGENT_CHECKPOINT_STORE_H
#define HPCT_AGENT_CHECKPOINT_STORE_H

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_CKPT_STORE_MAX_RANK 8
#define HPCT_CKPT_STORE_MAX_PARTS 65536
#define HPCT_CKPT_STORE_MAX_STEP INT64_C(9999999999)
#define HPCT_CKPT_STORE_MAX_SEQUENCE INT64_C(1000000000000000)
#define HPCT_CKPT_STORE_NAME 64 /* of a file, with the final zero */

typedef enum hpct_ckpt_store_type {
    HPCT_CKPT_STORE_F32,
    HPCT_CKPT_STORE_F64,
    HPCT_CKPT_STORE_I64,
    HPCT_CKPT_STORE_U64,
    HPCT_CKPT_STORE_U8,
} hpct_ckpt_store_type;

/* A tensor, or a slice of one along dimension 0: rows [begin, begin + shape[0]) of `of`. */
typedef struct hpct_ckpt_store_tensor {
    const char *name;
    hpct_ckpt_store_type type;
    int rank;
    int64_t shape[HPCT_CKPT_STORE_MAX_RANK];
    int64_t begin, of; /* of 0: the whole tensor */
    const void *data;  /* for writing; row-major */
} hpct_ckpt_store_tensor;

/* What the manifest needs of a file. Has no pointers: ranks may send it as bytes. */
typedef struct hpct_ckpt_store_file {
    char name[HPCT_CKPT_STORE_NAME];
    uint64_t bytes;
    uint64_t hash[2]; /* XXH3-128: high, low */
} hpct_ckpt_store_file;

/* Receives what is worth a line: a wait for another run's lock, a damaged checkpoint, old ones that
 * cannot be removed. Called by the thread that opens, loads or commits; `context` of
 * hpct_ckpt_store_open lives until hpct_ckpt_store_close. */
typedef void hpct_ckpt_store_note(void *context, const char *text);

/* ---- writing ---- */

typedef struct hpct_ckpt_store hpct_ckpt_store;

/* Makes DIR and takes its lock, then removes what dead runs left incomplete: no rank may write
 * parts before this returns. `keep` (at least 1): complete checkpoints that stay. A thread renews
 * the lock every 30 s. Returns HPCT_ERR_CONFIG, naming job, host and process, if another run holds
 * the lock; waits up to 150 s, after a note, for a run on another host to show that it lives. */
hpct_status hpct_ckpt_store_open(hpct_ckpt_store **out, const char *dir, int keep,
                                 hpct_ckpt_store_note *note, void *context);

/* Releases the lock if it is still this run's. NULL is allowed. */
void hpct_ckpt_store_close(hpct_ckpt_store *store);

/* Writes one part of the checkpoint of `step`: any process, without the lock. `part` is its number
 * from 0 on, of one writer each. The caller brings *written to the process that commits. Returns
 * HPCT_ERR_IO, or HPCT_ERR_USAGE for wrong names, shapes or numbers. */
hpct_status hpct_ckpt_store_write_part(const char *dir, int64_t step, int part,
                                       const hpct_ckpt_store_tensor *tensors, size_t count,
                                       hpct_ckpt_store_file *written);

/* Completes the checkpoint of `step` from its parts and the JSON text `state`, then removes older
 * ones, and incomplete ones of smaller steps. `best`: keep it until another one is. An earlier
 * checkpoint of this step is replaced at once. Returns HPCT_ERR_IO if a part is not there, or
 * HPCT_ERR_CONFIG if another run has taken over the lock; then earlier checkpoints are as before.
 */
hpct_status hpct_ckpt_store_commit(hpct_ckpt_store *store, int64_t step, const char *state,
                                   const hpct_ckpt_store_file *files, size_t count, bool best);

/* HPCT_ERR_CONFIG if another run has taken the folder. */
hpct_status hpct_ckpt_store_check(hpct_ckpt_store *store);

/* ---- reading ---- */

typedef struct hpct_ckpt hpct_ckpt;

/* Loads the newest complete checkpoint of a folder, or, if `path` is one checkpoint's folder, that
 * one. All of it is read and verified; each damaged one is noted and the one before it taken. The
 * caller frees *out. Returns HPCT_ERR_NO_INPUT if there is none, HPCT_ERR_DATA, naming all, if all
 * are damaged. Needs no lock. */
hpct_status hpct_ckpt_store_load(hpct_ckpt **out, const char *path, hpct_ckpt_store_note *note,
                                 void *context);

/* The same for one checkpoint's folder that another rank has loaded: a part is verified when it is
 * first read from. */
hpct_status hpct_ckpt_open(hpct_ckpt **out, const char *folder);
void hpct_ckpt_free(hpct_ckpt *checkpoint); /* NULL is allowed */

const char *hpct_ckpt_folder(const hpct_ckpt *checkpoint); /* for hpct_ckpt_open */
const char *hpct_ckpt_state(const hpct_ckpt *checkpoint);  /* JSON text */
int64_t hpct_ckpt_step(const hpct_ckpt *checkpoint);

/* The tensors, joined from slices (`of` and `data` are 0), in the order of their names. */
size_t hpct_ckpt_count(const hpct_ckpt *checkpoint);
void hpct_ckpt_tensor(const hpct_ckpt *checkpoint, size_t index, hpct_ckpt_store_tensor *out);
/* Whether there is a tensor of this name; *out (may be NULL) describes it. */
bool hpct_ckpt_find(const hpct_ckpt *checkpoint, const char *name, hpct_ckpt_store_tensor *out);

/* Reads a tensor, or the rows that `tensor` describes as a slice, however it was sliced when
 * written. Returns HPCT_ERR_DATA if it is missing, damaged, or of another type or shape. */
hpct_status hpct_ckpt_read(hpct_ckpt *checkpoint, const hpct_ckpt_store_tensor *tensor, void *data);

#endif
