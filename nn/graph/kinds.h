/* nn/graph/kinds.h - what is known of each kind of operation, in one table. Backends have tables of
 * their own, of the functions that make an operation. Private to nn/. */
#ifndef HPCT_NN_GRAPH_KINDS_H
#define HPCT_NN_GRAPH_KINDS_H

#include "nn/graph/op.h"

/* The member of hpct_op_spec that has its sizes. */
typedef enum hpct_op_sizes {
    HPCT_GRAPH_SIZES_DENSE,
    HPCT_GRAPH_SIZES_WINDOW,
    HPCT_GRAPH_SIZES_TRANSPOSED, /* window, from the result to the source */
    HPCT_GRAPH_SIZES_PICTURE,
    HPCT_GRAPH_SIZES_JOIN,
    HPCT_GRAPH_SIZES_LINE,
    HPCT_GRAPH_SIZES_NORM,
    HPCT_GRAPH_SIZES_GROUP,
    HPCT_GRAPH_SIZES_PERMUTE,
    HPCT_GRAPH_SIZES_PARTS,
} hpct_op_sizes;

typedef struct hpct_op_facts {
    const char *name;
    hpct_op_sizes sizes;
    int parallel;         /* hpct_graph_parallel; CONV2D's depends on its window, too */
    bool predicted_split; /* predictions split it as its source; else not, unless it begins one */
    bool activation;      /* of single elements */
    bool elementwise;     /* an activation or like one: rows and last axis do not matter */
    bool kernel;          /* its parameters are a kernel and, unless no_bias, a bias */
    const char *onnx;     /* ONNX' operation, or the main one of several; NULL: none */
    /* hpct_op_new sets these of hpct_op. */
    bool reads_src, reads_dst, adds_diff_src, passes_diff_dst, omits_grads;
} hpct_op_facts;

const hpct_op_facts *hpct_op_facts_of(const hpct_op_spec *spec);

#endif
