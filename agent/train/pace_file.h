/* agent/train/pace_file.h - pace.jsonl in the log folder: a line every few seconds with the parts
 * of a step, an array by rank each. Knows no ranks that communicate. */
#ifndef HPCT_AGENT_TRAIN_PACE_FILE_H
#define HPCT_AGENT_TRAIN_PACE_FILE_H

#include "agent/results/live.h"

#include <hpctrain/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum hpct_train_pace_part {
    HPCT_TRAIN_PACE_STEP, /* the whole one */
    HPCT_TRAIN_PACE_INPUT,
    HPCT_TRAIN_PACE_FORWARD,
    HPCT_TRAIN_PACE_BACKWARD,
    HPCT_TRAIN_PACE_WAIT, /* for other ranks' sums */
    HPCT_TRAIN_PACE_UPDATE,
    HPCT_TRAIN_PACE_MEMORY, /* MB of the process at its peak, not of a step */
    HPCT_TRAIN_PACE_PARTS
} hpct_train_pace_part;

typedef struct hpct_train_pace_file hpct_train_pace_file;

/* Without log_dir *out is NULL, which all calls allow. `continues`: lines are appended; else an
 * earlier run's file stays until hpct_train_pace_file_settle. A file that cannot be written is a
 * remark, not an error. HPCT_ERR_INTERNAL if out of memory. */
hpct_status hpct_train_pace_file_open(hpct_train_pace_file **out, const char *log_dir,
                                      bool continues);
void hpct_train_pace_file_close(hpct_train_pace_file *file);

/* From now on lines go to the file, which replaces that of an earlier run. */
void hpct_train_pace_file_settle(hpct_train_pace_file *file);

/* After `step` of `epoch`, from 1: means over `steps` in ms, or MB:
 * known[HPCT_TRAIN_PACE_PARTS][ranks]. NaN, of a rank that is not known, becomes null. `live`,
 * which may be NULL, learns them, too, and of each rank how busy its device is (NULL: unknown). */
void hpct_train_pace_file_write(hpct_train_pace_file *file, hpct_results_live *live, int epoch,
                                int64_t step, int64_t steps, const double *known,
                                const double *busy, int ranks);

#endif
