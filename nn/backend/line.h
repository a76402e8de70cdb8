/* nn/backend/line.h - the line (x - mean) scale + offset of a channel of NORMALIZATION. */
#ifndef HPCT_NN_BACKEND_LINE_H
#define HPCT_NN_BACKEND_LINE_H

#include "nn/graph/op.h"

#include <math.h>

/* Fills mean[channels], scale[channels] and offset[channels], which follow each other. */
static inline void hpct_backend_line_fill(const hpct_op_spec *spec, float *const *params,
                                          float *line)
{
    size_t channels = (size_t) spec->line.channels;
    for (size_t c = 0; c < channels; c++) {
        float *mean = &line[c], *scale = mean + channels, *offset = scale + channels;
        *mean = spec->line.given ? spec->line.mean[c] : params[HPCT_GRAPH_LINE_MEAN][c];
        *offset = spec->line.given ? spec->line.offset[c] : 0;
        float deviation = spec->line.given ? 1 : sqrtf(params[HPCT_GRAPH_LINE_VARIANCE][c]);
        *scale =
            spec->line.given
                ? spec->line.scale[c]
                : 1 / (deviation > HPCT_GRAPH_LINE_EPSILON ? deviation : HPCT_GRAPH_LINE_EPSILON);
    }
}

#endif
