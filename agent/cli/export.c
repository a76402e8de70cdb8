/* hpc-train export */
#include "agent/cli/cli.h"

#include <stdio.h>
#include <string.h>

typedef struct export_options {
    const char *format, *output;
} export_options;

static const char *const formats[] = {"onnx", "keras", "safetensors", NULL};

#define FILLS export_options
static const hpct_cli_option options_of_export[] = {
    {"format", "NAME", "onnx, keras or safetensors (default: by the name of the file)", 0, 0,
     WORD(format, formats)},
    {"output", "FILE",
     "the file: NAME.onnx; NAME.keras, NAME.weights.h5 or NAME.json for Keras; NAME.safetensors", 0,
     0, TEXT(output)},
    {0},
};
#undef FILLS

typedef hpct_status save_function(const hpct_model *model, const char *path);

/* By the end of the name. */
static const struct writer {
    const char *end, *format;
    save_function *save;
} writers[] = {
    {".onnx", "onnx", hpct_model_save_onnx},
    {".keras", "keras", hpct_model_save_keras},
    {".weights.h5", "keras", hpct_model_save_weights},
    {".json", "keras", hpct_model_save_json},
    {".safetensors", "safetensors", hpct_model_save_weights},
};
#define NUM_WRITERS (sizeof writers / sizeof writers[0])

static const struct writer *find_writer(const export_options *o)
{
    size_t length = strlen(o->output);
    for (size_t i = 0; i < NUM_WRITERS; i++) {
        const struct writer *w = &writers[i];
        size_t end = strlen(w->end);
        bool fits = length > end && strcmp(o->output + length - end, w->end) == 0;
        if (fits && (o->format == NULL || strcmp(o->format, w->format) == 0))
            return w;
        if (fits)
            hpct_cli_usage("--format %s: the name of %s is one for %s", o->format, o->output,
                           w->format);
    }
    hpct_cli_usage("--output %s: give a name that ends in .onnx, .keras, .weights.h5, .json or "
                   ".safetensors",
                   o->output);
}

static const struct writer *check(const hpct_cli_common *a, const export_options *o)
{
    const hpct_cli_file output = {"--output", o->output};
    const hpct_cli_file inputs[] = {{"--weights", a->weights}, {"--model", a->model.name}};
    if (a->weights == NULL)
        hpct_cli_usage("--weights is missing: a file written by fit --save-weights, or a folder of "
                       "checkpoints");
    if (o->output == NULL)
        hpct_cli_usage("--output is missing: the file to write, for example model.onnx");
    hpct_cli_keep(&output, 1, inputs, sizeof inputs / sizeof inputs[0]);
    return find_writer(o);
}

static int run(int argc, char **argv)
{
    static const char doc[] =
        "Writes a model with saved weights, or those of a checkpoint, for other programs.";
    hpct_cli_common a = {0};
    export_options options = {0};
    const hpct_cli_table tables[] = {
        {hpct_cli_common_options, &a}, {options_of_export, &options}, {NULL, NULL}};
    const hpct_cli_model *defaults;
    hpct_model *model = NULL;
    hpct_status status = HPCT_OK;
    hpct_cli_parse(HPCT_CLI_EXPORT, doc, tables, argc, argv);
    const struct writer *writer = check(&a, &options);
    if (hpct_context_rank_hint() != 0)
        return HPCT_OK;
    hpct_cli_recall(&a, false);
    status = hpct_cli_make_model(&model, &defaults, &a.model, -1, 0);
    if (status == HPCT_OK)
        status = hpct_cli_load_weights(model, a.weights, a.allow_nan);
    if (status == HPCT_OK)
        status = writer->save(model, options.output);
    if (status == HPCT_OK)
        printf("%s: model %s, %zu parameters\n", options.output, hpct_model_name(model),
               hpct_model_count_parameters(model));
    status = hpct_context_finish(NULL, "hpc-train", status);
    hpct_model_free(model);
    return (int) status;
}

const hpct_command hpct_command_export = {
    .name = "export",
    .summary = "write a model with its weights for ONNX, Keras and others",
    .run = run,
};
