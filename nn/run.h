/* nn/run.h - a model as built for one backend and a list of batch sizes: operations, arenas,
 * planned buffers. Private to nn/; the trainer sees nn/step.h. */
#ifndef HPCT_NN_RUN_H
#define HPCT_NN_RUN_H

#include "nn/backend.h"
#include "nn/graph.h"
#include "nn/parts.h"
#include "nn/resident.h"

/* How a node's backward leaves its part of an input's gradient. */
typedef enum hpct_diff_mode {
    HPCT_DIFF_NONE,      /* nobody wants it */
    HPCT_DIFF_WRITE,     /* it is the first part */
    HPCT_DIFF_PASS,      /* it is the first part, and the output's gradient itself: no copy */
    HPCT_DIFF_ADD,       /* the operation adds to what is there */
    HPCT_DIFF_ADD_AFTER, /* the operation writes elsewhere, and the step adds that */
} hpct_diff_mode;

typedef struct hpct_run_node {
    hpct_op *op;
    bool backward; /* false: nothing before it learns, or the loss has taken its place */
    int sum_node;  /* 1 + the ADD whose result it makes itself; 0: none */
    bool made;     /* that ADD: forward is done */
    bool merged;   /* the node that makes its input does its work, too: there is nothing to do */
    const float *src[HPCT_NODE_MAX_INPUTS];
    int bias_node;          /* 1 + the CONV2D that leaves its bias to this BATCH_NORM; 0: none */
    int moments_node;       /* 1 + the CONV2D that may leave moments for this BATCH_NORM; 0: none */
    const float *moments;   /* where it does */
    const float *norm_sums; /* of this BATCH_NORM, where who reads it leaves them */
    int norm_node[HPCT_NODE_MAX_INPUTS]; /* 1 + the deferred BATCH_NORM that should make this input;
                                            0: what should is there */
    const void *norms[HPCT_NODE_MAX_INPUTS]; /* its workspace; then src is its own source */
    float *diff_src[HPCT_NODE_MAX_INPUTS];
    hpct_diff_mode mode[HPCT_NODE_MAX_INPUTS];
    bool add[HPCT_NODE_MAX_INPUTS]; /* mode is HPCT_DIFF_ADD */
    float *add_after;               /* where diff_src[0] is added then; else NULL */
    float *dst, *diff_dst;
    float *param[HPCT_OP_MAX_PARAMS], *grad[HPCT_OP_MAX_PARAMS];
    void *workspace, *copies;
    size_t done; /* floats of the gradient arena that are final after this node's backward */
} hpct_run_node;

/* Seconds of the parts of each step, noted while somebody profiles (nn/profile.h). */
typedef struct hpct_run_times {
    int slots, steps;
    int step; /* the one that is running; those before the first and after the last are lost */
    double *seconds; /* [steps][slots] */
} hpct_run_times;
#define HPCT_TIME_FORWARD(node) (2 * (node))
#define HPCT_TIME_BACKWARD(node) (2 * (node) + 1)
#define HPCT_TIME_LOSS(nodes) (2 * (nodes))
#define HPCT_TIME_UPDATE(nodes) (2 * (nodes) + 1)
#define HPCT_TIMES_OF(nodes) (2 * (nodes) + 2) /* slots */
double hpct_run_clock(void);

/* Around a part of the step; the clock is asked only where a profile is taken. */
double hpct_run_began(const hpct_run *run);
void hpct_run_ended(const hpct_run *run, int slot, double begin);

typedef struct hpct_emulation hpct_emulation; /* nn/emulate.h */

struct hpct_resident { /* nn/resident.h; of several replicas an array of them, linked */
    uint64_t number;   /* 1 for the process' first one … */
    hpct_model *model; /* that reads it */
    const hpct_backend *backend;
    hpct_pictures pictures; /* pixels and labels: of the device */
    void *memory;
    hpct_resident *next; /* the next replica's */
};
/* Of the replicas', the one that this one reads. */
const hpct_resident *hpct_resident_of(const hpct_resident *resident, const hpct_model *replica);

typedef enum hpct_run_stage { HPCT_STAGE_NONE, HPCT_STAGE_FORWARD, HPCT_STAGE_LOSS } hpct_run_stage;

