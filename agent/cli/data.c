/* hpc-train data info */
#include "agent/cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Prints the splits that there are; fails as the first of them does where there is none. */
static hpct_status print_info(const char *path)
{
    static const struct {
        hpct_split split;
        const char *name;
    } splits[] = {{HPCT_TEST, "test"}, {HPCT_TRAIN, "training"}};
    bool found = false;
    hpct_status status = HPCT_OK;
    for (int i = 1; i >= 0; i--) { /* training first; what fails last is said */
        hpct_dataset *dataset = NULL;
        status = hpct_dataset_open(&dataset, path, splits[i].split);
        if (status == HPCT_OK) {
            if (!found)
                printf("%s: %s\n", path, hpct_dataset_format(dataset));
            found = true;
            printf("%s\n", splits[i].name);
            status = hpct_dataset_summary(dataset, stdout);
        }
        hpct_dataset_free(dataset);
        if (status != HPCT_OK && status != HPCT_ERR_NO_INPUT)
            return status;
    }
    return found ? HPCT_OK : status;
}

static int run(int argc, char **argv)
{
    static const char usage[] = "Usage: hpc-train data info PATH\n"
                                "Says what PATH holds: format, splits, samples, shape, memory, and "
                                "the classes with\ntheir counts. All of it is read and checked.\n";
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return HPCT_OK;
    }
    if (argc != 3 || strcmp(argv[1], "info") != 0)
        hpct_cli_usage("data: give 'info' and a path: hpc-train data info PATH");
    return (int) hpct_context_finish(NULL, "hpc-train", print_info(argv[2]));
}

const hpct_command hpct_command_data = {
    .name = "data",
    .summary = "what a data set holds: data info PATH",
    .run = run,
};
