/* Strategy: its options, for fit and bench. */
#include "agent/cli/cli.h"

enum {
    KEY_STRATEGY = 768,
    KEY_ALLOW_LOSSY,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "How the ranks share the work:", 5},
    {"strategy", KEY_STRATEGY, "NAME", 0, "multi-worker-mirrored (default)", 5},
    {"allow-lossy", KEY_ALLOW_LOSSY, NULL, 0,
     "allow strategies and options that change the mathematics", 5},
    {0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    hpct_strategy_options *o = state->input;
    switch (key) {
    case KEY_STRATEGY:
        o->name = value;
        return 0;
    case KEY_ALLOW_LOSSY:
        o->allow_lossy = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp hpct_cli_strategy_argp = {.options = options, .parser = parse};
