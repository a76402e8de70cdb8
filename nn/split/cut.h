/* nn/split/cut.h - where to cut a model into pipeline stages: ranges of nodes in topological order.
 * A cut may be anywhere, also among branches: it carries all tensors produced before and read after
 * it. Private to nn/ and strategies. */
#ifndef HPCT_NN_SPLIT_CUT_H
#define HPCT_NN_SPLIT_CUT_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>

#define HPCT_SPLIT_MAX_STAGES 256

typedef struct hpct_split_cut {
    int stages;
    int first[HPCT_SPLIT_MAX_STAGES + 1]; /* first operation of each stage; then their number */
    /* Floats per sample sent to each stage by the one before, and back as gradients (none without
     * requires_grad). 0 for the first. */
    size_t values[HPCT_SPLIT_MAX_STAGES], gradients[HPCT_SPLIT_MAX_STAGES];
    double
        seconds[HPCT_SPLIT_MAX_STAGES]; /* predicted per stage and sample, forward and backward */
    double slowest;                     /* maximum of those and of the links' times per sample */
} hpct_split_cut;

/* Maximum number of stages: the number of operations. */
int hpct_split_cut_most(const hpct_model *model);

/* Minimizes the slowest stage or link; among cuts within 5 % of that, minimizes bytes. Predicted at
 * 50 GFLOP/s, 20 GB/s of activations and 1 Gb/s each way, so equal on all ranks. Dynamic
 * programming over (stages, end of the last). Returns HPCT_ERR_CONFIG for fewer operations than
 * stages, or more than HPCT_SPLIT_MAX_STAGES. The model is compiled. */
hpct_status hpct_split_cut_find(hpct_split_cut *out, const hpct_model *model, int stages);

/* Stage inputs of a stage beginning at operation `node`, as root tensors in a fixed order, without
 * the model's input, which every stage has. tensors[num_tensors]. Returns their number. */
int hpct_split_cut_tensors(const hpct_model *model, int node, int *tensors);

/* requires_grad[num_tensors]: set at the root. */
void hpct_split_cut_requires_grad(const hpct_model *model, bool *requires_grad);

#endif