struct hpct_run {
    const hpct_backend *backend;
    int *batch_sizes;
    int *own_sizes; /* of the same batches, for nodes of own samples; 1 where there are none */
    int num_batch_sizes;
    int largest_batch, largest_own;
    int input_samples; /* that own_input has room for */
    bool borrows;      /* parameters are another model's */
    bool no_slots;     /* the optimizer's are another model's */
    bool training, fuse_update, dense_targets;
    hpct_precision values; /* of activations, as they lie in memory */
    hpct_run_node *nodes;  /* [model->num_nodes] */
    int num_nodes;

    int *root; /* [model->num_tensors]: the tensor whose memory this one shares; the model's root
                  but for what a merged node reads, which is never made */

    size_t arena_floats;
    size_t *param_offsets; /* [model->num_params], in the arena of its kind */
    float *parameters, *gradients;
    char *copies;                /* of parameters, for the operations that want some */
    bool stale;                  /* parameters may have changed since the copies were made */
    float *slot[HPCT_NUM_SLOTS]; /* NULL where the optimizer needs none */
    hpct_loss_scaling *scaling;  /* in the backend's memory; NULL: precision does without */
    size_t state_floats;
    float *states; /* parameters that are not trained */
    uint64_t fingerprint;
    hpct_update_range *updates; /* what is left for update() */
    int num_updates;

    const float *given; /* of the next forward: the caller's or own_input; NULL before it is set */
    const int32_t *given_labels;
    const hpct_resident *resident; /* pictures in the device's memory, instead; which of them: */
    const hpct_drawn *given_drawn; /* the host's */
    bool keeps_input;              /* what is given does not change; */
    int kept;                      /* so many samples of it are on the device */
    float *own_input;              /* made when asked for, with own_labels; the host's */
    int32_t *own_labels;
    float *own_targets; /* the host's; NULL: the labels say it */
    /* Where operations and loss read them: the same, or, of a device, copies in its memory. */
    float *input;
    int32_t *labels;
    float *targets;
    hpct_drawn *drawn;     /* a device's copy of given_drawn */
    hpct_batch_sums *sums; /* of the last loss; host_sums or the device's */
    hpct_batch_sums host_sums;
    hpct_batch_sums *left;  /* [2], the host's: where a whole step's are left, too; NULL: nowhere */
    uint32_t *turns;        /* how often: the device's count, */
    unsigned known_turns;   /* and the host's */
    bool last_left;         /* those of the last loss are */
    bool left_lost;         /* nobody knows where, since something failed */
    const void *fetched[2]; /* where what was fetched is then */
    char *transit; /* of the device: input, labels, targets, sums, and what is converted there */
    float *staged; /* in it: input on its way, or output in fp32, where activations are not */
    int32_t *staged_labels;
    float *host_output; /* of a device's host: the outputs, when they are asked for */
    char *landing;      /* [2][HPCT_FETCH_BYTES], the host's: what is copied there */
    char *block;        /* activations, their gradients, workspaces: as planned */
    size_t block_bytes;
    size_t *value_offsets, *diff_offsets; /* [tensors] where in it these lie, where they do */
    void *scratch, *scratch_aside;        /* of one allocation */

    int head, before_head, behind_head; /* nodes and 1 (nn/head.h); 0: none */
    const float *output;                /* of the model */
    hpct_loss_form form;                /* and where the loss starts: */
    int loss_tensor;
    bool *learns; /* [model->num_tensors], by root: has a gradient */
    int classes;
    const float *loss_src;
    float *loss_diff;

    hpct_run_stage stage;
    int stage_n;
    bool stage_training;                /* what the forward of this stage was called with */
    hpct_run_times *times;              /* NULL: nobody profiles */
    hpct_emulation *emulation;          /* NULL: the step computes */
    struct hpct_recordings *recordings; /* nn/replay.h; NULL: none yet */
};

void hpct_run_free(hpct_run *run);

/* That a convolution has left to this BATCH_NORM; NULL: none. */
static inline const float *hpct_run_bias(const hpct_run *run, int norm)
{
    int conv = run->nodes[norm].bias_node - 1;
    return conv < 0 ? NULL : run->nodes[conv].param[HPCT_OP_BIAS];
}

static inline int hpct_run_root(const hpct_model *model, const hpct_run *run, int tensor)
{
    return run->root[model->tensors[tensor].root];
}

/* Where the loss attaches: the tensor it reads and its form. Probabilities that a softmax or
 * sigmoid just made are taken at its input, as Keras does, which keeps small ones exact; *skipped
 * is then that node, which backward leaves out, else -1. */
