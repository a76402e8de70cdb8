/* nn/collective.h - the operations at which the parts of a split model (nn/shard.h) meet. One
 * implementation for all backends that compute in host memory; how the numbers travel is
 * hpct_replicas' affair. */
#ifndef HPCT_NN_COLLECTIVE_H
#define HPCT_NN_COLLECTIVE_H

#include "nn/op.h"

/* SUM_PARTS: dst = sum of all parts' src, plus bias, then ReLU. src and dst are of the same shape,
 * [n][rows][channels]. Backward: every part has all of diff_dst (or, with sum_diff, a part of a sum
 * of it, which is made first), and that is the gradient of every part's src.
 * GATHER_PARTS: dst [n][rows][channels] from all parts' src [n][rows][own channels]. Backward: each
 * part's own channels of diff_dst (or, with sum_diff, of its sum over the parts). In blocks of
 * channels on both sides, or on neither.
 * GATHER_SAMPLES: dst [n][…] from all parts' src [own samples][…], as hpct_samples_first shares
 * them. Backward: each part's own samples of diff_dst (or of its sum). call->n is that of dst.
 * HPCT_ERR_INTERNAL from forward when the model was given no replicas. */
hpct_status hpct_make_collective(hpct_op **out, const hpct_op_spec *spec,
                                 const hpct_op_build *build);

/* Floats that one part hands over in a step of n samples. */
size_t hpct_collective_floats(const hpct_op_spec *spec, int n);

#endif
