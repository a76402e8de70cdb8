/* agent/comm/device.h - chooses the communicator for device memory: NCCL if every rank has it, else
 * host memory with staging. */
#ifndef HPCT_AGENT_COMM_DEVICE_H
#define HPCT_AGENT_COMM_DEVICE_H

#include "agent/comm/comm.h"
#include "agent/comm/exchange.h"
#include "base/device_calls.h"

#include <stdint.h>

/* Record of a rank, exchanged before NCCL is set up. */
typedef struct hpct_nccl_card {
    int32_t version; /* version of NCCL; 0: not available, see `why` */
    char host[104];  /* NCCL_HOSTID, or host name and boot id */
    char gpu[32];
    char why[192];
    unsigned char id[HPCT_DEVICE_ID_BYTES]; /* rank 0's is used */
} hpct_nccl_card;

/* calls may be NULL. */
void hpct_nccl_card_fill(hpct_nccl_card *card, const hpct_device_calls *calls, int rank);

/* From all ranks' cards, with the same result everywhere: whether NCCL is used; if not, `text` says
 * which rank lacks it and why. Returns HPCT_ERR_CONFIG if two ranks share a GPU. */
hpct_status hpct_nccl_cards_judge(bool *take, char *text, size_t text_size,
                                  const hpct_nccl_card *cards, int size);

typedef struct hpct_comm_device_options {
    const hpct_comm_meeting *meeting;
    const hpct_device_calls *calls; /* this rank's, or NULL */
    hpct_comm *under; /* used for the exchange if not NULL, and then closed with *out; else
                         `meeting` is used */
} hpct_comm_device_options;

/* Between two polls of a device, of which there were `looks`: yields, later sleeps. */
void hpct_comm_nap(int looks);

/* Agrees on NCCL and opens its communicator; *out is NULL if a rank lacks it. Collective. */
hpct_status hpct_comm_device_open(hpct_comm **out, const hpct_comm_device_options *options);

#endif
