/* nn/backend/collective.h - collectives of a split model (nn/split/shard.h). One implementation for
 * all backends that compute in host memory; hpct_graph_step_peers does the communication. */
#ifndef HPCT_NN_BACKEND_COLLECTIVE_H
#define HPCT_NN_BACKEND_COLLECTIVE_H

#include "nn/graph/op.h"

/* SUM_PARTS: dst = sum of all parts' src, plus bias, then ReLU. src and dst have the same shape,
 * [n][rows][channels]. Backward: every part has diff_dst (or, with sum_diff, a partial sum of it,
 * which is summed first), and that is the gradient of every part's src. GATHER_PARTS: dst
 * [n][rows][channels] from all parts' src [n][rows][own channels]. Backward: each part's channels
 * of diff_dst (or, with sum_diff, of its sum over the parts). Both sides in channel blocks, or
 * neither. GATHER_SAMPLES: dst [n][...] from all parts' src [own samples][...], divided by
 * hpct_graph_samples_first. Backward: each part's samples of diff_dst (or of its sum). call->n is
 * that of dst. forward returns HPCT_ERR_INTERNAL without call->replicas. */
hpct_status hpct_backend_make_collective(hpct_op **out, const hpct_op_spec *spec,
                                         const hpct_op_build *build);

/* Floats that one shard sends in a step of n samples. */
size_t hpct_backend_collective_floats(const hpct_op_spec *spec, int n);

#endif
