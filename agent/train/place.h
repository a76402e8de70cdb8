/* agent/train/place.h - where a run is, and its JSON in a checkpoint. */
#ifndef HPCT_AGENT_TRAIN_PLACE_H
#define HPCT_AGENT_TRAIN_PLACE_H

#include "agent/results/history.h"
#include "agent/train/watch.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The best epoch so far. */
typedef struct hpct_train_best {
    bool has;
    double value;
    char monitor[40]; /* that it is a value of */
} hpct_train_best;

/* Where a run is, between two steps. */
typedef struct hpct_train_place {
    int64_t epoch, step;            /* steps done of that epoch, from 0 */
    double loss, correct, in_top_k; /* sums over the epoch's steps so far */
    int64_t samples, steps;         /* that they cover */
    double first_loss, last_loss, mean_loss;
    bool has_loss;
    hpct_results_history_place logs;
    hpct_train_best best;
    hpct_train_watch_notes watch;
    int halvings; /* of the learning rate, by --on-nan resume */
} hpct_train_place;

/* NULL if out of memory. Numbers that are not finite are null. */
json_t *hpct_train_place_to_json(const hpct_train_place *place);
/* HPCT_ERR_DATA, naming the key, if something is missing, of another type, or out of range. */
hpct_status hpct_train_place_from_json(const json_t *from, hpct_train_place *place);

#endif
