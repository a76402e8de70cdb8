/* agent/data/unlabelled.h - pictures without classes, for predictions: all of a listing, or those
 * of a split. Uses names only. */
#ifndef HPCT_AGENT_DATA_UNLABELLED_H
#define HPCT_AGENT_DATA_UNLABELLED_H

#include "agent/data/entries.h"

#include <hpctrain/dataset.h>

/* Keeps the pictures, sorted by name; there are no classes, and all labels are 0. Folders of
 * classes have no meaning. If pictures lie in folders named as the training split and as another
 * one, only the split's stay, with a note about those in neither; validation and test stand for
 * each other. HPCT_ERR_NO_INPUT if there are none. `path` is for messages. */
hpct_status hpct_data_unlabelled_choose(hpct_data_listing *listing, hpct_split split,
                                        const char *path);

#endif
