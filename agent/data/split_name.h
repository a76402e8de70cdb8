/* agent/data/split_name.h - tells from a name which split it denotes, or that it is not a class. */
#ifndef HPCT_AGENT_DATA_SPLIT_NAME_H
#define HPCT_AGENT_DATA_SPLIT_NAME_H

#include <hpctrain/dataset.h>
#include <stdbool.h>
#include <stddef.h>

#define HPCT_DATA_NO_SPLIT (-1)
#define HPCT_DATA_MANY_SPLITS (-2)

/* The split that name[0 … length) is a usual name of, case-insensitive, or HPCT_DATA_NO_SPLIT. */
int hpct_data_split_word(const char *name, size_t length);

/* The split named by the words (runs of letters) in it: "cifar10-train-0.tar" is HPCT_TRAIN;
 * HPCT_DATA_MANY_SPLITS if words name different splits. */
int hpct_data_split_within(const char *name, size_t length);

/* Whether it describes files, not what they show: "images", "masks", "part_1", "fold10". */
bool hpct_data_names_part(const char *name, size_t length);

/* "training", "test", "validation". */
const char *hpct_data_split_text(hpct_split split);

#endif
