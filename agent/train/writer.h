/* agent/train/writer.h - a thread that writes one checkpoint at a time, or this rank's part. */
#ifndef HPCT_AGENT_TRAIN_WRITER_H
#define HPCT_AGENT_TRAIN_WRITER_H

#include "agent/checkpoint/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Part and text, one of them or both. What it points to must stay until the writer is idle. */
typedef struct hpct_train_writer_job {
    int64_t step;
    const hpct_ckpt_store_tensor *tensors; /* [count], the part of rank `part`; NULL: none */
    size_t count;
    int part;
    const char *text; /* state.json: the checkpoint is completed; NULL: not by this job */
    const hpct_ckpt_store_file *files; /* [num_files], its parts; NULL: the one of this job */
    size_t num_files;
    bool best; /* the store keeps it until another one is */
} hpct_train_writer_job;

typedef struct hpct_train_writer_result {
    hpct_status status;
    const char *why;           /* of a failure; valid until the next job */
    hpct_ckpt_store_file file; /* the part */
    double seconds;
} hpct_train_writer_result;

typedef struct hpct_train_writer hpct_train_writer;

/* `dir` and `store` (for jobs with text; NULL: there are none) outlive the writer. */
hpct_status hpct_train_writer_open(hpct_train_writer **out, const char *dir,
                                   hpct_ckpt_store *store);
void hpct_train_writer_close(hpct_train_writer *writer); /* after its job; NULL is allowed */

void hpct_train_writer_begin(hpct_train_writer *writer,
                             const hpct_train_writer_job *job); /* it is idle */
bool hpct_train_writer_is_idle(hpct_train_writer *writer);

/* Without a timeout, as ending would lose the job; says on standard error what is waited for, once
 * it has been a while. */
void hpct_train_writer_await(hpct_train_writer *writer);

/* Of the last job; it is idle. */
hpct_train_writer_result hpct_train_writer_last(const hpct_train_writer *writer);

#endif
