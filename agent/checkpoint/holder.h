/* agent/checkpoint/holder.h - who holds the lock of a folder: its JSON, and whether that process
 * still lives as far as this machine can tell. */
#ifndef HPCT_AGENT_CHECKPOINT_HOLDER_H
#define HPCT_AGENT_CHECKPOINT_HOLDER_H

#include "agent/checkpoint/disk.h"

#include <hpctrain/status.h>
#include <stddef.h>
#include <stdint.h>

#define HPCT_CKPT_HOLDER_MAX_BYTES 4096

typedef struct hpct_ckpt_holder {
    char job[32];               /* SLURM_JOB_ID; "": none */
    char cluster[64];           /* numbers of jobs are a cluster's own */
    char launch[96];            /* of `hpc-train launch`; "": none */
    int64_t requeues, restarts; /* of that job, and by that launch */
    char host[256];
    int64_t pid;
    int64_t started;    /* clock ticks after boot: tells apart processes with the same id */
    char boot[64];      /* of the kernel, a new one for each boot */
    char processes[64]; /* the PID namespace: ids of others mean other processes */
    char since[32];     /* for messages */
    char token[HPCT_CKPT_DISK_TOKEN];
} hpct_ckpt_holder;

typedef enum hpct_ckpt_holder_life {
    HPCT_CKPT_HOLDER_LIVES,
    HPCT_CKPT_HOLDER_ENDED,
    HPCT_CKPT_HOLDER_UNKNOWN, /* on another machine, or hidden from this user */
} hpct_ckpt_holder_life;

/* This process, with a new token. */
void hpct_ckpt_holder_self(hpct_ckpt_holder *out);

/* The caller frees *out. */
hpct_status hpct_ckpt_holder_format(char **out, const hpct_ckpt_holder *holder);

/* A text of another form, such as half of one, gives a holder of whom nothing is known. */
void hpct_ckpt_holder_parse(hpct_ckpt_holder *out, const char *text, size_t length);

/* A job that was requeued, and a step that was started again, have ended before: also where this
 * machine cannot tell. A process that goes on nevertheless, on a node that is cut off, finds the
 * lock to be another one's before it completes a checkpoint. */
hpct_ckpt_holder_life hpct_ckpt_holder_look(const hpct_ckpt_holder *holder);

/* "job 7 on host n1 (process 12, since …)". */
void hpct_ckpt_holder_describe(const hpct_ckpt_holder *holder, char *text, size_t size);

#endif
