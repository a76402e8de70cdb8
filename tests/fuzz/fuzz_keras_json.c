/* Fuzz target: a model as Keras' JSON. What is read can be written, and that is read again. */
#include "nn/file/keras/keras.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hpct_model *model, *again;
    char *text;
    if (hpct_model_from_json_sized(&model, (const char *) data, size, 9, 8) != HPCT_OK)
        return 0;
    if (hpct_keras_write(&text, model) != HPCT_OK ||
        hpct_model_from_json(&again, text, strlen(text)) != HPCT_OK)
        abort();
    hpct_model_free(again);
    hpct_model_free(model);
    free(text);
    return 0;
}
