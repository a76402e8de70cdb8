/* agent/cli/cli.h - shared by the subcommands. The command uses the public headers only,
 * and base/nearest.h. */
#ifndef HPCT_AGENT_CLI_CLI_H
#define HPCT_AGENT_CLI_CLI_H

#include <hpctrain/hpctrain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A subcommand: one file each. argv[0] is "hpc-train NAME". Returns the exit code. */
typedef struct hpct_command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} hpct_command;

extern const hpct_command hpct_command_fit;
extern const hpct_command hpct_command_evaluate;
extern const hpct_command hpct_command_predict;
extern const hpct_command hpct_command_export;
extern const hpct_command hpct_command_bench;
extern const hpct_command hpct_command_check;
extern const hpct_command hpct_command_data;
extern const hpct_command hpct_command_plan;
extern const hpct_command hpct_command_summary;
extern const hpct_command hpct_command_info;
extern const hpct_command hpct_command_checkpoint;
extern const hpct_command hpct_command_launch;
extern const hpct_command hpct_command_top;
extern const hpct_command hpct_command_report;

/* Wrong usage: rank 0 prints "hpc-train: …" on stderr, all ranks exit with code 64. */
__attribute__((format(printf, 1, 2), noreturn)) void hpct_cli_usage(const char *format, ...);

/* ---- options: tables, from which help, parsing and checks are derived ---- */

/* The subcommands that have an option; 0: all that use the table. */
enum {
    HPCT_CLI_FIT = 1,
    HPCT_CLI_EVALUATE = 2,
    HPCT_CLI_BENCH = 4,
    HPCT_CLI_PLAN = 8,
    HPCT_CLI_SUMMARY = 16,
    HPCT_CLI_PREDICT = 32,
    HPCT_CLI_EXPORT = 64,
};

/* How a value is stored. */
typedef enum hpct_cli_kind {
    HPCT_CLI_HEADING, /* not an option: `doc` is printed above its group */
    HPCT_CLI_ALIAS,   /* another name of the previous row */
    HPCT_CLI_FLAG,    /* bool: true */
    HPCT_CLI_TEXT,    /* const char * */
    HPCT_CLI_INTEGER, /* int or 64 bits, from `least` to `most` */
    HPCT_CLI_NUMBER,  /* double, from `low` to `high` */
    HPCT_CLI_NAME,    /* enum: index in `names` */
    HPCT_CLI_WORD,    /* const char *, one of `names` */
    HPCT_CLI_CALL,    /* stored by `set` */
} hpct_cli_kind;

typedef struct hpct_cli_option {
    const char *name, *value, *doc; /* value: its name in --help; NULL: takes none */
    int group;                      /* of --help */
    int commands;
    hpct_cli_kind kind;
    size_t at, size; /* member of the struct that the table fills */
    int64_t least, most;
    double low, high;
    const char *const *names; /* NULL-terminated */
    void (*set)(const char *option, const char *value, void *at);
    bool optional; /* the value is optional; NULL if missing */
} hpct_cli_option;

/* Last parts of rows; FILLS is the struct that the table fills. */
#define AT(member) .at = offsetof(FILLS, member), .size = sizeof(((FILLS *) 0)->member)
#define FLAG(member) HPCT_CLI_FLAG, AT(member)
#define TEXT(member) HPCT_CLI_TEXT, AT(member)
#define INTEGER(member, from, to) HPCT_CLI_INTEGER, AT(member), .least = (from), .most = (to)
#define NUMBER(member, from, to) HPCT_CLI_NUMBER, AT(member), .low = (from), .high = (to)
#define NAME(member, list) HPCT_CLI_NAME, AT(member), .names = (list)
#define WORD(member, list) HPCT_CLI_WORD, AT(member), .names = (list)
#define CALL(member, function) HPCT_CLI_CALL, AT(member), .set = (function)

/* Rows, ended by a zeroed one, and the struct that they fill. */
typedef struct hpct_cli_table {
    const hpct_cli_option *rows;
    void *fills;
} hpct_cli_table;

/* Fills all tables (ended by a zeroed one) from the arguments of a subcommand; `doc` is printed by
 * its --help. Underscores in option names are accepted as dashes. Errors, printed by rank 0 only:
 * unknown options (with the nearest one), other arguments, and empty or missing values. */
void hpct_cli_parse(int command, const char *doc, const hpct_cli_table *tables, int argc,
                    char **argv);

/* For commands that take other words, too: if argv[*i] is an option of these rows, by its whole
 * name, or asks for help, appends it and its value to own[*num] and returns true; *i is then the
 * last word taken. */
