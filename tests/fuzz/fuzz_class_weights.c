/* A file of --class-weight: every weight that is taken is a number from 0. */
#include <math.h>

#include "agent/train/class_weights.h"
#include "tests/fuzz/fuzz.h"

#define LABELS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char cat[] = "cat", dog[] = "dog", *names[] = {cat, dog};
    char *text = strndup((const char *) data, size);
    double weights[LABELS];
    must(text != NULL);
    if (hpct_train_class_weights_parse(weights, LABELS, text, names, 2, "weights") == HPCT_OK) {
        for (int i = 0; i < LABELS; i++) {
            if (!(weights[i] >= 0) || !isfinite(weights[i]))
                abort();
        }
    }
    free(text);
    return 0;
}
