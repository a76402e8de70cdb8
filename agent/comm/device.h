/* agent/comm/device.h - which communicator carries data in device memory: NCCL where every rank has
 * it, else one for host memory with staging. Asks the CUDA module for its table of calls. */
#ifndef HPCT_COMM_DEVICE_H
#define HPCT_COMM_DEVICE_H

#include "agent/comm/comm.h"
#include "agent/comm/device_calls.h"
#include "agent/comm/exchange.h"

#include <stdint.h>

/* The module's table with the device opened, or NULL: with device "auto" where there is none, and
 * with "cpu". HPCT_ERR_CONFIG where "cuda" is asked for and cannot be had. */
hpct_status hpct_comm_device_calls(const hpct_device_calls **out, const char *device);

/* What a rank has to say before there is NCCL. */
typedef struct hpct_nccl_card {
    int32_t version; /* of NCCL; 0: it will not take part, and `why` */
    char host[104];  /* NCCL_HOSTID, or the host's name and, behind a blank, of which boot */
    char gpu[32];
    char why[192];
    unsigned char id[HPCT_DEVICE_ID_BYTES]; /* rank 0's counts */
} hpct_nccl_card;

/* calls may be NULL. */
void hpct_nccl_card_fill(hpct_nccl_card *card, const hpct_device_calls *calls, int rank);

/* From the cards of all, alike on all ranks: whether NCCL is taken, and if not, which rank does
 * without and why, in `text`. HPCT_ERR_CONFIG where two ranks share a GPU. */
hpct_status hpct_nccl_cards_judge(bool *take, char *text, size_t text_size,
                                  const hpct_nccl_card *cards, int size);

typedef struct hpct_comm_device_options {
    const hpct_meeting *meeting;
    const hpct_device_calls *calls; /* this rank's, or NULL */
    hpct_comm *under; /* through it where it is there, and it is closed with *out; else through the
                         meeting */
} hpct_comm_device_options;

/* Agrees on NCCL and opens it; *out is NULL where a rank does without. Collective. */
hpct_status hpct_comm_device_open(hpct_comm **out, const hpct_comm_device_options *options);

#endif
