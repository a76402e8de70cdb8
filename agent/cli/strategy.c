/* Strategy: its options, for fit and bench. */
#include "agent/cli/cli.h"

enum {
    KEY_STRATEGY = 768,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "How the ranks share the work:", 5},
    {"strategy", KEY_STRATEGY, "NAME", 0, "multi-worker-mirrored (default)", 5},
    {0},
};

static error_t parse(int key, char *value, struct argp_state *state)
{
    hpct_strategy_options *o = state->input;
    switch (key) {
    case KEY_STRATEGY:
        o->name = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp hpct_cli_strategy_argp = {.options = options, .parser = parse};
