/* Strategy: its options, for fit and bench. */
#include "agent/cli/cli.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_STRATEGY = 768,
    KEY_ALLOW_LOSSY,
    KEY_BUCKET_BYTES,
    KEY_COMPRESS,
    KEY_COMPRESS_WARMUP,
    KEY_HYBRID_FORM,
    KEY_REPLICAS,
    KEY_LOCAL_STEPS,
    KEY_LOCAL_WARMUP,
    KEY_MICRO_BATCHES,
    KEY_STAGES,
    KEY_WIRE,
    KEY_PS_SYNC,
    KEY_BACKUP_WORKERS,
    KEY_MAX_STALENESS,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "How the ranks share the work:", 5},
    {"strategy", KEY_STRATEGY, "NAME", 0,
     "auto (the default: the fastest here that changes nothing but rounding; mirrored with "
     "--replicas), central-storage (one rank), hybrid, local-sgd (with --allow-lossy), mirrored, "
     "multi-worker-mirrored, parameter-server, pipeline",
     5},
    {"replicas", KEY_REPLICAS, "N", 0,
     "replicas in each rank, threads with a part of its cores and pictures each (default 1; with "
     "mirrored and central-storage)",
     5},
    {"hybrid-form", KEY_HYBRID_FORM, "NAME", 0,
     "how hybrid splits: a Dense by rows or columns, the last layers (back), or auto (default)", 5},
    {"allow-lossy", KEY_ALLOW_LOSSY, NULL, 0,
     "also what changes the results beyond the order of sums", 5},
    {"wire", KEY_WIRE, "NAME", 0,
     "how gradients travel: fp32 (default), bf16 or fp16 (with --allow-lossy)", 5},
    {"bucket-bytes", KEY_BUCKET_BYTES, "N", 0,
     "gradients in one reduction (default: from the measured network)", 5},
    {"compress", KEY_COMPRESS, "powersgd:RANK|topk:SHARE", 0,
     "gradients travel as products of this rank, or only their largest share (with --allow-lossy)",
     5},
    {"compress-warmup", KEY_COMPRESS_WARMUP, "STEPS", 0,
     "updates before compression begins (default 100)", 5},
    {"local-steps", KEY_LOCAL_STEPS, "H", 0,
     "local-sgd (with --allow-lossy): steps between averages of the weights (default 8)", 5},
    {"local-warmup-steps", KEY_LOCAL_WARMUP, "STEPS", 0,
     "steps before, each with an average (default 100)", 5},
    {"stages", KEY_STAGES, "S", 0,
     "pipeline: parts of the model, one a rank; ranks are a multiple of S (default: the ranks, or "
     "their largest divisor that the model has operations for)",
     5},
    {"micro-batches", KEY_MICRO_BATCHES, "M", 0,
     "pipeline: pieces that a step's pictures are cut into (default: as few as leave a rank idle "
     "for a fifth of the step)",
     5},
    {"ps-sync", KEY_PS_SYNC, NULL, 0,
     "parameter-server: one update a global batch, exact (default: one a gradient)", 5},
    {"backup-workers", KEY_BACKUP_WORKERS, "N", 0,
     "with --ps-sync: so many workers more than a step needs; they repeat what is slow (default 0)",
     5},
    {"max-staleness", KEY_MAX_STALENESS, "N", 0,
     "parameter-server: no gradient is older than N updates; who is too fast waits (default: no "
     "bound)",
     5},
    {0},
};

static hpct_wire wire_named(const char *value)
{
    static const char *const names[] = {"fp32", "bf16", "fp16", NULL};
    return (hpct_wire) hpct_cli_name("wire", value, names);
}

static void parse_compress(const char *value, hpct_compression *out)
{
    if (strncmp(value, "powersgd:", 9) == 0) {
        out->kind = HPCT_COMPRESS_POWERSGD;
        out->rank = (int) hpct_cli_integer("compress", value + 9, 1, HPCT_POWERSGD_MAX_RANK);
    } else if (strncmp(value, "topk:", 5) == 0) {
        out->kind = HPCT_COMPRESS_TOP_K;
        out->share = hpct_cli_number("compress", value + 5, 1e-9, 1);
    } else {
        hpct_cli_usage("--compress: '%s' is unknown; there is: powersgd:RANK, topk:SHARE", value);
    }
}

void hpct_cli_set_replicas(hpct_strategy_options *o, int replicas)
{
    o->replicas = replicas;
    /* CUDA's: a kernel that is loaded when it is called first may wait for those of other replicas'
     * GPUs, which wait for it */
    if (replicas > 1)
        setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

/* What needs neither model nor data nor other ranks. */
static void check(const hpct_strategy_options *o)
{
    if (o->compression.kind == HPCT_COMPRESS_NONE && o->compression.warmup_steps != 0)
        hpct_cli_usage("--compress-warmup is for --compress, which is not given");
    if (hpct_strategy_check(o) != HPCT_OK)
        hpct_cli_usage("%s", hpct_last_error());
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    hpct_strategy_options *o = state->input;
    int steps;
    switch (key) {
    case KEY_HYBRID_FORM:
        o->hybrid_form = value;
        return 0;
    case KEY_STRATEGY:
        o->name = value;
        return 0;
    case KEY_ALLOW_LOSSY:
        o->allow_lossy = true;
        return 0;
    case KEY_BUCKET_BYTES:
        o->bucket_bytes = (size_t) hpct_cli_integer("bucket-bytes", value, 64, INT64_C(1) << 40);
        return 0;
    case KEY_COMPRESS:
        parse_compress(value, &o->compression);
        return 0;
    case KEY_COMPRESS_WARMUP:
        steps = (int) hpct_cli_integer("compress-warmup", value, 0, INT32_MAX);
        o->compression.warmup_steps = steps > 0 ? steps : -1;
        return 0;
    case KEY_REPLICAS:
        hpct_cli_set_replicas(o, (int) hpct_cli_integer("replicas", value, 1, HPCT_MAX_REPLICAS));
        return 0;
    case KEY_LOCAL_STEPS:
        o->local_steps = (int) hpct_cli_integer("local-steps", value, 1, INT32_MAX);
        return 0;
    case KEY_LOCAL_WARMUP:
        steps = (int) hpct_cli_integer("local-warmup-steps", value, 0, INT32_MAX);
        o->local_warmup_steps = steps > 0 ? steps : -1;
        return 0;
    case KEY_MICRO_BATCHES:
        o->micro_batches = (int) hpct_cli_integer("micro-batches", value, 1, INT32_MAX);
        return 0;
    case KEY_STAGES:
        o->stages = (int) hpct_cli_integer("stages", value, 1, INT32_MAX);
        return 0;
    case KEY_WIRE:
        o->wire = wire_named(value);
        return 0;
    case KEY_PS_SYNC:
        o->ps_synchronous = true;
        return 0;
    case KEY_BACKUP_WORKERS:
        o->ps_backup_workers = (int) hpct_cli_integer("backup-workers", value, 0, 1 << 20);
        return 0;
    case KEY_MAX_STALENESS:
        o->ps_bounded = true;
        o->ps_max_staleness = hpct_cli_integer("max-staleness", value, 0, INT64_MAX);
        return 0;
    case ARGP_KEY_END:
        check(o);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp hpct_cli_strategy_argp = {.options = options, .parser = parse};
