/* Snapshots are in Keras' layout, as in an unbuilt model: restoring moves pointers. */
#include "nn/run/snapshot.h"

#include "base/status.h"
#include "nn/plan/run.h"

#include <stdlib.h>
#include <string.h>

#define PARTS (1 + HPCT_GRAPH_NUM_SLOTS)

struct hpct_run_snapshot {
    int64_t steps;
    hpct_graph_loss_scaling scaling;
    int num_params;
    float *parts[][PARTS]; /* value and slots of each parameter; NULL if never set */
};

static float **part_of(hpct_graph_param *param, int part)
{
    return part == 0 ? &param->value : &param->slot[part - 1];
}

size_t hpct_run_snapshot_bytes(const hpct_model *model)
{
    size_t floats = 0;
    for (int i = 0; i < model->num_params; i++)
        floats +=
            hpct_graph_shape_count(&model->params[i].shape) * (model->params[i].state ? 1 : PARTS);
    return floats * sizeof(float);
}

hpct_status hpct_run_snapshot_take(hpct_run_snapshot **out, hpct_model *model)
{
    HPCT_TRY(hpct_model_unbuild(model));
    size_t size = sizeof(hpct_run_snapshot) + (size_t) model->num_params * sizeof(float *[PARTS]);
    hpct_run_snapshot *snapshot = calloc(1, size);
    if (snapshot == NULL)
        return hpct_fail_memory(size);
    snapshot->steps = model->steps;
    snapshot->scaling = model->scaling;
    snapshot->num_params = model->num_params;
    for (int i = 0; i < model->num_params; i++) {
        hpct_graph_param *param = &model->params[i];
        size_t bytes = hpct_graph_shape_count(&param->shape) * sizeof(float);
        for (int part = 0; part < PARTS; part++) {
            const float *from = *part_of(param, part);
            if (from == NULL)
                continue;
            snapshot->parts[i][part] = malloc(bytes);
            if (snapshot->parts[i][part] == NULL) {
                hpct_run_snapshot_free(snapshot);
                return hpct_fail_memory(bytes);
            }
            memcpy(snapshot->parts[i][part], from, bytes);
        }
    }
    *out = snapshot;
    return HPCT_OK;
}

hpct_status hpct_run_snapshot_restore(hpct_run_snapshot *snapshot, hpct_model *model)
{
    HPCT_TRY(hpct_model_unbuild(model));
    model->steps = snapshot->steps;
    model->scaling = snapshot->scaling;
    for (int i = 0; i < snapshot->num_params; i++) {
        for (int part = 0; part < PARTS; part++) {
            float **to = part_of(&model->params[i], part);
            free(*to);
            *to = snapshot->parts[i][part];
            snapshot->parts[i][part] = NULL;
        }
    }
    return HPCT_OK;
}

void hpct_run_snapshot_free(hpct_run_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    for (int i = 0; i < snapshot->num_params; i++) {
        for (int part = 0; part < PARTS; part++)
            free(snapshot->parts[i][part]);
    }
    free(snapshot);
}
