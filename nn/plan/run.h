/* nn/plan/run.h - a model built for one backend and list of batch sizes: operations, arenas,
 * planned buffers, and how they are made. Private to nn/; what runs it is nn/run/run.h. */
#ifndef HPCT_NN_PLAN_RUN_H
#define HPCT_NN_PLAN_RUN_H

#include "nn/backend/backend.h"
#include "nn/graph/graph.h"
#include "nn/plan/options.h"

/* How backward of a node contributes to an input's gradient. */
typedef enum hpct_run_diff_mode {
    HPCT_RUN_DIFF_NONE,      /* not wanted */
    HPCT_RUN_DIFF_WRITE,     /* writes, as the first contribution */
    HPCT_RUN_DIFF_PASS,      /* first contribution, equal to the output's gradient: no copy */
    HPCT_RUN_DIFF_ADD,       /* the operation accumulates */
    HPCT_RUN_DIFF_ADD_AFTER, /* the operation writes to separate memory, and the step adds it */
} hpct_run_diff_mode;

typedef struct hpct_run_node {
    hpct_op *op;
    bool backward;      /* false: nothing before it is trained, or the loss computes its gradient */
    bool fused_forward; /* fused away: another node computes its forward, */
    bool fused_away;    /* or all of it */
    const float *src[HPCT_GRAPH_NODE_MAX_INPUTS];
    /* hpct_op_call's, of fused nodes; else NULL. */
    const float *bias, *norm_sums;
    const void *norms[HPCT_GRAPH_NODE_MAX_INPUTS];
    float *diff_src[HPCT_GRAPH_NODE_MAX_INPUTS];
    hpct_run_diff_mode mode[HPCT_GRAPH_NODE_MAX_INPUTS];
    bool add[HPCT_GRAPH_NODE_MAX_INPUTS]; /* mode is HPCT_RUN_DIFF_ADD */
    float *add_after;                     /* target of the addition of diff_src[0]; else NULL */
    float *dst, *diff_dst;
    float *param[HPCT_OP_MAX_PARAMS], *grad[HPCT_OP_MAX_PARAMS];
    void *workspace, *copies;
    size_t done; /* floats of the gradient arena that are final after this node's backward */
} hpct_run_node;

/* Seconds of a step's parts, recorded while profiling (nn/run/profile.h). */
typedef struct hpct_run_times {
    int slots, steps;
    int step;        /* current step; not recorded if out of range */
    double *seconds; /* [steps][slots] */
} hpct_run_times;
#define HPCT_RUN_TIME_FORWARD(node) (2 * (node))
#define HPCT_RUN_TIME_BACKWARD(node) (2 * (node) + 1)
#define HPCT_RUN_TIME_LOSS(nodes) (2 * (nodes))
#define HPCT_RUN_TIME_UPDATE(nodes) (2 * (nodes) + 1)
#define HPCT_RUN_TIMES_OF(nodes) (2 * (nodes) + 2) /* slots */

typedef struct hpct_run_emulation hpct_run_emulation; /* nn/run/emulate.h */

typedef struct hpct_run_resident hpct_run_resident;
struct hpct_run_resident { /* nn/run/resident.h; one per replica, linked */
    uint64_t number;       /* from 1, unique in the process */
    hpct_model *model;     /* model that reads it */
    const hpct_backend *backend;
    hpct_backend_pictures pictures; /* pixels and labels in device memory */
    void *memory;
    hpct_run_resident *next; /* of the next replica */
};

typedef struct hpct_run_link hpct_run_link; /* nn/plan/fusions.h */

typedef enum hpct_run_stage {
    HPCT_RUN_STAGE_NONE,
    HPCT_RUN_STAGE_FORWARD,
    HPCT_RUN_STAGE_LOSS
} hpct_run_stage;

/* Batch sizes of the build. */
typedef struct hpct_run_batches {
    int *sizes;
    int *local; /* local batches of the same sizes, for `local` nodes; at least 1 */
    int num;
    int largest, largest_local;
} hpct_run_batches;

