/* nn/plan/fusions.h - fusion of nodes: which rules apply to a model, and the links between fused
 * nodes that placement needs. */
#ifndef HPCT_NN_PLAN_FUSIONS_H
#define HPCT_NN_PLAN_FUSIONS_H

#include "nn/plan/run.h"

/* Two fused nodes; `from` comes before `to`, which reads its result. */
struct hpct_run_link {
    hpct_backend_fusion fusion;
    int from, to;
    int input; /* input of `to` that `from` produces */
};

/* Applies the rules to builds[model->num_nodes], before the operations are created from them. Sets
 * run->plan.links and run->plan.root, and `fused_forward` and `fused_away` of nodes; roots and
 * `requires_grad` must be set before. */
hpct_status hpct_run_fuse(const hpct_model *model, hpct_run *run, hpct_op_build *builds);

#endif
