/* Hashes, which rank 0 sends to the others. */
#include "agent/predict/alike.h"

#include "agent/data/dataset.h"
#include "agent/data/fingerprint.h"
#include "agent/rank/context.h"
#include "base/status.h"
#include "nn/run/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct facts {
    uint64_t size, data, weights;
} facts;

/* FNV-1a (Fowler, Noll, Vo), over words: there may be hundreds of millions. */
static uint64_t add(uint64_t hash, const float *floats, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &floats[i], sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Without moving statistics: after hpct_fit each rank may have those of its own samples. */
static hpct_status hash_weights(const hpct_model *model, uint64_t *hash)
{
    hpct_state_list list;
    HPCT_TRY(hpct_state_list_make(&list, model));
    float *floats = malloc(list.largest * sizeof *floats);
    hpct_status status = floats != NULL ? HPCT_OK : hpct_fail_memory(list.largest * sizeof *floats);
    *hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < list.count && status == HPCT_OK; i++) {
        const hpct_state_value *value = &list.values[i];
        if (value->slot != HPCT_STATE_PARAM || value->is_state)
            continue;
        status = hpct_state_get(model, value->param, value->slot, floats);
        if (status == HPCT_OK)
            *hash = add(*hash, floats, value->count);
    }
    free(floats);
    hpct_state_list_free(&list);
    return status;
}

static hpct_status compare(const hpct_dataset *dataset, const facts *own, const facts *first)
{
    if (own->size != first->size)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s has %" PRIu64 " pictures here and %" PRIu64 " on rank 0: all ranks "
                         "need the same ones, also while some are still added",
                         dataset->path, own->size, first->size);
    if (own->data != first->data)
        return hpct_fail(HPCT_ERR_DATA,
                         "%s has other pictures here than on rank 0: all ranks need the same ones",
                         dataset->path);
    if (own->weights != first->weights)
        return hpct_fail(HPCT_ERR_DATA,
                         "the weights are others here than on rank 0: all ranks need the same "
                         "file, or one checkpoint where a run still saves new ones");
    return HPCT_OK;
}

hpct_status hpct_alike_check(hpct_context *context, const hpct_model *model,
                             const hpct_dataset *dataset)
{
    hpct_comm *comm = hpct_context_comm(context);
    facts own = {.size = dataset->size};
    if (comm->size == 1)
        return HPCT_OK;
    own.data = hpct_dataset_fingerprint(dataset);
    HPCT_TRY(hpct_context_agree(context, hash_weights(model, &own.weights)));
    facts first = own;
    HPCT_TRY(comm->ops->broadcast(comm, &first, sizeof first, 0));
    return hpct_context_agree(context, compare(dataset, &own, &first));
}
