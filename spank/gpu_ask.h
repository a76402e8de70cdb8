/* spank/gpu_ask.h - sends a request to the helper hpc-train-gpus, with a timeout. Only this file
 * starts the helper. */
#ifndef HPCT_SPANK_GPU_ASK_H
#define HPCT_SPANK_GPU_ASK_H

#include <hpctrain/status.h>
#include <stddef.h>

/* Starts `helper` with --node `node` (unless NULL), `request` on standard input and only SLURM_CONF
 * of the caller's environment. answer[size] receives its output, truncated to fit. Returns
 * HPCT_ERR_CONFIG, with the helper's first line or the error, if it fails or takes longer than
 * `seconds`. */
hpct_status hpct_spank_gpu_ask(const char *helper, const char *node, const char *request,
                               int seconds, char *answer, size_t size);

#endif
