/* nn/merged.h - the operation that another one does as well (hpct_backend.merges): it has a place
 * in the model, and nothing to do. */
#ifndef HPCT_NN_MERGED_H
#define HPCT_NN_MERGED_H

#include "nn/op.h"

hpct_status hpct_make_merged(hpct_op **out, const hpct_op_spec *spec, const hpct_op_build *build);

#endif
