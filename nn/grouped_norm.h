/* nn/grouped_norm.h - BatchNormalization whose statistics are of slices of the samples, each its
 * own (spec.norm.groups): what data-parallel replicas compute that do not synchronize them, by one
 * who has the samples of all. Made of a backend's own BatchNormalization. Private to nn/. */
#ifndef HPCT_NN_GROUPED_NORM_H
#define HPCT_NN_GROUPED_NORM_H

#include "nn/backend.h"

/* Moving statistics move to the mean over the groups of what each replica's would be; those of
 * groups without samples stay. */
hpct_status hpct_make_grouped_norm(hpct_op **out, const hpct_backend *backend,
                                   const hpct_op_spec *spec, const hpct_op_build *build);

#endif
