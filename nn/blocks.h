/* nn/blocks.h - whose pictures have their channels in blocks (HPCT_CHANNEL_BLOCK in nn/op.h).
 * Convolutions of some processors are faster on these; the model's input, its output, what
 * passes between stages (nn/stage.h) and whatever a backend knows only channels last stay as they are. No picture is ever turned over on its own: a
 * border between both layouts lies where an operation reads the one and writes the other. */
#ifndef HPCT_NN_BLOCKS_H
#define HPCT_NN_BLOCKS_H

#include "nn/run.h"

/* Sets *blocks, for each root tensor of the model whether it lies so, to be freed by the caller;
 * run->loss_tensor must have been found. */
hpct_status hpct_run_find_blocks(const hpct_model *model, const hpct_run *run, bool plain,
                                 bool **blocks);

#endif
