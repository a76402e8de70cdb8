/* Means over samples. */
#include "agent/train/means.h"

#include "nn/run/step.h"

#include <math.h>

hpct_results_metric_choice hpct_train_metrics_chosen(const hpct_fit_options *options,
                                                     const hpct_model *model)
{
    bool numbers = hpct_model_judged(model) == HPCT_TARGETS_NUMBERS;
    return (hpct_results_metric_choice){.validation = options->validation != NULL,
                                        .top_k = hpct_model_top_k(model) > 0,
                                        .classes = !numbers,
                                        .numbers = numbers,
                                        .requested = options->metrics};
}

hpct_metrics hpct_train_metrics_of(const hpct_model *model, double loss, double correct,
                                   double in_top_k, int64_t samples)
{
    double n = (double) samples;
    if (hpct_model_judged(model) == HPCT_TARGETS_NUMBERS)
        return (hpct_metrics){
            .loss = loss / n, .accuracy = NAN, .mae = correct / n, .mse = in_top_k / n};
    return (hpct_metrics){
        .loss = loss / n, .accuracy = correct / n, .top_k_accuracy = in_top_k / n};
}
