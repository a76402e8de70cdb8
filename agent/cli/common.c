/* The table of options that several subcommands have. */
#include "agent/cli/cli.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TRAIN (HPCT_CLI_FIT | HPCT_CLI_BENCH)
#define STEPS (TRAIN | HPCT_CLI_PLAN)
#define SAVED (HPCT_CLI_EVALUATE | HPCT_CLI_PREDICT)
#define RANKS (STEPS | SAVED)
#define COMPUTES (RANKS | HPCT_CLI_SUMMARY)
#define FILLS hpct_cli_common

static const char *const devices[] = {"auto", "cpu", "cuda", NULL};
static const char *const comms[] = {"auto", "mpi", "tcp", NULL};
static const char *const wires[] = {"fp32", "bf16", "fp16", NULL};
const char *const hpct_cli_scales[] = {[HPCT_SCALE_UNIT] = "unit",
                                       [HPCT_SCALE_SYMMETRIC] = "symmetric",
                                       [HPCT_SCALE_NONE] = "none",
                                       NULL};

/* ---- values with a syntax of their own ---- */

static void set_precision(const char *option, const char *value, void *at)
{
    hpct_cli_choice *choice = at;
    if (hpct_precision_find(&choice->precision, value) != HPCT_OK)
        hpct_cli_usage("--%s: %s", option, hpct_last_error());
    choice->has_precision = true;
}

static void set_scaling(const char *option, const char *value, void *at)
{
    hpct_cli_choice *choice = at;
    choice->scaling = (hpct_scaling) hpct_cli_name(option, value, hpct_cli_scales);
    choice->has_scaling = true;
}

static void set_device(const char *option, const char *value, void *at)
{
    if (strncasecmp(value, "gpu", 3) == 0)
        hpct_cli_usage("--%s: '%s' is unknown; GPUs are cuda", option, value);
    *(const char **) at = devices[hpct_cli_name(option, value, devices)];
}

static void add_frozen(const char *option, const char *value, void *at)
{
    hpct_cli_choice *choice = at;
    int i = 0;
    while (choice->freeze[i] != NULL)
        i++;
    if (i == HPCT_CLI_PATTERNS - 1)
        hpct_cli_usage("--%s: at most %d times; one value may have several patterns: a*,b*", option,
                       HPCT_CLI_PATTERNS - 1);
    choice->freeze[i] = value;
}

static void set_batch_size(const char *option, const char *value, void *at)
{
    *(int *) at = strcmp(value, "auto") == 0 ? HPCT_CLI_AUTO
                                             : (int) hpct_cli_integer(option, value, 1, 1 << 20);
}

static void set_compress(const char *option, const char *value, void *at)
{
    hpct_compression *out = at;
    if (strncmp(value, "powersgd:", 9) == 0) {
        out->kind = HPCT_COMPRESS_POWERSGD;
        out->rank = (int) hpct_cli_integer(option, value + 9, 1, HPCT_POWERSGD_MAX_RANK);
    } else if (strncmp(value, "topk:", 5) == 0) {
        out->kind = HPCT_COMPRESS_TOP_K;
        out->share = hpct_cli_number(option, value + 5, 1e-9, 1);
    } else {
        hpct_cli_usage("--%s: '%s' is unknown; there are: powersgd:RANK, topk:SHARE", option,
                       value);
    }
}

/* 0 would mean the default. */
static void set_warmup(const char *option, const char *value, void *at)
{
    int steps = (int) hpct_cli_integer(option, value, 0, INT32_MAX);
    *(int *) at = steps > 0 ? steps : -1;
}

static void set_share(const char *option, const char *value, void *at)
{
    double share = hpct_cli_number(option, value, 0, 1);
    if (share == 0 || share == 1)
        hpct_cli_usage("--%s %s: it must be above 0 and below 1, such as 0.2", option, value);
    *(double *) at = share;
}

static unsigned metric_bit(const char *option, const char *name)
{
    const char *names[CHAR_BIT * sizeof(unsigned) + 1];
    int num = 0;
    while ((names[num] = hpct_metric_name(num)) != NULL)
        num++;
    return hpct_metric_bit(hpct_cli_name(option, name, names));
}

