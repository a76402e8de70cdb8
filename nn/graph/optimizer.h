/* nn/graph/optimizer.h - table of optimizers: names, slots, defaults, requirements. The arithmetic
 * is in the backends (hpct_backend_update_call in nn/backend/backend.h). */
#ifndef HPCT_NN_GRAPH_OPTIMIZER_H
#define HPCT_NN_GRAPH_OPTIMIZER_H

#include <hpctrain/optimizer.h>
#include <stdbool.h>

/* Slots: arenas of the same layout as the parameters'. */
#define HPCT_GRAPH_MAX_SLOTS 3
#define HPCT_GRAPH_SLOT_ACCUMULATED HPCT_GRAPH_MAX_SLOTS /* accumulated gradients */
#define HPCT_GRAPH_NUM_SLOTS (HPCT_GRAPH_MAX_SLOTS + 1)

typedef struct hpct_graph_optimizer_class {
    const char *name;
    const char *slots[HPCT_GRAPH_MAX_SLOTS];      /* Keras' names; NULL after the last */
    bool by_parameter;                            /* needs the norm of each parameter */
    double learning_rate, momentum, weight_decay; /* defaults */
} hpct_graph_optimizer_class;

/* By kind. */
extern const hpct_graph_optimizer_class hpct_graph_optimizers[HPCT_OPTIMIZER_KINDS];

/* Copies with defaults resolved; HPCT_ERR_USAGE if invalid. */
hpct_status hpct_graph_optimizer_resolve(hpct_optimizer *out, const hpct_optimizer *optimizer);

/* Of a resolved optimizer: number of slots; whether parameters must be updated separately; whether
 * the update is weight -= rate * gradient, which backward can fuse. */
int hpct_graph_optimizer_num_slots(const hpct_optimizer *optimizer);
bool hpct_graph_optimizer_by_parameter(const hpct_optimizer *optimizer);
bool hpct_graph_optimizer_is_plain(const hpct_optimizer *optimizer);

#endif
