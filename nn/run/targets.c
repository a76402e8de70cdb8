/* Rows of targets that a loss takes instead of labels: the caller's, or the model's own, filled by
 * its caller or from the labels of mixed samples. A device has a copy, sent before the loss. */
#include "base/status.h"
#include "nn/run/run.h"
#include "nn/run/step.h"

#include <stdint.h>
#include <string.h>

float *hpct_model_targets(hpct_model *model)
{
    return model->run != NULL ? model->run->input.own_targets : NULL;
}

void hpct_model_set_targets(hpct_model *model, const float *targets)
{
    if (model->run != NULL && model->run->dense_targets) /* else a stage without the loss */
        hpct_run_set_targets(model->run, targets);
}

static hpct_status check(const hpct_run *run)
{
    return run->dense_targets ? HPCT_OK
                              : hpct_fail(HPCT_ERR_INTERNAL,
                                          "rows of targets are given to a model built for labels");
}

hpct_status hpct_model_mix_labels(hpct_model *model, int n, const int32_t *others,
                                  const float *shares)
{
    hpct_run *run = model->run;
    const int32_t *labels = run->input.given_labels;
    size_t classes = (size_t) run->loss.classes;
    float *row = run->input.own_targets;
    hpct_run_set_targets(run, others != NULL ? row : NULL);
    if (others == NULL)
        return HPCT_OK;
    HPCT_TRY(check(run));
    for (int i = 0; i < n; i++, row += classes) {
        memset(row, 0, classes * sizeof *row);
        row[labels[i]] = shares[i];
        row[others[i]] += 1 - shares[i];
    }
    return HPCT_OK;
}

/* The mark: the caller's rows may be overwritten once it is reached. */
hpct_status hpct_run_send_targets(hpct_run *run, int n)
{
    const hpct_backend_device *device = run->backend->device;
    size_t bytes = (size_t) n * (size_t) run->loss.classes * sizeof(float);
    if (run->input.given_targets == NULL)
        return HPCT_OK;
    HPCT_TRY(check(run));
    if (device == NULL)
        return HPCT_OK;
    HPCT_TRY(device->send(run->input.targets, run->input.given_targets, bytes));
    return device->mark(HPCT_BACKEND_MARK_DRAWN);
}
