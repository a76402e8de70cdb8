#include "agent/cost/made_up.h"

#include "base/status.h"
#include "nn/run/step.h"

hpct_status hpct_cost_made_up_batch(hpct_model *model, int count, int seed)
{
    hpct_shape input = hpct_model_input_shape(model);
    int classes = hpct_model_count_labels(model);
    float *pixels = hpct_model_input(model);
    int32_t *labels = hpct_model_labels(model);
    size_t elements = (size_t) count;
    if (pixels == NULL)
        return hpct_fail_memory(0);
    uint64_t state = (uint64_t) seed;
    for (int i = 0; i < input.rank; i++)
        elements *= (size_t) input.size[i];
    for (size_t i = 0; i < elements; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's
                                                                                          MMIX */
        pixels[i] = (float) (state >> 56) * (1.0f / 255.0f);
    }
    for (int i = 0; i < count; i++)
        labels[i] = i % classes;
    return HPCT_OK;
}
