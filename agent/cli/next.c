/* Prints the command that evaluates what fit has saved. */
#include "agent/cli/cli.h"
#include "base/hint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool lasts(const char *data)
{
    return data != NULL && (strncmp(data, "synthetic", 9) == 0 || hpct_hint_lasts(data));
}

/* Writes the number with the fewest digits that read back as the same. */
static void write_number(char *text, size_t size, double number)
{
    int digits = 1;
    do
        snprintf(text, size, "%.*g", digits, number);
    while (strtod(text, NULL) != number && ++digits <= 17);
}

static void print_model(const hpct_cli_choice *model)
{
    static const char *const scales[] = {"unit", "symmetric", "none"};
    char classes[16], size[32];
    snprintf(classes, sizeof classes, "%d", model->classes);
    snprintf(size, sizeof size, "%dx%d", model->width, model->height);
    hpct_hint_word(stdout, "--model", model->name);
    hpct_hint_word(stdout, "--classes", model->classes > 0 ? classes : NULL);
    hpct_hint_word(stdout, "--resize", model->width > 0 ? size : NULL);
    hpct_hint_word(stdout, "--scale", model->has_scaling ? scales[model->scaling] : NULL);
}

/* A model's name may be that of a file. */
static bool model_lasts(const char *name)
{
    return strpbrk(name, "./") == NULL || hpct_hint_lasts(name);
}

void hpct_cli_say_evaluate(const hpct_cli_common *a, const char *weights, const char *data,
                           const char *labels)
{
    char share[32];
    if (weights == NULL || !hpct_hint_lasts(weights) || !model_lasts(a->model.name) ||
        !lasts(data) || !hpct_hint_lasts(labels))
        return;
    write_number(share, sizeof share, a->validation_split);
    fputs("to evaluate the weights: hpc-train evaluate", stdout);
    print_model(&a->model);
    hpct_hint_word(stdout, "--weights", weights);
    hpct_hint_word(stdout, "--data", data);
    hpct_hint_word(stdout, "--labels", labels);
    hpct_hint_word(stdout, "--validation-split", a->validation_split > 0 ? share : NULL);
    putchar('\n');
    fflush(stdout);
}