/* Parameters, and buffers of the same layout. */
typedef struct hpct_run_arenas {
    size_t floats;         /* of each buffer */
    size_t *param_offsets; /* [model->num_params], in the arena of its kind */
    float *parameters, *gradients;
    bool borrows; /* parameters are another model's (hpct_run_build_options.storage) */
    char *copies; /* of parameters in another type or layout, for some operations */
    bool stale;   /* parameters may have changed since the last copies */
    float *slot[HPCT_GRAPH_NUM_SLOTS]; /* NULL where the optimizer needs none */
    hpct_graph_loss_scaling *scaling;  /* in the backend's memory; NULL: no loss scaling */
    size_t state_floats;               /* moving statistics, */
    size_t frozen_floats;              /* then what frozen layers have */
    float *states;                     /* both; untrained parameters */
    float *spare; /* gradients that nothing reads, of operations that cannot omit them; or NULL */
    uint64_t fingerprint;
    hpct_backend_update_range *updates; /* ranges left for update() */
    int num_updates;
    hpct_backend_penalty *penalties; /* [num_penalties]: regularizers of trained parameters, and: */
    float *penalty;                  /* [2] their sums, in the backend's memory; NULL without any */
    int num_penalties;
} hpct_run_arenas;

/* Input of the next step. */
typedef struct hpct_run_input {
    const float *given; /* the caller's or `own`; NULL before it is set */
    const int32_t *given_labels;
    const hpct_run_resident *resident; /* data set in device memory, instead of `given`; samples: */
    const hpct_drawn *given_drawn;     /* host memory */
    const float *given_targets;        /* host memory; NULL: labels are used */
    bool keeps;                        /* `given` does not change (hpct_model_keep_input) */
    int kept;                          /* number of its samples already on the device */
    int samples;                       /* capacity of `own` */
    float *own;                        /* allocated on demand, with own_labels; host memory */
    int32_t *own_labels;
    float *own_targets; /* [samples], host memory; NULL without dense_targets */
    /* Read by operations and loss: the same pointers, or a device's copies. */
    float *src;
    int32_t *labels;
    float *targets;
    hpct_drawn *drawn; /* a device's copy of given_drawn */
} hpct_run_input;

/* Transfer buffers of a device; all NULL if the backend's memory is the host's. */
typedef struct hpct_run_transit {
    char *memory;  /* device memory: input, labels, sums, drawn, targets, and: */
    float *staged; /* in `memory`: incoming input, or the output converted to fp32 */
    int32_t *staged_labels;
    float *output;          /* host memory: the outputs, fetched on demand */
    char *landing;          /* [2][HPCT_RUN_FETCH_BYTES], host memory: destination of fetches */
    const void *fetched[2]; /* address of the fetched data */
} hpct_run_transit;

/* Of the last loss. */
typedef struct hpct_run_sums {
    hpct_backend_batch_sums *last; /* `host` or the device's */
    hpct_backend_batch_sums host;
    hpct_backend_batch_sums *left; /* [2], host memory: the device also writes the sums of a whole
                              step here; NULL: not supported */
    uint32_t *turns;               /* number of sums written: the device's counter, */
    unsigned known_turns;          /* and the host's */
    bool last_left;                /* those of the last loss are in `left` */
    bool left_lost;                /* invalid after an error */
} hpct_run_sums;

/* Fusions and offsets. */
typedef struct hpct_run_plan {
    int *root; /* [model->num_tensors]: the tensor whose memory this one shares; the model's root,
                  but for the input of a merged node, which is never stored: the merged node's
                  output */
    hpct_run_link *links; /* fused nodes */
    int num_links;
    char *block; /* activations, their gradients, workspaces, at planned offsets */
    size_t block_bytes;
    size_t *value_offsets, *diff_offsets; /* [tensors] offsets in `block`, of those stored there */
    void *scratch;
} hpct_run_plan;

/* Source of the loss. */
typedef struct hpct_run_loss {
    hpct_backend_loss_form form;
    int tensor, classes;
    const float *class_weights; /* in the backend's memory, or NULL */
    const float *src;
    float *diff;
} hpct_run_loss;

#define HPCT_RUN_ENDS 2
struct hpct_run {
    const hpct_backend *backend;
    bool training, fuse_update, dense_targets;
    bool no_slots;         /* another model has the optimizer slots */
    hpct_precision values; /* type of activations in memory */
    hpct_run_node *nodes;  /* [model->num_nodes] */
    int num_nodes;
    bool *requires_grad; /* [model->num_tensors], by root */
    const float *output; /* of the model */
    hpct_run_batches batches;
    hpct_run_arenas arenas;
    hpct_run_input input;
    hpct_run_transit transit;
    hpct_run_sums sums;
    hpct_run_plan plan;
    hpct_run_loss loss;

