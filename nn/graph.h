/* nn/graph.h - what hpct_model is made of: layers as the user named them, the parameters they own,
 * and the nodes (operations) and tensors they were lowered to. Private to nn/.
 *
 * A node has a list of inputs and one output, so that branches need nothing new here; a layer may
 * lower to several nodes (Dense with softmax) or to none (Flatten: its tensor is a view). */
#ifndef HPCT_NN_GRAPH_H
#define HPCT_NN_GRAPH_H

#include "nn/loss_scaling.h"
#include "nn/op.h"
#include "nn/optimizer.h"
#include "nn/shape.h"
#include "nn/watcher.h"

#define HPCT_NAME_SIZE 64

/* What the user asked for, for the layers whose shapes do not say it all. */
typedef union hpct_layer_config {
    hpct_activation activation;
    hpct_batch_normalization batch_normalization;
    hpct_conv2d conv2d;
    hpct_dense dense;
    hpct_depthwise_conv2d depthwise_conv2d;
    hpct_flip random_flip;
    hpct_pool2d pool2d;
    hpct_zero_padding2d zero_padding2d;
    double dropout; /* rate */
    struct {
        double scale, offset;
    } rescaling;
} hpct_layer_config;

typedef struct hpct_layer {
    char name[HPCT_NAME_SIZE];                            /* "conv2d_1" */
    bool named;                                           /* by the user */
    const char *type;                                     /* "Conv2D" */
    int num_inputs, inputs[HPCT_NODE_MAX_INPUTS], tensor; /* what it reads and gives */
    hpct_shape output;
    hpct_layer_config config;  /* by `type` */
    size_t parameters, states; /* floats, in Keras' shapes; states among the parameters */
    bool fp32;                 /* computes so also in a model of another precision */
} hpct_layer;

typedef enum hpct_initializer {
    HPCT_INIT_ZEROS,
    HPCT_INIT_ONES,
    HPCT_INIT_GLOROT_UNIFORM,
    HPCT_INIT_CONSTANT,        /* init[0] */
    HPCT_INIT_UNIFORM,         /* from init[0] to init[1] */
    HPCT_INIT_NORMAL,          /* mean init[0], standard deviation init[1] */
    HPCT_INIT_TRUNCATED_NORMAL /* drawn anew beyond two standard deviations */
} hpct_initializer;

typedef struct hpct_param {
    char name[HPCT_NAME_SIZE + 16]; /* "conv2d_1/kernel" */
    hpct_shape shape;               /* Keras' */
    hpct_initializer initializer;
    double fan_in, fan_out; /* of Glorot */
    double init[2];         /* of the others */
    int node, index;        /* whose parameter, and which of that node's */
    bool state;             /* not trained: no gradient, no optimizer slot, an arena of its own */
    bool split;             /* a part of one of which other replicas have the others (nn/shard.h) */
    /* In Keras' layout while the model is not built (NULL: not set); built, the arenas hold them.
     */
    float *value;
    float *slot[HPCT_NUM_SLOTS];
} hpct_param;

typedef struct hpct_tensor {
    hpct_shape shape;
    int root; /* the tensor whose memory this one shares; itself when it has its own */
    int layer;
    bool read; /* by a node or a view */
    /* Of a model that is a stage of another (nn/stage.h), at the root: */
    bool given;  /* an earlier stage makes it */
    bool taken;  /* a later stage reads it, or hands it on */
    bool learns; /* given: something that made it is trained, so it wants a gradient */
    bool own;    /* of a part of a split model (nn/shard.h): of its own samples alone */
} hpct_tensor;

typedef struct hpct_node {
    hpct_op_spec spec;
    int num_inputs;
    int inputs[HPCT_NODE_MAX_INPUTS]; /* tensors */
    int output;                       /* tensor */
    int layer;
    int first_param, num_params;
    int added;    /* nodes before it that the whole model does not have */
    bool partial; /* its gradients are parts of a sum: backward cannot apply them */
    bool own;     /* reads and gives tensors of own samples */
} hpct_node;

