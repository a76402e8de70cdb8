/* hpctrain/check.h - finds slow nodes and links before training. */
#ifndef HPCTRAIN_CHECK_H
#define HPCTRAIN_CHECK_H

#include <hpctrain/context.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Measures every node in a few seconds: matrix products and memory of each rank, the scratch folder
 * ($SLURM_TMPDIR, else $TMPDIR, else /tmp), and the links between nodes. Rank 0 prints a table to
 * `stream` (NULL: none) and writes the figures to the file `json` (NULL: none).
 *
 * Returns HPCT_ERR_PEER, naming them, if nodes are slow: a figure is under half of the median of
 * all nodes, or, of two nodes, under half of the other's; HPCT_ERR_USAGE for a context of
 * hpct_context_open_apart(); HPCT_ERR_IO if the file cannot be written. Collective. */
HPCT_API hpct_status hpct_check_nodes(hpct_context *context, FILE *stream, const char *json);

#ifdef __cplusplus
}
#endif
#endif
