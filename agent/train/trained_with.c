/* A JSON object: {"scale": "unit", "resize": [width, height] or null, "outputs": 10}. */
#include "agent/train/trained_with.h"

#include "agent/checkpoint/store.h"
#include "agent/data/dataset.h"
#include "base/status.h"
#include "nn/file/weights.h"
#include "nn/run/step.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const scales[] = {
    [HPCT_SCALE_UNIT] = "unit", [HPCT_SCALE_SYMMETRIC] = "symmetric", [HPCT_SCALE_NONE] = "none"};
#define NUM_SCALES ((int) (sizeof scales / sizeof *scales))

hpct_status hpct_train_trained_with_note(hpct_model *model, const hpct_dataset *train)
{
    const hpct_dataset_options *o = &train->options;
    hpct_shape output = hpct_model_output_shape(model);
    json_t *size = o->height > 0 ? json_pack("[i, i]", o->width, o->height) : json_null();
    json_t *object = json_pack("{s:s, s:o, s:i}", "scale", scales[o->scaling], "resize", size,
                               "outputs", output.size[output.rank - 1]);
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    hpct_status status =
        text != NULL ? hpct_model_set_trained_with(model, text) : hpct_fail_memory(0);
    free(text);
    return status;
}

/* Other programs' files may have anything under this name. */
static void parse(const json_t *object, hpct_trained_with *out)
{
    const char *scale = json_string_value(json_object_get(object, "scale"));
    const json_t *size = json_object_get(object, "resize");
    json_int_t width = json_integer_value(json_array_get(size, 0));
    json_int_t height = json_integer_value(json_array_get(size, 1));
    json_int_t outputs = json_integer_value(json_object_get(object, "outputs"));
    for (int i = 0; scale != NULL && i < NUM_SCALES; i++) {
        if (strcmp(scale, scales[i]) == 0)
            *out = (hpct_trained_with){.known = true, .scaling = (hpct_scaling) i};
    }
    if (!out->known)
        return;
    if (width > 0 && width <= INT16_MAX && height > 0 && height <= INT16_MAX) {
        out->width = (int) width;
        out->height = (int) height;
    }
    out->outputs = outputs > 0 && outputs <= INT32_MAX ? (int) outputs : 0;
}

static hpct_status read_checkpoint(const char *path, json_t **object)
{
    hpct_ckpt *checkpoint;
    HPCT_TRY(hpct_ckpt_store_load(&checkpoint, path, NULL, NULL));
    json_t *state = json_loads(hpct_ckpt_state(checkpoint), 0, NULL);
    *object = json_incref(json_object_get(state, "trained_with"));
    json_decref(state);
    hpct_ckpt_free(checkpoint);
    return HPCT_OK;
}

static hpct_status read_file(const char *path, json_t **object)
{
    char *text = NULL;
    HPCT_TRY(hpct_weights_trained_with(path, &text));
    *object = text != NULL ? json_loads(text, 0, NULL) : NULL;
    free(text);
    return HPCT_OK;
}

hpct_status hpct_trained_with_read(hpct_trained_with *out, const char *weights)
{
    struct stat info;
    json_t *object = NULL;
    bool is_folder = stat(weights, &info) == 0 && S_ISDIR(info.st_mode);
    *out = (hpct_trained_with){.known = false};
    HPCT_TRY(is_folder ? read_checkpoint(weights, &object) : read_file(weights, &object));
    parse(object, out);
    json_decref(object);
    return HPCT_OK;
}
