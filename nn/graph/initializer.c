/* Initial weights whose variance follows from fan-in and fan-out (Glorot and Bengio, 2010; He and
 * others, 2015), as in Keras. */
#include "nn/graph/initializer.h"

#include <math.h>

/* Standard deviation of a standard normal distribution truncated at two standard deviations. Keras
 * divides by it, so that samples have the requested variance. */
#define TRUNCATED_STDDEV 0.87962566103423978

void hpct_graph_param_scale_variance(hpct_graph_param *param, double scale, hpct_graph_fan fan,
                                     hpct_graph_distribution kind)
{
    double fans[] = {param->fan_in, param->fan_out, (param->fan_in + param->fan_out) / 2};
    double variance = scale / fmax(1, fans[fan]);
    param->init[0] = 0;
    if (kind == HPCT_GRAPH_UNIFORM) {
        param->initializer = HPCT_GRAPH_INIT_UNIFORM;
        param->init[1] = sqrt(3 * variance);
        param->init[0] = -param->init[1];
    } else if (kind == HPCT_GRAPH_TRUNCATED_NORMAL) {
        param->initializer = HPCT_GRAPH_INIT_TRUNCATED_NORMAL;
        param->init[1] = sqrt(variance) / TRUNCATED_STDDEV;
    } else {
        param->initializer = HPCT_GRAPH_INIT_NORMAL;
        param->init[1] = sqrt(variance);
    }
}
