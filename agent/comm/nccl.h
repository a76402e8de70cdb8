/* agent/comm/nccl.h - the communicator over NCCL, for data in device memory; what lies in host
 * memory goes through a buffer on the device. Reductions and messages are put into streams of their
 * own behind what the compute stream holds at that time, and the compute stream waits for them: the
 * host does not. Sums of one kind come in the order of NCCL's algorithm: the bits are the same on
 * all ranks, but depend on how an array is cut into reductions. In 16 bits numbers are added up as
 * NCCL does, and fp16 has no factor: what is beyond 65504 becomes infinite.
 *
 * All ranks must start reductions, and call all else that is collective, in the same order. */
#ifndef HPCT_COMM_NCCL_H
#define HPCT_COMM_NCCL_H

#include "agent/comm/comm.h"
#include "agent/comm/device_calls.h"

typedef struct hpct_nccl_options {
    const hpct_device_calls *calls; /* stays */
    int rank, size;
    unsigned char id[HPCT_DEVICE_ID_BYTES]; /* rank 0's, on all ranks */
    int seconds;       /* how long the others may take to come, here and in split */
    int grace_seconds; /* between NCCL's word that a peer is lost and our own: the watch knows which
                          one, and ends the process meanwhile */
    hpct_comm *under;  /* closed with this one; NULL: none */
    /* Where not NULL, called before each collective on host data, which all have to come to: other
     * ranks are threads of this process, and what they ask of CUDA until then (memory, above all)
     * may wait for this rank's GPU, which would wait for them. */
    hpct_status (*meet)(void *argument);
    void *argument;
} hpct_nccl_options;

/* Collective. HPCT_ERR_PEER, saying what was waited for, when the others do not come in time. */
hpct_status hpct_comm_nccl_open(hpct_comm **out, const hpct_nccl_options *options);

/* From any thread, without waiting: HPCT_ERR_PEER with NCCL's words when one of this process'
 * communicators has failed for longer than their grace_seconds. */
hpct_status hpct_comm_nccl_check(void);

/* From any thread, where some of this process' GPUs wait in sums for one that has failed: aborts
 * all its communicators, and waits no longer than `milliseconds` for that. Calls on them fail then,
 * but to close or abandon them. What the GPUs compute from there on is of no use. */
void hpct_comm_nccl_abort_all(int milliseconds);

#endif