    hpct_run_stage stage;
    int stage_n;
    bool stage_training;                        /* `training` of the last forward */
    hpct_run_times *times;                      /* NULL: no profiling */
    hpct_run_emulation *emulation;              /* NULL: no emulation */
    struct hpct_run_finite_found *finite;       /* NULL: not looked for (nn/run/finite.h) */
    struct hpct_run_recordings *recordings;     /* nn/run/replay.h; NULL: none yet */
    void (*ends[HPCT_RUN_ENDS])(hpct_run *run); /* of hpct_run_at_end */
};

/* Registers `end`, called once with the run before it is freed: for state that nn/run keeps in
 * it. */
void hpct_run_at_end(hpct_run *run, void (*end)(hpct_run *run));
void hpct_run_free(hpct_run *run);

static inline int hpct_run_root(const hpct_model *model, const hpct_run *run, int tensor)
{
    return run->plan.root[model->tensors[tensor].root];
}

/* Where the loss attaches: the tensor it reads and its form. If the output comes from a softmax or
 * sigmoid, the loss reads that node's input, as Keras does, so that small probabilities keep their
 * precision; *skipped is then that node, which backward omits, else -1. */
void hpct_run_find_loss(const hpct_model *model, int *tensor, hpct_backend_loss_form *form,
                        int *skipped);

/* Sets *blocks, for each root tensor of the model whether it is stored in channel blocks; the
 * caller frees it. run->loss.tensor must be set before. */
hpct_status hpct_run_find_blocks(const hpct_model *model, const hpct_run *run, bool plain,
                                 bool **blocks);

/* Sets every node's modes: in backward order, which reader of a tensor writes its gradient, which
 * ones add to it, and where an Add passes its own on. diff_root[num_tensors]: the tensor in whose
 * memory the gradient of each (root) tensor is. */
hpct_status hpct_run_flow(const hpct_model *model, hpct_run *run, int *diff_root);
/* Whether a later node reads the source of node i: its backward runs before node i's. */
bool hpct_run_shares_source(const hpct_model *model, const hpct_run *run, int i);

/* Address of the i-th parameter. */
float *hpct_run_param(const hpct_model *model, const hpct_run *run, int param);

/* First half of a build: checks, operations, layout of the arenas; allocates no arena. */
hpct_status hpct_run_prepare(hpct_run **out, const hpct_model *model,
                             const hpct_run_build_options *options);

/* Sizes of the other allocations of the second half. */
bool hpct_run_has_slot(const hpct_model *model, const hpct_run *run, int slot); /* whether this slot
                                                                                   gets an arena */
size_t hpct_run_state_bytes(const hpct_run *run); /* with frozen layers */
size_t hpct_run_spare_bytes(const hpct_run *run);
size_t hpct_run_target_bytes(const hpct_run *run, int samples);
size_t hpct_run_scratch_bytes(const hpct_run *run);
size_t hpct_run_copies_bytes(const hpct_run *run);

/* Buffers of transfers between host and device (nn/plan/transit.c): bytes needed on the device;
 * allocation on host and device. If the backend's memory is the host's, only dense targets are
 * allocated. */
size_t hpct_run_transit_bytes(const hpct_model *model, const hpct_run *run);
hpct_status hpct_run_make_transit(const hpct_model *model, hpct_run *run);
void hpct_run_free_transit(hpct_run *run);
/* Rows of targets of the next batch, in host memory; NULL: labels. */
void hpct_run_set_targets(hpct_run *run, const float *targets);

/* Allocates run->plan.block and sets the pointers of every node, or, unless `plan` is NULL, only
 * stores there the size of that block and its peak; operations must have been created. In both
 * cases sets run->plan's offsets and block_bytes, and the nodes' modes. Times of the plan: forward
 * of node i at i, the loss at N, backward of node i at 2N - i. */
hpct_status hpct_run_place(const hpct_model *model, hpct_run *run, hpct_run_memory_plan *plan);

/* Prints nodes, fusions and offsets, after hpct_run_place (nn/plan/print.c). */
void hpct_run_print_plan(const hpct_model *model, const hpct_run *run, FILE *stream);

/* Makes all pointers into run->plan.block point to `to`, of run->plan.block_bytes, which becomes
 * run->plan.block. Nothing is copied or freed: the caller may switch back. */
void hpct_run_move(hpct_run *run, char *to);

/* Sets the address of the model's input in every node that reads it. */
void hpct_run_set_input(const hpct_model *model, hpct_run *run, float *input);

/* Moves parameters and optimizer slots out of the arenas into the model (Keras' layout) and frees
 * the run; nothing when the model is not built. */
hpct_status hpct_model_unbuild(hpct_model *model);

#endif
