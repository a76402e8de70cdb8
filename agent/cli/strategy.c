/* Strategy: its options, for fit and bench. */
#include "agent/cli/cli.h"

enum {
    KEY_STRATEGY = 768,
    KEY_PS_SYNC,
    KEY_BACKUP_WORKERS,
    KEY_MAX_STALENESS,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "How the ranks share the work:", 5},
    {"strategy", KEY_STRATEGY, "NAME", 0, "multi-worker-mirrored (default) or parameter-server", 5},
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

static error_t parse(int key, char *value, struct argp_state *state)
{
    hpct_strategy_options *o = state->input;
    switch (key) {
    case KEY_STRATEGY:
        o->name = value;
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
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp hpct_cli_strategy_argp = {.options = options, .parser = parse};
