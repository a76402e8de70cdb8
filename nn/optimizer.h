/* nn/optimizer.h - the table of optimizers: names, slots, defaults, and what their update needs to
 * know. The arithmetic is the backends' (hpct_update_call in nn/backend.h). */
#ifndef HPCT_NN_OPTIMIZER_H
#define HPCT_NN_OPTIMIZER_H

#include <hpctrain/optimizer.h>
#include <stdbool.h>

/* Slots: arenas like the parameters', one number for each number there. */
#define HPCT_MAX_SLOTS 3
#define HPCT_SLOT_ACCUMULATED HPCT_MAX_SLOTS /* gradients that await their update */
#define HPCT_NUM_SLOTS (HPCT_MAX_SLOTS + 1)

typedef struct hpct_optimizer_class {
    const char *name;
    const char *slots[HPCT_MAX_SLOTS];            /* Keras' names; NULL behind the last */
    bool by_parameter;                            /* the update needs norms of each parameter */
    double learning_rate, momentum, weight_decay; /* defaults */
} hpct_optimizer_class;

/* By kind. */
extern const hpct_optimizer_class hpct_optimizers[HPCT_OPTIMIZER_KINDS];

/* Copies with all defaults filled in; HPCT_ERR_USAGE for what cannot be. */
hpct_status hpct_optimizer_resolve(hpct_optimizer *out, const hpct_optimizer *optimizer);

/* Of a resolved one: how many slots it has; whether it must be given each parameter by itself;
 * whether an update is no more than weight -= rate * gradient, which backward can do. */
int hpct_optimizer_num_slots(const hpct_optimizer *optimizer);
bool hpct_optimizer_by_parameter(const hpct_optimizer *optimizer);
bool hpct_optimizer_is_plain(const hpct_optimizer *optimizer);

#endif
