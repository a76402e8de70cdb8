/* agent/cli/cli.h - what the subcommands share. The command uses the public headers alone,
 * and base/nearest.h. */
#ifndef HPCT_CLI_H
#define HPCT_CLI_H

#include <argp.h>
#include <hpctrain/hpctrain.h>
#include <stdbool.h>
#include <stdint.h>

/* A subcommand: one file each. argv[0] is "hpc-train NAME". Returns the exit code. */
typedef struct hpct_command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} hpct_command;

extern const hpct_command hpct_command_fit;
extern const hpct_command hpct_command_evaluate;
extern const hpct_command hpct_command_bench;
extern const hpct_command hpct_command_data;
extern const hpct_command hpct_command_plan;
extern const hpct_command hpct_command_summary;
extern const hpct_command hpct_command_info;

/* Wrong usage: rank 0 prints "hpc-train: …" on stderr, all end with exit code 64. */
__attribute__((format(printf, 1, 2), noreturn)) void hpct_cli_usage(const char *format, ...);

/* The end of that, for what argp has said itself. */
_Noreturn void hpct_cli_end_with_usage(bool spoke);

/* argp_parse for a subcommand: underscores in option names are taken for dashes, an unknown option
 * is refused with what it may have been meant to be, and so are other words, and values that are
 * empty or missing; only rank 0 prints. */
void hpct_cli_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Values of options; hpct_cli_usage when they are not numbers in the range. */
int64_t hpct_cli_integer(const char *option, const char *text, int64_t min, int64_t max);
double hpct_cli_number(const char *option, const char *text, double min, double max);

/* The place of a value among names, NULL behind the last; hpct_cli_usage for others, with the
 * nearest and all that there are. */
int hpct_cli_name(const char *option, const char *value, const char *const names[]);

/* --batch-size: a number, or HPCT_CLI_AUTO. */
#define HPCT_CLI_AUTO (-1)
int hpct_cli_batch_size(const char *value);

/* Puts what the memory allows in the place of HPCT_CLI_AUTO, and has rank 0 print that line, if it
 * `speaks`; collective. Leaves other batch sizes as they are. `context` may be NULL: alone. */
hpct_status hpct_cli_find_batch(hpct_context *context, hpct_model *model,
                                const hpct_batch_options *options, bool speaks, int *batch_size);

/* What suits a model when the user does not say. */
typedef struct hpct_cli_model {
    const char *name;
    int batch_size;
    double learning_rate;
    hpct_loss loss;
    bool any_size; /* of pictures */
} hpct_cli_model;

/* What --model, --classes, --resize (which gives its size to a model of any size), --precision and
 * --device say; zeros for the defaults. */
typedef struct hpct_cli_choice {
    const char *name; /* of a built-in model, or of a file of Keras: NAME.json */
    int classes, width, height;
    bool has_precision;
    hpct_precision precision;
    const char *device; /* as in hpct_model_set_device; NULL: auto */
} hpct_cli_choice;

/* Those options, a child of a subcommand's argp; its input is an hpct_cli_choice. */
extern const struct argp hpct_cli_model_argp;

/* Makes and compiles the model; hpct_cli_usage for an unknown name. `learning_rate` < 0 means the
 * model's own. The caller frees *out. */
hpct_status hpct_cli_make_model(hpct_model **out, const hpct_cli_model **defaults,
                                const hpct_cli_choice *choice, double learning_rate,
                                double momentum);

/* What --weights and --allow-nan say. */
hpct_status hpct_cli_load_weights(hpct_model *model, const char *path, bool allow_nan);

/* What --batch-size, --global-batch-size and --sync-batch-norm say to those that train; zeros for
 * the defaults. */
typedef struct hpct_cli_batch {
    int size, global_size; /* at most one is not 0; size may be HPCT_CLI_AUTO */
    bool sync_batch_norm;
} hpct_cli_batch;

/* Those options, likewise; its input is an hpct_cli_batch. */
extern const struct argp hpct_cli_batch_argp;

/* Sets both sizes, that of the model's defaults when there is none. */
void hpct_cli_apply_batch(const hpct_cli_batch *batch, hpct_model *model,
                          const hpct_cli_model *defaults, int *batch_size, int *global_batch_size);

/* What --comm says, a child of the argp of those that train and evaluate; its input is an
 * hpct_context_options. */
extern const struct argp hpct_cli_comm_argp;

/* Opens the context (`apart`: hpct_context_open_apart), gives the model its device, and agrees that
 * all ranks have that, and can compute there in the model's precision. */
hpct_status hpct_cli_open_context(hpct_context **out, hpct_model *model, const char *device,
                                  const hpct_context_options *options, bool apart);

/* Rank 0 prints how the ranks are connected, where that is not by MPI. */
void hpct_cli_say_connected(const hpct_context *context);

/* The device and that precision, of this process alone. */
hpct_status hpct_cli_set_device(hpct_model *model, const char *device);

/* Values of --resize (WIDTHxHEIGHT), --scale and --augment (flip,crop:N); hpct_cli_usage for
 * others. */
void hpct_cli_resize(const char *value, int *width, int *height);
void hpct_cli_scale(const char *value, hpct_dataset_options *out);
void hpct_cli_augment(const char *value, hpct_dataset_options *out);

/* The value of --data and its like; hpct_cli_usage for made-up pictures of no number. */
const char *hpct_cli_data(const char *option, const char *value);

/* Opens PATH, or makes up "synthetic[:SAMPLES]", for this model; test pictures are not augmented.
 * What is wrong is returned, not told by hpct_cli_usage: all ranks have to agree on it. */
hpct_status hpct_cli_open_data(hpct_dataset **out, const char *path, hpct_split split,
                               const hpct_model *model, const hpct_dataset_options *options);

/* What the options of optimizer, schedule and loss say; zeros before they are parsed. */
typedef enum hpct_cli_scaling {
    HPCT_CLI_SCALING_NONE,
    HPCT_CLI_SCALING_LINEAR,
    HPCT_CLI_SCALING_SQRT
} hpct_cli_scaling;

typedef struct hpct_cli_training {
    hpct_optimizer optimizer; /* its schedule still without steps */
    double label_smoothing;
    int top_k;
    int initial_epoch; /* from which the schedule goes on */
    hpct_cli_scaling scaling;
    bool has_scaling; /* it was said */
    double warmup_epochs, decay_epochs, boundary_epochs[HPCT_MAX_BOUNDARIES], factor;
} hpct_cli_training;

/* Those options, a child of a subcommand's argp; its input is an hpct_cli_training. */
extern const struct argp hpct_cli_training_argp;

/* The options of the strategy, likewise; its input is an hpct_strategy_options. */
extern const struct argp hpct_cli_strategy_argp;

/* --replicas, and what more than one of them needs of the environment. */
void hpct_cli_set_replicas(hpct_strategy_options *options, int replicas);

/* Compiles the model anew as they say, once it is known how many steps an epoch has. */
hpct_status hpct_cli_compile(hpct_model *model, const hpct_cli_model *defaults,
                             const hpct_cli_training *training, int ranks, double steps_per_epoch,
                             int epochs);

#endif
