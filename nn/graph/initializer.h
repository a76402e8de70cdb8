/* nn/graph/initializer.h - initial weights by the variance that they are to have. */
#ifndef HPCT_NN_GRAPH_INITIALIZER_H
#define HPCT_NN_GRAPH_INITIALIZER_H

#include "nn/graph/graph.h"

typedef enum hpct_fan { HPCT_FAN_IN, HPCT_FAN_OUT, HPCT_FAN_AVG } hpct_fan;
typedef enum hpct_distribution {
    HPCT_UNIFORM,
    HPCT_TRUNCATED_NORMAL,
    HPCT_UNTRUNCATED_NORMAL
} hpct_distribution;

/* Keras' VarianceScaling: a variance of scale / fan. The parameter has fans. */
void hpct_param_scale_variance(hpct_param *param, double scale, hpct_fan fan,
                               hpct_distribution kind);

#endif