bool hpct_cli_take_option(const hpct_cli_option *rows, int argc, char **argv, int *i, char **own,
                          int *num);

/* The options that were given, for hpct_context_compare(). */
const char *const *hpct_cli_settings(void);

/* Value of an option; hpct_cli_usage if it is not a number in the range. */
int64_t hpct_cli_integer(const char *option, const char *text, int64_t min, int64_t max);
double hpct_cli_number(const char *option, const char *text, double min, double max);

/* Index of a value in names, NULL-terminated; hpct_cli_usage for any other, with the nearest name
 * and all names. */
int hpct_cli_name(const char *option, const char *value, const char *const names[]);

#define HPCT_CLI_AUTO (-1) /* --batch-size auto */

/* Replaces HPCT_CLI_AUTO by the largest batch size that fits the memory, and makes rank 0 print it
 * if `speaks`; collective. Other batch sizes are unchanged. `context` may be NULL: one process. */
hpct_status hpct_cli_find_batch(hpct_context *context, hpct_model *model,
                                const hpct_batch_options *options, bool speaks, int *batch_size);

/* Defaults of a model. */
typedef struct hpct_cli_model {
    const char *name;
    int batch_size;
    double learning_rate;
    hpct_loss loss;
    bool any_size;        /* accepts pictures of any size */
    hpct_scaling scaling; /* of its pictures, as Keras' preprocess_input */
} hpct_cli_model;

#define HPCT_CLI_PATTERNS 64

/* Values of --model, --classes, --resize (also the size of a model that accepts any), --scale,
 * --precision, --device and --freeze; zeros for the defaults. */
typedef struct hpct_cli_choice {
    const char *name; /* a built-in model, or a file of Keras: NAME.json */
    int classes, width, height;
    bool has_scaling;
    hpct_scaling scaling;
    bool has_precision;
    hpct_precision precision;
    const char *device;                    /* as in hpct_model_set_device; NULL: auto */
    const char *freeze[HPCT_CLI_PATTERNS]; /* NULL after the last */
} hpct_cli_choice;

/* Values of --batch-size, --global-batch-size and --sync-batch-norm; zeros for the defaults. */
typedef struct hpct_cli_batch {
    int size, global_size; /* at most one is nonzero; size may be HPCT_CLI_AUTO */
    bool sync_batch_norm;
} hpct_cli_batch;

/* Values of options that several subcommands have. */
typedef struct hpct_cli_common {
    hpct_cli_choice model;
    hpct_cli_batch batch;
    hpct_context_options context;
    hpct_strategy_options strategy;
    const char *weights, *data, *labels;
    bool allow_nan, skip_mismatch;
    hpct_dataset_options input;
    double validation_split; /* 0: not given */
    const char *summary_json, *timeline, *confusion_matrix;
    unsigned metrics;
} hpct_cli_common;

extern const char *const hpct_cli_scales[];             /* values of --scale, by hpct_scaling */
extern const hpct_cli_option hpct_cli_common_options[]; /* fill an hpct_cli_common */

/* Checks that need neither model nor data nor other ranks. */
void hpct_cli_check_batch(const hpct_cli_batch *batch);
void hpct_cli_check_strategy(const hpct_strategy_options *strategy);

/* Creates and compiles the model; hpct_cli_usage for an unknown name. `learning_rate` < 0: the
 * model's default. The caller frees *out. */
hpct_status hpct_cli_make_model(hpct_model **out, const hpct_cli_model **defaults,
                                const hpct_cli_choice *choice, double learning_rate,
                                double momentum);

/* Sets --resize, --classes and, for `pictures`, --scale, where they are not given, to what
 * --weights were trained with. Rank 0 prints them, or that the weights do not name them. */
void hpct_cli_recall(hpct_cli_common *options, bool pictures);

/* Sets size and scaling of the pictures by --resize and --scale, or the built-in model's. */
void hpct_cli_set_input(hpct_cli_common *options);

/* Implements --freeze; hpct_cli_usage for a pattern that matches no layer. */
void hpct_cli_freeze(hpct_model *model, const hpct_cli_choice *choice);

/* Implements --weights, --allow-nan and --skip-mismatch; names what is not loaded if it `speaks`.
 */
hpct_status hpct_cli_load_weights_of(hpct_model *model, const hpct_cli_common *options,
                                     bool speaks);
/* Implements --weights and --allow-nan. */
hpct_status hpct_cli_load_weights(hpct_model *model, const char *path, bool allow_nan);

