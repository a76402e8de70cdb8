/* nn/graph/initializer.h - initial weights by the variance that they are to have. */
#ifndef HPCT_NN_GRAPH_INITIALIZER_H
#define HPCT_NN_GRAPH_INITIALIZER_H

#include "nn/graph/graph.h"

typedef enum hpct_graph_fan {
    HPCT_GRAPH_FAN_IN,
    HPCT_GRAPH_FAN_OUT,
    HPCT_GRAPH_FAN_AVG
} hpct_graph_fan;
typedef enum hpct_graph_distribution {
    HPCT_GRAPH_UNIFORM,
    HPCT_GRAPH_TRUNCATED_NORMAL,
    HPCT_GRAPH_UNTRUNCATED_NORMAL
} hpct_graph_distribution;

/* Keras' VarianceScaling: a variance of scale / fan. The parameter has fans. */
void hpct_graph_param_scale_variance(hpct_graph_param *param, double scale, hpct_graph_fan fan,
                                     hpct_graph_distribution kind);

#endif
