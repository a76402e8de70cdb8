/* Joins slices of tensors. Their tables are untrusted. */
#include "agent/checkpoint/tensors.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int64_t rows_of(const hpct_ckpt_store_tensor *tensor)
{
    return tensor->rank > 0 ? tensor->shape[0] : 1;
}

static int by_name_and_rows(const void *a, const void *b)
{
    const hpct_ckpt_tensors_slice *x = a, *y = b;
    int order = strcmp(x->tensor->name, y->tensor->name);
    if (order != 0)
        return order;
    if (x->tensor->begin != y->tensor->begin)
        return x->tensor->begin < y->tensor->begin ? -1 : 1;
    int64_t of_x = rows_of(x->tensor), of_y = rows_of(y->tensor);
    return (of_x > of_y) - (of_x < of_y); /* empty ones first */
}

static hpct_status gather(hpct_ckpt_tensors *out, const hpct_ckpt_part *parts, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += parts[i].index.count;
    out->slices = calloc(total + 1, sizeof *out->slices);
    out->wholes = calloc(total + 1, sizeof *out->wholes);
    if (out->slices == NULL || out->wholes == NULL)
        return hpct_fail_memory((total + 1) * (sizeof *out->slices + sizeof *out->wholes));
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < parts[i].index.count; k++)
            out->slices[out->num_slices++] = (hpct_ckpt_tensors_slice){
                .tensor = &parts[i].tensors[k],
                .part = i,
                .at = parts[i].index.data_at + parts[i].index.entries[k].begin};
    }
    qsort(out->slices, total, sizeof *out->slices, by_name_and_rows);
    return HPCT_OK;
}

/* Whether two slices may be of one tensor. */
static bool agree(const hpct_ckpt_store_tensor *a, const hpct_ckpt_store_tensor *b)
{
    bool same = a->type == b->type && a->rank == b->rank && a->of == b->of;
    for (int i = 1; i < a->rank && same; i++)
        same = a->shape[i] == b->shape[i];
    return same;
}

/* The tensor that begins with slice `first`; out->count is how many slices it has. */
static hpct_status join(hpct_ckpt_tensors_whole *out, const hpct_ckpt_tensors_slice *slices,
                        size_t first, size_t num_slices)
{
    const hpct_ckpt_store_tensor *head = slices[first].tensor;
    int64_t at = 0;
    *out = (hpct_ckpt_tensors_whole){.tensor = *head, .first = first};
    for (size_t i = first; i < num_slices && strcmp(slices[i].tensor->name, head->name) == 0; i++) {
        const hpct_ckpt_store_tensor *slice = slices[i].tensor;
        out->count++;
        if (!agree(head, slice))
            return hpct_fail(HPCT_ERR_DATA,
                             "tensor \"%.80s\": its slices have different types or "
                             "shapes",
                             head->name);
        if (slice->begin != at || (head->of == 0 && out->count > 1))
            return hpct_fail(HPCT_ERR_DATA, "tensor \"%.80s\": rows from %" PRId64 " on are %s",
                             head->name, slice->begin < at ? slice->begin : at,
                             slice->begin > at ? "missing" : "there twice");
        at += rows_of(slice);
    }
    if (head->of != 0 && at != head->of)
        return hpct_fail(HPCT_ERR_DATA, "tensor \"%.80s\": rows from %" PRId64 " on are missing",
                         head->name, at);
    if (head->of != 0)
        out->tensor.shape[0] = head->of;
    out->tensor.begin = out->tensor.of = 0;
    return HPCT_OK;
}

hpct_status hpct_ckpt_tensors_join(hpct_ckpt_tensors *out, const hpct_ckpt_part *parts,
                                   size_t count)
{
    *out = (hpct_ckpt_tensors){.count = 0};
    hpct_status status = gather(out, parts, count);
    for (size_t i = 0; i < out->num_slices && status == HPCT_OK;) {
        hpct_ckpt_tensors_whole *whole = &out->wholes[out->count];
        status = join(whole, out->slices, i, out->num_slices);
        out->count++;
        i += whole->count;
    }
    if (status != HPCT_OK)
        hpct_ckpt_tensors_free(out);
    return status;
}

void hpct_ckpt_tensors_free(hpct_ckpt_tensors *tensors)
{
    free(tensors->slices);
    free(tensors->wholes);
    *tensors = (hpct_ckpt_tensors){.count = 0};
}

static int by_name(const void *name, const void *whole)
{
    return strcmp(name, ((const hpct_ckpt_tensors_whole *) whole)->tensor.name);
}

const hpct_ckpt_tensors_whole *hpct_ckpt_tensors_find(const hpct_ckpt_tensors *tensors,
                                                      const char *name)
{
    return bsearch(name, tensors->wholes, tensors->count, sizeof *tensors->wholes, by_name);
}