void hpct_run_find_loss(const hpct_model *model, int *tensor, hpct_loss_form *form, int *skipped);

/* Decides every node's modes: which reader of a tensor, in the order of backward, writes its
 * gradient, which add to it, and where an Add can pass its own on. diff_root[num_tensors]: the
 * tensor in whose memory the gradient of each (root) tensor lies. */
hpct_status hpct_run_flow(const hpct_model *model, hpct_run *run, int *diff_root);
/* The only node that reads what a node makes, if it reads it as it is and that is neither the
 * model's result nor the loss's source; else -1. */
int hpct_run_only_reader(const hpct_model *model, const hpct_run *run, int node);
/* Whether somebody behind node i reads what it reads, and so comes before it in backward. */
bool hpct_run_shares_source(const hpct_model *model, const hpct_run *run, int i);

/* Where the i-th parameter lies. */
float *hpct_run_param(const hpct_model *model, const hpct_run *run, int param);

/* The first half of building: checks, operations, layout of the arenas; no memory for them yet. */
hpct_status hpct_run_prepare(hpct_run **out, const hpct_model *model,
                             const hpct_build_options *options);

/* What the second half takes besides. */
bool hpct_run_has_slot(const hpct_model *model, const hpct_run *run, int slot); /* an arena */
size_t hpct_run_target_bytes(const hpct_run *run);
size_t
hpct_run_scratch_bytes(const hpct_run *run); /* for what operations do, and for what lingers: */
size_t hpct_run_scratch_aside(const hpct_run *run); /* bytes before that */
size_t hpct_run_copies_bytes(const hpct_run *run);

/* What lies between the host and a device (nn/exchange.c): its bytes, of the device; making it, for
 * host and device; what a step sends there. All nothing where the memory is the host's. */
size_t hpct_run_transit_bytes(const hpct_model *model, const hpct_run *run);
hpct_status hpct_run_make_transit(const hpct_model *model, hpct_run *run);
void hpct_run_free_transit(hpct_run *run);
hpct_status hpct_run_send_input(const hpct_model *model, hpct_run *run, int n);
hpct_status hpct_run_send_targets(hpct_run *run, int n);
/* What a device does of it itself, of what was sent: of a data set that lies there. */
hpct_status hpct_run_make_input(const hpct_run *run, int n);

/* The optimizer's next step (nn/update.c), and what of it a device is told before. */
hpct_update_call hpct_run_next_update(const hpct_model *model);
hpct_status hpct_run_tell_rates(const hpct_run *run, const hpct_update_call *call);

/* Allocates run->block and sets the pointers of every node, or, unless `plan` is NULL, only tells
 * the size of that block there, and when most of it is in use; ops must have been made. Times of
 * the plan: forward of node i at i, the loss at N, backward of node i at 2N - i. */
hpct_status hpct_run_place(const hpct_model *model, hpct_run *run, hpct_memory_plan *plan);

/* Goes on in another block of run->block_bytes, which is run->block from now on: what lay in the
 * one before stays there for a way back. */
void hpct_run_move(hpct_run *run, char *to);

/* Makes every node that reads the model's input read it there. */
void hpct_run_set_input(const hpct_model *model, hpct_run *run, float *input);
/* At a part's own samples among the n that it was given. */
void hpct_run_set_own_input(const hpct_model *model, hpct_run *run, int n);

/* Moves parameters and optimizer slots out of the arenas into the model (Keras' layout) and frees
 * the run; nothing when the model is not built. */
hpct_status hpct_model_unbuild(hpct_model *model);

/* The optimizer begins anew: its slots are dropped or set to zero. */
hpct_status hpct_model_forget_slots(hpct_model *model);

/* One parameter in Keras' layout, wherever it is now. get: HPCT_ERR_USAGE when it was never set. */
hpct_status hpct_param_get(const hpct_model *model, int param, float *keras);
hpct_status hpct_param_set(hpct_model *model, int param, const float *keras);

/* One of its optimizer's slots, likewise. get: *any is false, and nothing is written, where it was
 * never set. */
hpct_status hpct_param_get_slot(const hpct_model *model, int param, int slot, float *keras,
                                bool *any);
hpct_status hpct_param_set_slot(hpct_model *model, int param, int slot, const float *keras);

#endif
