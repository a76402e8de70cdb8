/* hpc-train check */
#include "agent/cli/cli.h"

#include <stdio.h>

typedef struct arguments {
    hpct_context_options context;
    const char *json;
} arguments;

#define FILLS arguments

static int run(int argc, char **argv)
{
    static const hpct_cli_option options[] = {
        {"json", "FILE", "write one JSON object with all figures", 0, 0, TEXT(json)},
        {0},
    };
    static const char doc[] =
        "Measures computation, memory, scratch folder and links of all nodes of a step in a few "
        "seconds, and names those that are slow; exit status 69 if there are any.";
    arguments a = {0};
    hpct_context *context = NULL;
    const hpct_cli_table tables[] = {{options, &a}, {NULL, NULL}};
    hpct_cli_parse(0, doc, tables, argc, argv);
    hpct_status status = hpct_cli_open_context(&context, HPCT_OK, NULL, "cpu", &a.context, false);
    if (status == HPCT_OK) {
        hpct_cli_say_connected(context);
        status = hpct_check_nodes(context, stdout, a.json);
    }
    return (int) hpct_context_finish(context, "hpc-train", status);
}

const hpct_command hpct_command_check = {
    .name = "check",
    .summary = "find slow nodes and links",
    .run = run,
};
