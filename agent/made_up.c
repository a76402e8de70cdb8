/* Pictures and labels that nobody took. */
#include "agent/made_up.h"

#include "base/status.h"
#include "nn/step.h"

hpct_status hpct_make_up_batch(hpct_model *model, int n, uint64_t seed)
{
    hpct_shape input = hpct_model_input_shape(model);
    hpct_shape output = hpct_model_output_shape(model);
    float *pixels = hpct_model_input(model);
    int32_t *labels = hpct_model_labels(model);
    size_t elements = (size_t) n;
    if (pixels == NULL)
        return hpct_fail_memory(0);
    for (int i = 0; i < input.rank; i++)
        elements *= (size_t) input.size[i];
    for (size_t i = 0; i < elements; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's */
        pixels[i] = (float) (seed >> 56) * (1.0f / 255.0f);
    }
    for (int i = 0; i < n; i++)
        labels[i] = i % output.size[output.rank - 1];
    return HPCT_OK;
}
