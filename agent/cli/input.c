/* --data and preparation of its pictures: --resize, --scale, --augment. */
#include "agent/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 8192
#define SYNTHETIC_SAMPLES 1024
#define MAX_OPERATIONS 16 /* of rand-augment */
#define MAX_ALPHA 100     /* of mixup and cutmix */

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

/* OPERATIONS:STRENGTH of rand-augment; `value` is overwritten. */
static void read_rand_augment(char *value, hpct_dataset_options *out)
{
    char *colon = strchr(value, ':');
    if (colon == NULL)
        hpct_cli_usage("--augment=rand-augment: '%s' is not OPERATIONS:STRENGTH", value);
    *colon = '\0';
    out->rand_augment = (int) hpct_cli_integer("augment=rand-augment", value, 0, MAX_OPERATIONS);
    out->rand_augment_factor = hpct_cli_number("augment=rand-augment", colon + 1, 0, 1);
}

/* Returns what follows "NAME:" in a word, or NULL. */
static char *value_of(char *word, const char *name)
{
    size_t length = strlen(name);
    return strncmp(word, name, length) == 0 && word[length] == ':' ? word + length + 1 : NULL;
}

/* Whether the word is one of those with a number. */
static bool read_number(char *word, hpct_dataset_options *out)
{
    const struct {
        const char *name, *option;
        double most, *at;
    } words[] = {{"rotation", "augment=rotation", 1, &out->rotation},
                 {"zoom", "augment=zoom", 1, &out->zoom},
                 {"translation", "augment=translation", 1, &out->translation},
                 {"contrast", "augment=contrast", 1, &out->contrast},
                 {"mixup", "augment=mixup", MAX_ALPHA, &out->mixup},
                 {"cutmix", "augment=cutmix", MAX_ALPHA, &out->cutmix}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *value = value_of(word, words[i].name);
        if (value == NULL)
            continue;
        *words[i].at = hpct_cli_number(words[i].option, value, 0, words[i].most);
        return true;
    }
    return false;
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
        char *rest;
        if (strcmp(word, "flip") == 0)
            out->flip = true;
        else if ((rest = value_of(word, "crop")) != NULL)
            out->crop = (int) hpct_cli_integer("augment=crop", rest, 1, MAX_SIDE);
        else if ((rest = value_of(word, "rand-augment")) != NULL)
            read_rand_augment(rest, out);
        else if (!read_number(word, out))
            hpct_cli_usage("--%s: '%s' is unknown; there are: flip, crop:PIXELS, rotation:FACTOR, "
                           "zoom:FACTOR, translation:FACTOR, contrast:FACTOR, "
                           "rand-augment:OPERATIONS:STRENGTH, "
                           "mixup:ALPHA, cutmix:ALPHA",
                           option, word);
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

static void drop_augmentation(hpct_dataset_options *options)
{
    options->flip = false;
    options->crop = options->rand_augment = 0;
    options->rotation = options->zoom = options->translation = options->contrast = 0;
    options->mixup = options->cutmix = 0;
}

hpct_status hpct_cli_open_data(hpct_dataset **out, const char *path, hpct_split split,
                               const hpct_model *model, const hpct_dataset_options *options)
{
    hpct_dataset_options all = *options;
    hpct_shape input = hpct_model_input_shape(model);
    size_t samples;
    if (split != HPCT_TRAIN)
        drop_augmentation(&all);
    if (path != NULL && is_synthetic(path, &samples))
        return hpct_dataset_synthetic(out, input, hpct_model_count_labels(model), samples, split,
                                      &all);
    if (input.rank == 2 || (input.rank == 3 && input.size[2] == 1) ||
        (input.rank == 1 && input.size[0] % 3 != 0)) /* a flat vector, not of colours */
        all.channels = 1;
    return hpct_dataset_open_as(out, path, split, &all);
}

hpct_status hpct_cli_open_labelled(hpct_dataset **out, const char *path, const char *labels,
                                   hpct_split split, const hpct_model *model,
                                   const hpct_dataset_options *options)
{
    hpct_dataset_options all = *options;
    all.unlabelled = labels != NULL;
    hpct_status status = hpct_cli_open_data(out, path, split, model, &all);
    return status == HPCT_OK && labels != NULL ? hpct_dataset_read_labels(*out, labels, model)
                                               : status;
}
