/* nn/graph/graph.h - the parts of hpct_model: layers as named by the user, their parameters, and
 * the nodes (operations) and tensors they are lowered to. Private to nn/.
 *
 * A node has a list of inputs and one output; a layer lowers to several nodes (Dense with softmax)
 * or to none (Flatten: its tensor is a view). */
#ifndef HPCT_NN_GRAPH_GRAPH_H
#define HPCT_NN_GRAPH_GRAPH_H

#include "nn/graph/loss_scaling.h"
#include "nn/graph/op.h"
#include "nn/graph/optimizer.h"
#include "nn/graph/peers.h"
#include "nn/graph/shape.h"

#define HPCT_GRAPH_NAME_SIZE 64

typedef struct hpct_layer_rescaling {
    double scale, offset;
    hpct_per_channel each; /* unless of 0 channels: per channel, in place of the two */
} hpct_layer_rescaling;

/* Configuration of layers, as far as shapes do not determine it. */
typedef union hpct_layer_config {
    hpct_activation activation;
    hpct_batch_normalization batch_normalization;
    hpct_conv2d conv2d;
    hpct_conv2d_transpose conv2d_transpose;
    hpct_cropping2d cropping2d;
    hpct_dense dense;
    hpct_depthwise_conv2d depthwise_conv2d;
    hpct_flip random_flip;
    hpct_group_normalization group_normalization;
    hpct_layer_normalization layer_normalization;
    hpct_pool2d pool2d;
    hpct_random_affine random_affine; /* RandomRotation, RandomZoom, RandomTranslation */
    hpct_random_tone random_tone;     /* RandomContrast, RandomBrightness */
    hpct_separable_conv2d separable_conv2d;
    hpct_zero_padding2d zero_padding2d;
    struct {
        double rate;
        bool per_sample;
    } dropout; /* SpatialDropout2D and StochasticDepth, too */
    hpct_up_sampling2d up_sampling2d;
    double gaussian_noise; /* standard deviation */
    double layer_scale;    /* initial value */
    double scaled_add;     /* scale */
    bool keepdims;         /* of global poolings */
    hpct_shape shape;      /* Reshape; Permute: its axes */
    int size[2];           /* Resizing, RandomCrop: height, width */
    hpct_layer_rescaling rescaling;
    hpct_per_channel normalization; /* 0 channels: by its states */
    hpct_relu relu;
    double slope; /* LeakyReLU, ELU */
    bool shared;  /* PReLU */
} hpct_layer_config;

typedef struct hpct_layer {
    char name[HPCT_GRAPH_NAME_SIZE];                            /* "conv2d_1" */
    bool named;                                                 /* by the user */
    const char *type;                                           /* "Conv2D" */
    int num_inputs, inputs[HPCT_GRAPH_NODE_MAX_INPUTS], tensor; /* input and output tensors */
    hpct_shape output;
    hpct_layer_config config;  /* by `type` */
    size_t parameters, states; /* floats, in Keras' shapes; states among the parameters */
    bool fp32;                 /* fp32 also in a model of another precision */
    bool frozen;               /* Keras' trainable=False */
    double rate_factor;        /* of the learning rate; 0: none */
    int nest;                  /* number of the nested model that it is in; 0: none */
    int own_name;              /* where the name begins that it has there, in `name` */
} hpct_layer;

/* A model that is a layer of another one, as Keras' files have it; its layers are the model's. */
typedef struct hpct_graph_nest {
    char name[HPCT_GRAPH_NAME_SIZE];
    bool sequential;
    int outer;         /* number of the nested model that it is in; 0: none */
    int input, output; /* tensors */
} hpct_graph_nest;

typedef enum hpct_graph_initializer {
    HPCT_GRAPH_INIT_ZEROS,
    HPCT_GRAPH_INIT_ONES,
    HPCT_GRAPH_INIT_GLOROT_UNIFORM,
    HPCT_GRAPH_INIT_CONSTANT,        /* init[0] */
    HPCT_GRAPH_INIT_UNIFORM,         /* from init[0] to init[1] */
    HPCT_GRAPH_INIT_NORMAL,          /* mean init[0], standard deviation init[1] */
    HPCT_GRAPH_INIT_TRUNCATED_NORMAL /* redrawn beyond two standard deviations */
} hpct_graph_initializer;

