/* agent/ps/saving.h - checkpoints of a run with parameter servers: server 0's. They are taken
 * between steps, when no gradient is in flight and all parts have been pulled, and are like those
 * of one rank (agent/train/checkpoints.h), so that another number of servers or another strategy
 * can go on. */
#ifndef HPCT_AGENT_PS_SAVING_H
#define HPCT_AGENT_PS_SAVING_H

#include "agent/train/training.h"

typedef struct hpct_ps_saving hpct_ps_saving;

/* As hpct_train_checkpoints_open; then the model has the state of the checkpoint that is continued.
 * *out: NULL without options.checkpoint_dir. */
hpct_status hpct_ps_saving_open(hpct_ps_saving **out, hpct_train_training *training);
void hpct_ps_saving_close(hpct_ps_saving *saving); /* NULL is allowed */

/* After each update: `done` steps of the whole run; `epoch_ended`: its last one. */
hpct_status hpct_ps_saving_step(hpct_ps_saving *saving, int64_t done, bool epoch_ended);

/* Whether one is to be saved, as soon as no gradient is in flight. */
bool hpct_ps_saving_due(const hpct_ps_saving *saving);

/* Copies run->model, which has all parts, and has it written; `last` waits for that. `waited`: the
 * seconds that it took to have all parts there. */
hpct_status hpct_ps_saving_save(hpct_ps_saving *saving, const hpct_train_place *place,
                                double waited, bool last);

/* Seconds that the last checkpoint took; 0 before one. */
double hpct_ps_saving_seconds(const hpct_ps_saving *saving);

/* Waits until all is written. HPCT_ERR_IO if the last one is not complete. */
hpct_status hpct_ps_saving_finish(hpct_ps_saving *saving);

#endif
