/* nn/cut.h - where to cut a model into stages that follow one another, each on another rank: node
 * ranges of the order in which operations are computed. A cut may lie anywhere, also among
 * branches: it carries all tensors that are made before it and read behind it. Private to nn/ and
 * the strategies. */
#ifndef HPCT_NN_CUT_H
#define HPCT_NN_CUT_H

#include <hpctrain/model.h>
#include <stdbool.h>
#include <stddef.h>

#define HPCT_MAX_STAGES 256

typedef struct hpct_cut {
    int stages;
    int first[HPCT_MAX_STAGES + 1]; /* operation at which each stage begins; then their number */
    /* Floats of one sample that come into each stage from the one before it, and that go back as
     * gradients (none where nothing before has learned). 0 of the first. */
    size_t values[HPCT_MAX_STAGES], gradients[HPCT_MAX_STAGES];
    double seconds[HPCT_MAX_STAGES]; /* predicted of each, of one sample, forward and backward */
    double slowest; /* of those and of what the links between them take for a sample */
} hpct_cut;

/* Most stages: the model's operations. */
int hpct_cut_most(const hpct_model *model);

/* The stages whose slowest is least, a link that carries a sample's tensors counting as a stage; of
 * all cuts within 5 % of that, the one that sends the fewest bytes. Predicted at 50 GFLOP/s, 20
 * GB/s of activations, and links of 1 Gb/s each way; so it is the same on all ranks. By dynamic
 * programming over (stages, end of the last). HPCT_ERR_CONFIG: fewer operations than stages, or
 * stages beyond HPCT_MAX_STAGES. The model is compiled. */
hpct_status hpct_cut_find(hpct_cut *out, const hpct_model *model, int stages);

/* Tensors, by their memory's root, that pass into a stage that begins at operation `node`, in a
 * fixed order; the model's input, which every stage has, is not among them. tensors[num_tensors].
 * Returns how many. */
int hpct_cut_tensors(const hpct_model *model, int node, int *tensors);

/* learns[num_tensors]: at the root, whether something that made it is trained, so that it has a
 * gradient. */
void hpct_cut_learning(const hpct_model *model, bool *learns);

#endif
