/* agent/train/trained_with.h - what the weights of a run were trained with, kept beside them. */
#ifndef HPCT_AGENT_TRAIN_TRAINED_WITH_H
#define HPCT_AGENT_TRAIN_TRAINED_WITH_H

#include <hpctrain/dataset.h>
#include <hpctrain/model.h>

/* Notes it in the model, which saves it with its weights. */
hpct_status hpct_train_trained_with_note(hpct_model *model, const hpct_dataset *train);

#endif
