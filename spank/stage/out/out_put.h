/* spank/stage/out/out_put.h - gives a finished copy its name. A file that another step or job has
 * put there since this step began is not replaced: this one's copy is kept beside it. */
#ifndef HPCT_SPANK_STAGE_OUT_OUT_PUT_H
#define HPCT_SPANK_STAGE_OUT_OUT_PUT_H

#include "spank/stage/out/out_tree.h"

/* Renames out->temp, a file or symbolic link copied from `name`, to `part` in the folder `at`; or,
 * after a message and out->beside, to PART.JOB.STEP.NODE. A folder of that name is reported with
 * hpct_stage_out_left. out->temp is gone afterwards. Returns HPCT_ERR_IO naming `name`. */
hpct_status hpct_stage_out_put(hpct_stage_out *out, int at, const char *part, const char *name);

#endif
