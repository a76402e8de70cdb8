/* agent/data/colour.h - operations on the values of a picture, in place, with the numbers of Keras'
 * layers for value_range (0, 255): RandomContrast and those of RandAugment. */
#ifndef HPCT_AGENT_DATA_COLOUR_H
#define HPCT_AGENT_DATA_COLOUR_H

#include "agent/data/canvas.h"

/* (x - mean) factor + mean, by channel. */
void hpct_data_colour_contrast(const hpct_data_canvas *canvas, double factor);

/* x + delta */
void hpct_data_colour_brightness(const hpct_data_canvas *canvas, double delta);

/* x + factor (grey - x); of pictures with 3 channels. */
void hpct_data_colour_degeneration(const hpct_data_canvas *canvas, double factor);

/* x + (1 - 2 factor)(smoothed - x), where the 3x3 filter takes black from outside. before: room for
 * a picture of the same size. */
void hpct_data_colour_sharpness(const hpct_data_canvas *canvas, double factor, float *before);

/* Keeps the `bits` highest of the 8 bits of a value. */
void hpct_data_colour_posterization(const hpct_data_canvas *canvas, int bits);

/* Of y = x + addition: 255 - y from the threshold on. */
void hpct_data_colour_solarization(const hpct_data_canvas *canvas, double addition,
                                   double threshold);

/* Stretches each channel to 0 ... 255. */
void hpct_data_colour_auto_contrast(const hpct_data_canvas *canvas);

/* Equalizes the histogram of each channel, of 256 bins. */
void hpct_data_colour_equalization(const hpct_data_canvas *canvas);

#endif
