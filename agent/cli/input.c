/* --data and preparation of its pictures: --resize, --scale, --augment. */
#include "agent/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 8192
#define SYNTHETIC_SAMPLES 1024

/* Reads digits; sscanf would accept more than fit an int. */
static bool read_side(const char **text, int *side)
{
    size_t digits = strspn(*text, "0123456789");
    *side = digits > 0 && digits <= 4 ? atoi(*text) : 0;
    *text += digits;
    return *side >= 1 && *side <= MAX_SIDE;
}

void hpct_cli_resize(const char *option, const char *value, void *at)
{
    hpct_cli_choice *out = at;
    const char *text = value;
    if (!read_side(&text, &out->width) || *text++ != 'x' || !read_side(&text, &out->height) ||
        *text != '\0')
        hpct_cli_usage("--%s: '%s' is not WIDTHxHEIGHT, 1 to %d each", option, value, MAX_SIDE);
}

void hpct_cli_augment(const char *option, const char *value, void *at)
{
    hpct_dataset_options *out = at;
    char copy[256], *state = NULL;
    if (strlen(value) >= sizeof copy)
        hpct_cli_usage("--%s: '%s' is too long", option, value);
    strcpy(copy, value);
    for (char *word = strtok_r(copy, ",", &state); word != NULL;
         word = strtok_r(NULL, ",", &state)) {
        if (strcmp(word, "flip") == 0)
            out->flip = true;
        else if (strncmp(word, "crop:", 5) == 0)
            out->crop = (int) hpct_cli_integer("augment=crop", word + 5, 1, MAX_SIDE);
        else
            hpct_cli_usage("--%s: '%s' is unknown; there are: flip, crop:PIXELS", option, word);
    }
}

/* "synthetic" or "synthetic:SAMPLES"; *samples is 0 if that is not a number. */
static bool is_synthetic(const char *path, size_t *samples)
{
    static const char name[] = "synthetic";
    const char *rest = path + sizeof name - 1;
    if (strncmp(path, name, sizeof name - 1) != 0 || (*rest != '\0' && *rest != ':'))
        return false;
    int64_t number = SYNTHETIC_SAMPLES;
    char *end;
    if (*rest == ':') {
        errno = 0;
        number = strtoll(rest + 1, &end, 10);
        if (errno != 0 || rest[1] < '0' || rest[1] > '9' || *end != '\0')
            number = 0;
    }
    *samples = (size_t) number;
    return true;
}

void hpct_cli_data(const char *option, const char *value, void *at)
{
    size_t samples;
    if (is_synthetic(value, &samples) && samples == 0)
        hpct_cli_usage("--%s: '%s' is not synthetic:SAMPLES with a whole number from 1 to %lld",
                       option, value, (long long) INT64_MAX);
    *(const char **) at = value;
}

hpct_status hpct_cli_open_data(hpct_dataset **out, const char *path, hpct_split split,
                               const hpct_model *model, const hpct_dataset_options *options)
{
    hpct_dataset_options all = *options;
    hpct_shape input = hpct_model_input_shape(model);
    size_t samples;
    if (split != HPCT_TRAIN) {
        all.flip = false;
        all.crop = 0;
    }
    if (path != NULL && is_synthetic(path, &samples))
        return hpct_dataset_synthetic(out, input, hpct_model_count_labels(model), samples, split,
                                      &all);
    if (input.rank == 2 || (input.rank == 3 && input.size[2] == 1) ||
        (input.rank == 1 && input.size[0] % 3 != 0)) /* a flat vector, not of colours */
        all.channels = 1;
    return hpct_dataset_open_as(out, path, split, &all);
}
