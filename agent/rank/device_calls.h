/* agent/rank/device_calls.h - the calls by which communicators use this process's GPU. */
#ifndef HPCT_AGENT_RANK_DEVICE_CALLS_H
#define HPCT_AGENT_RANK_DEVICE_CALLS_H

#include "base/device_calls.h"

#include <hpctrain/status.h>

/* The module's table with the device opened, or NULL: with "auto" without a GPU, and with "cpu".
 * Returns HPCT_ERR_CONFIG if "cuda" is given and not available. */
hpct_status hpct_rank_comm_device_calls(const hpct_device_calls **out, const char *device);

#endif
