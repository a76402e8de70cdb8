/* nn/hosted.h - an operation that the host makes for a device which does not have it: where parts
 * of a split model meet (nn/collective.h). What it reads comes over, what it writes goes back, and
 * it waits for both: for few numbers. */
#ifndef HPCT_NN_HOSTED_H
#define HPCT_NN_HOSTED_H

#include "nn/backend.h"

/* As make_op of a backend whose memory is a device's. */
hpct_status hpct_make_hosted(hpct_op **out, const hpct_backend *backend, const hpct_op_spec *spec,
                             const hpct_op_build *build);

#endif