/* Sets both sizes, to the model's defaults if none was given. */
void hpct_cli_apply_batch(const hpct_cli_batch *batch, hpct_model *model,
                          const hpct_cli_model *defaults, int *batch_size, int *global_batch_size);

/* Opens the context (`apart`: by hpct_context_open_apart), compares the options of all ranks, sets
 * the model's device, and agrees that all ranks have it and can compute there in the model's
 * precision. `model` may be NULL. before: the status so far; after an error the ranks connect only
 * to agree on it, so that rank 0 alone prints an error that all have. */
hpct_status hpct_cli_open_context(hpct_context **out, hpct_status before, hpct_model *model,
                                  const char *device, const hpct_context_options *options,
                                  bool apart);

/* Rank 0 prints how the ranks are connected, unless by MPI. */
void hpct_cli_say_connected(const hpct_context *context);

/* Sets the device, and checks the precision, in this process only. */
hpct_status hpct_cli_set_device(hpct_model *model, const char *device);

/* `set` functions of rows: --resize (WIDTHxHEIGHT, to an hpct_cli_choice), --augment (flip,crop:N
 * and so on, to an hpct_dataset_options), --data and similar (to a const char *: a path, or
 * "synthetic" with a number of pictures). hpct_cli_usage for other values. */
void hpct_cli_resize(const char *option, const char *value, void *at);
void hpct_cli_augment(const char *option, const char *value, void *at);
void hpct_cli_data(const char *option, const char *value, void *at);

/* A file or folder given by an option; path NULL: not given. */
typedef struct hpct_cli_file {
    const char *option, *path;
} hpct_cli_file;

/* Exits with 64 if an output would replace an input, or a file in a data folder that may be part of
 * the data. */
void hpct_cli_keep(const hpct_cli_file *outputs, int num_outputs, const hpct_cli_file *inputs,
                   int num_inputs);

/* Opens PATH, or generates "synthetic[:SAMPLES]", for this model; test pictures are not augmented.
 * Errors are returned, not passed to hpct_cli_usage: all ranks have to agree on them. */
hpct_status hpct_cli_open_data(hpct_dataset **out, const char *path, hpct_split split,
                               const hpct_model *model, const hpct_dataset_options *options);

/* The same; `labels`, unless NULL: a CSV file with the labels of these pictures. */
hpct_status hpct_cli_open_labelled(hpct_dataset **out, const char *path, const char *labels,
                                   hpct_split split, const hpct_model *model,
                                   const hpct_dataset_options *options);

/* Prints the command that evaluates what fit has saved, on the data that validated it, if all of
 * its files stay after the step. */
void hpct_cli_say_evaluate(const hpct_cli_common *options, const char *weights, const char *data,
                           const char *labels);

/* Values of the options for optimizer, schedule and loss; zeroed before parsing. */
typedef enum hpct_cli_scaling {
    HPCT_CLI_SCALING_NONE,
    HPCT_CLI_SCALING_LINEAR,
    HPCT_CLI_SCALING_SQRT
} hpct_cli_scaling;

typedef struct hpct_cli_training {
    hpct_optimizer optimizer; /* its schedule has no steps yet */
    int loss;                 /* hpct_cli_losses */
    double label_smoothing, focal_gamma, focal_alpha, huber_delta;
    const char *class_weight;    /* --class-weight */
    const double *class_weights; /* its values, once the data are known */
    int num_class_weights;
    int top_k;
    int initial_epoch; /* epoch at which the schedule continues */
    hpct_cli_scaling scaling;
    bool has_scaling; /* --lr-scaling was given */
    double warmup_epochs, decay_epochs, boundary_epochs[HPCT_MAX_BOUNDARIES], factor;
    struct {
        char *patterns; /* of layers, NULL after the last */
        double factor;
    } rates[HPCT_CLI_PATTERNS];
} hpct_cli_training;

extern const char *const hpct_cli_losses[];
extern const hpct_cli_option hpct_cli_training_options[]; /* fill an hpct_cli_training */
void hpct_cli_check_training(const hpct_cli_training *training);

/* Sets --replicas, and the environment that several replicas need. */
void hpct_cli_set_replicas(hpct_strategy_options *options, int replicas);

/* Compiles the model again with these options, when the number of steps per epoch is known. */
hpct_status hpct_cli_compile(hpct_model *model, const hpct_cli_model *defaults,
                             const hpct_cli_training *training, int ranks, double steps_per_epoch,
                             int epochs);

#endif