/* A list of distinct names. */
static void set_metrics(const char *option, const char *value, void *at)
{
    unsigned *metrics = at;
    char *list = strdup(value), *rest = list;
    *metrics = 0;
    for (char *name; list != NULL && (name = strsep(&rest, ",")) != NULL;) {
        unsigned bit = metric_bit(option, name);
        if (*metrics & bit)
            hpct_cli_usage("--%s %s: %s is given twice", option, value, name);
        *metrics |= bit;
    }
    free(list);
}

static void set_staleness(const char *option, const char *value, void *at)
{
    hpct_strategy_options *o = at;
    o->ps_bounded = true;
    o->ps_max_staleness = hpct_cli_integer(option, value, 0, INT64_MAX);
}

void hpct_cli_set_replicas(hpct_strategy_options *o, int replicas)
{
    o->replicas = replicas;
    /* with CUDA's lazy loading the first launch of a kernel may wait for kernels on other replicas'
     * GPUs, which wait for it */
    if (replicas > 1)
        setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

static void set_replicas(const char *option, const char *value, void *at)
{
    hpct_cli_set_replicas(at, (int) hpct_cli_integer(option, value, 1, HPCT_MAX_REPLICAS));
}

/* ---- the table ---- */

const hpct_cli_option hpct_cli_common_options[] = {
    /* first, above the groups: argp assigns 0 to the preceding group */
    {"weights", "FILE", "weights from fit --save-weights or Keras: .safetensors, .weights.h5", 0,
     SAVED | HPCT_CLI_EXPORT, TEXT(weights)},
    {"allow-nan", NULL, "accept weights with NaN or infinity", 0, SAVED | HPCT_CLI_EXPORT,
     FLAG(allow_nan)},

    {.doc = "Model and data:", .group = 1, .commands = HPCT_CLI_FIT},
    {"model", "NAME|FILE",
     "mnist-cnn, mnist-convnet, resnet50, resnet50v2, resnet101v2, resnet152v2, vgg16, vgg19, "
     "densenet121, mobilenet, mobilenetv2, mobilenetv3small, efficientnetb0, "
     "efficientnetb0-imagenet, inceptionv3, xception, or FILE.json from Keras' to_json(); for "
     "torchvision's weights: resnet18-torchvision, resnet34-torchvision, resnet50-torchvision, "
     "resnet101-torchvision, resnet152-torchvision, vgg16-torchvision, vgg19-torchvision, "
     "densenet121-torchvision, mobilenetv2-torchvision, mobilenetv3small-torchvision, "
     "efficientnetb0-torchvision, inceptionv3-torchvision",
     1, 0, TEXT(model.name)},
    {"classes", "N", "number of classes of a built-in model (default: mnist 10, others 1000)", 1, 0,
     INTEGER(model.classes, 1, 1 << 20)},
    {"resize", "WxH",
     "input size of a built-in model but mnist's (default 224x224; inceptionv3..., xception "
     "299x299) "
     "and of FILE.json that leaves it open; images are resized to it, bilinear as tf.image.resize",
     1, 0, CALL(model, hpct_cli_resize)},
    {"precision", "NAME",
     "fp32, or bf16 or fp16 (GPUs only): convolutions and dense layers in 16 bits, weights and "
     "gradients in fp32 (default: the dtype policy of FILE.json, else fp32)",
     1, COMPUTES, CALL(model, set_precision)},
    {"device", "NAME", "cpu, cuda (this rank's GPU), or auto (default): the GPU if there is one", 1,
     COMPUTES, CALL(model.device, set_device)},

    {"freeze", "PATTERN",
     "do not train the layers of these names: 'conv*', or several, 'conv*,bn?'; may be given more "
     "than once",
     1, STEPS | HPCT_CLI_SUMMARY, CALL(model, add_frozen)},

    {"weights", "FILE", "initial weights: .safetensors or Keras' .h5 (default: random, by --seed)",
     1, HPCT_CLI_FIT, TEXT(weights)},
    {"allow-nan", NULL, "accept --weights with NaN or infinity", 1, HPCT_CLI_FIT, FLAG(allow_nan)},
    {"skip-mismatch", NULL,
     "load the layers that --weights has with the model's shapes; others keep initial values", 1,
     HPCT_CLI_FIT, FLAG(skip_mismatch)},

    {"data", "PATH",
     "data set (see hpc-train data --help), or synthetic[:SAMPLES] (default: $HPC_TRAIN_DATA, set "
     "by --hpc-train-stage)",
     1, HPCT_CLI_FIT, CALL(data, hpct_cli_data)},
    {"validation-split", "F",
     "hold out this share of --data, 0 to 1, for validation: the last samples of arrays, as Keras "
     "does; of pictures in folders and archives so many drawn from all",
     1, HPCT_CLI_FIT, CALL(validation_split, set_share)},
    {"labels", "FILE.csv",
     "labels of the pictures of --data, which then need not lie in folders of classes: a column of "
     "file names, as predict writes them, then a class, or a number for each output",
     1, HPCT_CLI_FIT, TEXT(labels)},
    {"scale", "NAME",
     "scaling of a byte x: unit (x/255), symmetric (x/127.5-1, as for Keras' ResNet50V2 weights) "
     "or "
     "none (default: mobilenet, mobilenetv2, inceptionv3, xception symmetric; mobilenetv3small, "
     "efficientnetb0 and ...-torchvision none; others unit)",
     1, HPCT_CLI_FIT, CALL(model, set_scaling)},
    {"data", "PATH",
     "data set (see hpc-train data --help), of which the test split is used (default: "
     "$HPC_TRAIN_DATA)",
     1, HPCT_CLI_EVALUATE, CALL(data, hpct_cli_data)},
    {"labels", "FILE.csv", "labels of the pictures of --data, as in fit", 1, HPCT_CLI_EVALUATE,
     TEXT(labels)},
    {"validation-split", "F",
     "use what fit --validation-split F holds out of the training split, instead of the test split",
     1, HPCT_CLI_EVALUATE, CALL(validation_split, set_share)},
    {"data", "PATH",
     "a data set, of which the test split is used, a folder or archive of pictures, or one picture "
     "(default: $HPC_TRAIN_DATA)",
     1, HPCT_CLI_PREDICT, CALL(data, hpct_cli_data)},
    {"scale", "NAME", "unit, symmetric or none, as in fit", 1, SAVED, CALL(model, set_scaling)},

    {"batch-size", "N|auto",
     "samples per rank and step (default: mnist-cnn 64, mnist-convnet 100, others 32); auto: the "
     "largest power of two that fits into memory",
     2, STEPS, CALL(batch.size, set_batch_size)},
    {"batch-size", "N|auto", "samples per rank and batch (default 128)", 1, HPCT_CLI_EVALUATE,
     CALL(batch.size, set_batch_size)},
    {"batch-size", "N|auto",
     "samples per rank and step, for the memory (default: fit's); auto: the largest that fits", 1,
     HPCT_CLI_SUMMARY, CALL(batch.size, set_batch_size)},
    {"global-batch-size", "N", "samples per step over all ranks, instead of --batch-size", 2, STEPS,
     INTEGER(batch.global_size, 1, 1 << 28)},
    {"sync-batch-norm", NULL, "BatchNormalization computes its statistics over all ranks", 2, STEPS,
     FLAG(batch.sync_batch_norm)},

    {"comm", "NAME",
     "communication between ranks: mpi, tcp (needs neither MPI nor PMIx), or auto (default): mpi "
     "if the launcher has set it up for all ranks, else tcp",
     5, RANKS, WORD(context.comm, comms)},

    {"summary-json", "FILE", "write one JSON object with times and results at the end", 4,
     HPCT_CLI_FIT, TEXT(summary_json)},
    {"timeline", "FILE", "write a Chrome trace of up to 50 steps of all ranks at the end", 4,
     HPCT_CLI_FIT, TEXT(timeline)},
    {"metrics", "LIST",
     "metrics of the validation data after each epoch: precision, recall, f1, auc; also by class "
     "in --summary-json; of numbers as labels: mape",
     4, HPCT_CLI_FIT, CALL(metrics, set_metrics)},
    {"confusion-matrix", "FILE.csv",
     "write the confusion matrix of the last validation at the end: a row per true class, a column "
     "per predicted class",
     4, HPCT_CLI_FIT, TEXT(confusion_matrix)},
    {"metrics", "LIST",
     "metrics to print, also by class: precision, recall, f1, auc; of numbers as labels: mape", 1,
     HPCT_CLI_EVALUATE, CALL(metrics, set_metrics)},
    {"confusion-matrix", "FILE.csv",
     "write the confusion matrix: a row per true class, a column per predicted class", 1,
     HPCT_CLI_EVALUATE, TEXT(confusion_matrix)},
    {"summary-json", "FILE", "write one JSON object with loss, accuracy and metrics", 1,
     HPCT_CLI_EVALUATE, TEXT(summary_json)},
    {"summary-json", "FILE", "write one JSON object with times at the end", 2, HPCT_CLI_BENCH,
     TEXT(summary_json)},
    {"timeline", "FILE", "write a Chrome trace of up to 50 steps of all ranks at the end", 2,
     HPCT_CLI_BENCH, TEXT(timeline)},

    {.doc = "Strategy:", .group = 5, .commands = TRAIN},
    {"strategy", "NAME",
     "auto (default: the fastest exact one, by timing; mirrored with --replicas), central-storage "
     "(one rank), hybrid, local-sgd (with --allow-lossy), mirrored, multi-worker-mirrored, "
     "parameter-server, pipeline",
     5, TRAIN, TEXT(strategy.name)},
    {"replicas", "N",
     "replicas per rank, threads with their own cores and samples (default 1; with mirrored and "
     "central-storage)",
     5, TRAIN, CALL(strategy, set_replicas)},
    {"hybrid-form", "NAME",
     "split of hybrid: a Dense kernel by rows or columns, the last layers (back), or auto "
     "(default)",
     5, TRAIN, TEXT(strategy.hybrid_form)},
    {"allow-lossy", NULL, "allow what changes results beyond the order of sums", 5, TRAIN,
     FLAG(strategy.allow_lossy)},
    {"wire", "NAME",
     "type of gradients in messages: fp32 (default), bf16 or fp16 (with --allow-lossy)", 5, TRAIN,
     NAME(strategy.wire, wires)},
    {"bucket-bytes", "N", "bytes of gradients per reduction (default: from the measured network)",
     5, TRAIN, INTEGER(strategy.bucket_bytes, 64, INT64_C(1) << 40)},
    {"compress", "powersgd:RANK|topk:SHARE",
     "compress gradients: low-rank, or only the largest values (with --allow-lossy)", 5, TRAIN,
     CALL(strategy.compression, set_compress)},
    {"compress-warmup", "STEPS", "updates before compression begins (default 100)", 5, TRAIN,
     CALL(strategy.compression.warmup_steps, set_warmup)},
    {"local-steps", "H",
     "local-sgd (with --allow-lossy): steps between averages of the weights (default 8)", 5, TRAIN,
     INTEGER(strategy.local_steps, 1, INT32_MAX)},
    {"local-warmup-steps", "STEPS",
     "local-sgd: average after each of the first STEPS steps (default 100)", 5, TRAIN,
     CALL(strategy.local_warmup_steps, set_warmup)},
    {"stages", "S",
     "pipeline: number of stages, one per rank; divides the number of ranks (default: the ranks, "
     "or their largest divisor that the model has operations for)",
     5, TRAIN, INTEGER(strategy.stages, 1, INT32_MAX)},
    {"micro-batches", "M",
     "pipeline: micro-batches per step (default: as few as keep a rank idle for a fifth of the "
     "step)",
     5, TRAIN, INTEGER(strategy.micro_batches, 1, INT32_MAX)},
    {"ps-sync", NULL,
     "parameter-server: one update per global batch, exact (default: one per gradient)", 5, TRAIN,
     FLAG(strategy.ps_synchronous)},
    {"backup-workers", "N",
     "with --ps-sync: workers beyond those a step needs; they recompute what is late (default 0)",
     5, TRAIN, INTEGER(strategy.ps_backup_workers, 0, 1 << 20)},
    {"max-staleness", "N",
     "parameter-server: no gradient is older than N updates; faster workers wait (default: "
     "unbounded)",
     5, TRAIN, CALL(strategy, set_staleness)},
    {0},
};

/* ---- checks ---- */

void hpct_cli_check_batch(const hpct_cli_batch *batch)
{
    if (batch->size != 0 && batch->global_size > 0)
        hpct_cli_usage("--batch-size (per rank) and --global-batch-size are both given: give one");
}

void hpct_cli_check_strategy(const hpct_strategy_options *strategy)
{
    const hpct_compression *compression = &strategy->compression;
    if (compression->kind == HPCT_COMPRESS_NONE && compression->warmup_steps != 0)
        hpct_cli_usage("--compress-warmup is for --compress, which is not given");
    if (hpct_strategy_check(strategy) != HPCT_OK)
        hpct_cli_usage("%s", hpct_last_error());
}