typedef struct hpct_graph_param {
    char name[HPCT_GRAPH_NAME_SIZE + 16]; /* "conv2d_1/kernel" */
    hpct_shape shape;                     /* Keras' */
    hpct_graph_initializer initializer;
    double fan_in, fan_out; /* for Glorot */
    double init[2];         /* for the others */
    double l1, l2;          /* Keras' regularizer: adds l1 sum |w| + l2 sum w^2 to the loss */
    int node, index;        /* node that owns it, and index there */
    bool state;  /* not trained: no gradient, no optimizer slot, in the arena of states */
    bool frozen; /* a state, because its layer is frozen or has no others: no step changes it */
    bool split;  /* a shard of a parameter; other replicas have the rest (nn/split/shard.h) */
    /* In Keras' layout while the model is not built (NULL: not set); afterwards the arenas hold
     * them. */
    float *value;
    float *slot[HPCT_GRAPH_NUM_SLOTS];
} hpct_graph_param;

typedef struct hpct_graph_tensor {
    hpct_shape shape;
    int root; /* tensor whose memory this one shares; itself if it has its own */
    int layer;
    bool read;     /* by a node or a view */
    bool weighted; /* depends on weights that are trained unless they are frozen */
    /* In a pipeline stage (nn/split/stage.h), at the root: */
    bool stage_input;   /* stage input: produced by an earlier stage */
    bool stage_output;  /* stage output: read or forwarded by a later stage */
    bool requires_grad; /* of a stage input: depends on trained parameters */
    bool local;         /* in a shard (nn/split/shard.h): local batch only */
} hpct_graph_tensor;

typedef struct hpct_graph_node {
    hpct_op_spec spec;
    int num_inputs;
    int inputs[HPCT_GRAPH_NODE_MAX_INPUTS]; /* tensors */
    int output;                             /* tensor */
    int layer;
    int first_param, num_params;
    int added;    /* nodes inserted before it by sharding */
    bool partial; /* partial gradients: backward cannot apply them */
    bool local;   /* works on the local batch */
} hpct_graph_node;

/* The run of a built model (nn/plan/run.h), and its destructors. */
typedef struct hpct_run hpct_run;
typedef struct hpct_graph_run_class {
    hpct_status (*unbuild)(hpct_model *model); /* hpct_model_unbuild */
    void (*free)(hpct_run *run);
} hpct_graph_run_class;

struct hpct_model {
    char *name;
    hpct_status status; /* of the first error while adding layers */
    char *message;
    bool compiled;
    hpct_layer *layers;
    int num_layers;
    hpct_graph_nest *nests; /* number k is nests[k - 1] */
    int num_nests;
    hpct_graph_param *params;
    int num_params;
    hpct_graph_tensor *tensors; /* 0 is the model's input */
    int num_tensors;
    hpct_graph_node *nodes; /* in topological order */
    int num_nodes;
    int output; /* output tensor: the head */
    bool inner; /* not the last pipeline stage: no loss at its head */
    struct {
        int part,
            parts; /* shard whose local batch this is (hpct_graph_samples_first); parts 0: none */
    } share;
    char next_name[HPCT_GRAPH_NAME_SIZE]; /* of the next layer; "": numbered */
    struct {
        uint64_t seed;
        int64_t step, first_sample;
    } position; /* position for random layers: hpct_model_set_position */
    hpct_loss loss;
    hpct_precision precision;
    double label_smoothing, focal_alpha, focal_gamma, huber_delta;
    float *class_weights; /* [num_class_weights], or NULL */
    int num_class_weights;
    int top_k;
    bool has_targets;                      /* hpct_model_take_targets */
    hpct_optimizer optimizer;              /* with defaults resolved */
    int64_t steps;                         /* optimizer steps so far, in batches */
    double rate;                           /* hpct_model_set_learning_rate; 0: the schedule's */
    int halvings;                          /* of the learning rate, besides the schedule */
    bool shows_gradients;                  /* hpct_model_show_gradients */
    hpct_graph_loss_scaling scaling;       /* until a run exists */
    const struct hpct_backend *backend;    /* of hpct_model_set_device; NULL: the cpu backend */
    hpct_graph_step_peers peers;           /* callbacks of its steps */
    hpct_run *run;                         /* NULL until built */
    const hpct_graph_run_class *run_class; /* of `run` */
    int64_t builds;
    int holders;        /* reference count of hpct_model_hold */
    bool freed;         /* freed when the last holder releases */
    char *class_names;  /* a JSON list, or NULL: hpct_model_set_class_names */
    char *trained_with; /* a JSON object, or NULL: hpct_model_set_trained_with */
    /* Name of the built-in model in torchvision's form with the same network, or NULL; static. */
    const char *torchvision;
    bool has_torch_weights; /* the last weights loaded were torchvision's */
};