typedef struct hpct_run hpct_run; /* nn/run.h */

struct hpct_model {
    char *name;
    hpct_status status; /* of the first thing that went wrong while layers were added */
    char *message;
    bool compiled;
    hpct_layer *layers;
    int num_layers;
    hpct_param *params;
    int num_params;
    hpct_tensor *tensors; /* 0 is the model's input */
    int num_tensors;
    hpct_node *nodes; /* in an order in which they can be computed */
    int num_nodes;
    int output; /* tensor: the head */
    bool inner; /* a stage with others behind it: there is no loss at its head */
    struct {
        int part, parts; /* which samples are a part's own (hpct_samples_first); 0: none are */
    } share;
    char next_name[HPCT_NAME_SIZE]; /* of the next layer; "" for a number */
    struct {
        uint64_t seed;
        int64_t step, first_sample;
    } position; /* what random layers draw from: hpct_model_set_position */
    hpct_loss loss;
    hpct_precision precision;
    double label_smoothing;
    int top_k;
    hpct_optimizer optimizer;           /* resolved */
    int64_t steps;                      /* of the optimizer so far, in batches */
    hpct_loss_scaling scaling;          /* while no run has it */
    const struct hpct_backend *backend; /* of hpct_model_set_device; NULL: the cpu backend */
    hpct_replicas replicas;             /* that train with this one */
    hpct_division division;             /* replicas that take parts of its input */
    hpct_watcher watcher;               /* of backward */
    hpct_run *run;                      /* NULL until built */
    int64_t builds;
    int holders; /* hpct_model_hold */
    bool freed;  /* when the last holder lets go */
};

/* Of a batch of n, how many samples a node works on, and which is the first of them. */
static inline int hpct_node_samples(const hpct_model *model, const hpct_node *node, int n)
{
    return node->own ? hpct_samples_count(n, model->share.part, model->share.parts) : n;
}

static inline int hpct_node_first(const hpct_model *model, const hpct_node *node, int n)
{
    return node->own ? hpct_samples_first(n, model->share.part, model->share.parts) : 0;
}

/* What a node computes in. */
static inline hpct_precision hpct_node_precision(const hpct_model *model, const hpct_node *node)
{
    return model->layers[node->layer].fp32 ? HPCT_FP32 : model->precision;
}

/* For the hpct_model_add_… functions. Each returns false, and does nothing, once the model has
 * failed.
 *
 * begin names the next layer ("conv2d", then "conv2d_1") and gives its input's shape; the layer is
 * then described with add_node, add_param and add_view, in this order, on the model's head. A layer
 * that joins tensors calls begin_join and add_join instead of begin and add_node. */
bool hpct_layer_begin(hpct_model *model, const char *type, const char *stem, hpct_shape *input);
bool hpct_layer_begin_join(hpct_model *model, const char *type, const char *stem,
                           const int *tensors, int count);
bool hpct_layer_add_node(hpct_model *model, const hpct_op_spec *spec, const hpct_shape *output);
bool hpct_layer_add_join(hpct_model *model, const hpct_op_spec *spec, const int *tensors, int count,
                         const hpct_shape *output);
bool hpct_layer_add_param(hpct_model *model, const char *name, const hpct_shape *shape,
                          hpct_initializer initializer, double fan_in, double fan_out);
bool hpct_layer_add_view(hpct_model *model, const hpct_shape *output);

/* The last layer's config, to be filled after begin. */
static inline hpct_layer_config *hpct_layer_config_of(hpct_model *model)
{
    return &model->layers[model->num_layers - 1].config;
}

/* Fuses nodes where that changes no result (nn/fuse.c); doing it again does nothing. */
void hpct_model_fuse(hpct_model *model);

/* Keeps "LAYER: message" as the model's failure, unless there is one already. */
void hpct_layer_fail(hpct_model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
