/* agent/data/canvas.h - a picture while it is augmented: floats from 0 to 255. */
#ifndef HPCT_AGENT_DATA_CANVAS_H
#define HPCT_AGENT_DATA_CANVAS_H

#include <stddef.h>

typedef struct hpct_data_canvas {
    float *values; /* [height][width][channels] */
    int height, width, channels;
} hpct_data_canvas;

static inline size_t hpct_data_canvas_pixels(const hpct_data_canvas *canvas)
{
    return (size_t) canvas->height * (size_t) canvas->width;
}

static inline size_t hpct_data_canvas_floats(const hpct_data_canvas *canvas)
{
    return hpct_data_canvas_pixels(canvas) * (size_t) canvas->channels;
}

#endif
