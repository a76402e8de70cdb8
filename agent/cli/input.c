/* --data and what becomes of its pictures: --resize, --scale, --augment. */
#include "agent/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 8192
#define SYNTHETIC_SAMPLES 1024

void hpct_cli_resize(const char *value, int *width, int *height)
{
    int end = 0;
    if (sscanf(value, "%dx%d%n", width, height, &end) != 2 || value[end] != '\0' || *width < 1 ||
        *height < 1 || *width > MAX_SIDE || *height > MAX_SIDE)
        hpct_cli_usage("--resize: '%s' is not WIDTHxHEIGHT, 1 to %d each", value, MAX_SIDE);
}

void hpct_cli_scale(const char *value, hpct_dataset_options *out)
{
    static const char *const names[] = {[HPCT_SCALE_UNIT] = "unit",
                                        [HPCT_SCALE_SYMMETRIC] = "symmetric",
                                        [HPCT_SCALE_NONE] = "none"};
    for (int i = 0; i <= HPCT_SCALE_NONE; i++) {
        if (strcmp(value, names[i]) == 0) {
            out->scaling = (hpct_scaling) i;
            return;
        }
    }
    hpct_cli_usage("--scale: '%s' is unknown; there are: unit, symmetric, none", value);
}

void hpct_cli_augment(const char *value, hpct_dataset_options *out)
{
    char copy[256], *state = NULL;
    if (strlen(value) >= sizeof copy)
        hpct_cli_usage("--augment: '%s' is too long", value);
    strcpy(copy, value);
    for (char *word = strtok_r(copy, ",", &state); word != NULL;
         word = strtok_r(NULL, ",", &state)) {
        if (strcmp(word, "flip") == 0)
            out->flip = true;
        else if (strncmp(word, "crop:", 5) == 0)
            out->crop = (int) hpct_cli_integer("augment=crop", word + 5, 1, MAX_SIDE);
        else
            hpct_cli_usage("--augment: '%s' is unknown; there are: flip, crop:PIXELS", word);
    }
}

/* "synthetic" or "synthetic:SAMPLES"; where that is no number the library refuses 0 samples. */
static bool is_synthetic(const char *path, size_t *samples)
{
    static const char name[] = "synthetic";
    const char *rest = path + sizeof name - 1;
    if (strncmp(path, name, sizeof name - 1) != 0 || (*rest != '\0' && *rest != ':'))
        return false;
    int64_t number = SYNTHETIC_SAMPLES;
    int end = 0;
    if (*rest == ':' &&
        (sscanf(rest, ":%" SCNd64 "%n", &number, &end) != 1 || rest[end] != '\0' || number < 0))
        number = 0;
    *samples = (size_t) number;
    return true;
}

hpct_status hpct_cli_open_data(hpct_dataset **out, const char *path, hpct_split split,
                               const hpct_model *model, const hpct_dataset_options *options)
{
    hpct_dataset_options all = *options;
    hpct_shape input = hpct_model_input_shape(model), output = hpct_model_output_shape(model);
    size_t samples;
    if (split != HPCT_TRAIN) {
        all.flip = false;
        all.crop = 0;
    }
    if (path != NULL && is_synthetic(path, &samples))
        return hpct_dataset_synthetic(out, input, output.size[output.rank - 1], samples, split,
                                      &all);
    if (input.rank == 2 || (input.rank == 3 && input.size[2] == 1))
        all.channels = 1;
    return hpct_dataset_open_as(out, path, split, &all);
}