/* Number of samples of a batch of n that a node works on, and the first of them. */
static inline int hpct_graph_node_samples(const hpct_model *model, const hpct_graph_node *node,
                                          int n)
{
    return node->local ? hpct_graph_samples_count(n, model->share.part, model->share.parts) : n;
}

static inline int hpct_graph_node_first(const hpct_model *model, const hpct_graph_node *node, int n)
{
    return node->local ? hpct_graph_samples_first(n, model->share.part, model->share.parts) : 0;
}

/* Number of the nested model just outside of one; 0: the model. */
static inline int hpct_graph_nest_outer(const hpct_model *model, int nest)
{
    return model->nests[nest - 1].outer;
}

/* Adds a nested model that reads the head: its number, or 0 if out of memory. */
int hpct_model_add_nest(hpct_model *model, const char *name, bool sequential, int outer);

/* Floats of one sample. */
static inline size_t hpct_model_input_floats(const hpct_model *model)
{
    return hpct_graph_shape_count(&model->tensors[0].shape);
}

static inline size_t hpct_model_output_floats(const hpct_model *model)
{
    return hpct_graph_shape_count(&model->tensors[model->output].shape);
}

/* Precision of a node. */
static inline hpct_precision hpct_graph_node_precision(const hpct_model *model,
                                                       const hpct_graph_node *node)
{
    return model->layers[node->layer].fp32 ? HPCT_FP32 : model->precision;
}

/* For the hpct_model_add_…() functions. Each returns false without effect once the model has an
 * error.
 *
 * begin names the next layer ("conv2d", then "conv2d_1") and returns its input's shape; then
 * add_node, add_param and add_view, in this order, on the head. Layers that join tensors use
 * begin_join and add_join instead of begin and add_node. */
bool hpct_layer_begin(hpct_model *model, const char *type, const char *stem, hpct_shape *input);
bool hpct_layer_begin_join(hpct_model *model, const char *type, const char *stem,
                           const int *tensors, int count);
bool hpct_layer_add_node(hpct_model *model, const hpct_op_spec *spec, const hpct_shape *output);
bool hpct_layer_add_join(hpct_model *model, const hpct_op_spec *spec, const int *tensors, int count,
                         const hpct_shape *output);
bool hpct_layer_add_param(hpct_model *model, const char *name, const hpct_shape *shape,
                          hpct_graph_initializer initializer, double fan_in, double fan_out);
bool hpct_layer_add_view(hpct_model *model, const hpct_shape *output);

/* The last layer's config, filled after begin. */
static inline hpct_layer_config *hpct_layer_config_of(hpct_model *model)
{
    return &model->layers[model->num_layers - 1].config;
}

/* Whether a parameter is never trained, also in a layer that is not frozen: a moving statistic. */
static inline bool hpct_graph_param_is_statistic(const hpct_model *model,
                                                 const hpct_graph_param *param)
{
    return hpct_op_param_is_state(&model->nodes[param->node].spec, param->index);
}

/* Whether no step changes a parameter of a layer that is not frozen: Normalization's. */
static inline bool hpct_graph_param_is_fixed(const hpct_model *model, const hpct_graph_param *param)
{
    return model->nodes[param->node].spec.kind == HPCT_OP_NORMALIZATION;
}

/* Whether a parameter's regularizer counts: as in Keras only while its layer is trained. */
static inline bool hpct_graph_param_has_penalty(const hpct_graph_param *param)
{
    return !param->state && (param->l1 > 0 || param->l2 > 0);
}

/* Factor of the learning rate of a node's parameters. */
static inline float hpct_graph_node_rate_factor(const hpct_model *model,
                                                const hpct_graph_node *node)
{
    double factor = model->layers[node->layer].rate_factor;
    return factor > 0 ? (float) factor : 1;
}

/* Freezes or unfreezes layer i of a model that is not built; slots of frozen layers are dropped. */
void hpct_layer_freeze(hpct_model *model, int i, bool frozen);

/* Drops the optimizer slots kept in the model. */
void hpct_model_drop_slots(hpct_model *model);

/* Fuses nodes without changing results (nn/graph/fuse.c); idempotent. */
void hpct_model_fuse(hpct_model *model);

/* Records "LAYER: message" as the model's error, unless it has one. */
void hpct_layer_fail(hpct_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
