/* spank/gpu_ask.h - a question to the helper hpc-train-gpus: text in, text out, within a deadline.
 * The only place that starts it. */
#ifndef HPCT_SPANK_GPU_ASK_H
#define HPCT_SPANK_GPU_ASK_H

#include <hpctrain/status.h>
#include <stddef.h>

/* Starts `helper` with --node `node` (unless NULL), `request` as its standard input and nothing of
 * the caller's environment but SLURM_CONF. answer[size] receives what it prints, cut to fit.
 * HPCT_ERR_CONFIG, with the first line it printed or what happened to it, when it fails or takes
 * longer than `seconds`. */
hpct_status hpct_gpu_ask(const char *helper, const char *node, const char *request, int seconds,
                         char *answer, size_t size);

#endif
