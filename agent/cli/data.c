/* hpc-train data info */
#include "agent/cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Prints the splits that there are; fails where there is none. */
static hpct_status print_info(const char *path)
{
    static const struct {
        hpct_split split;
        const char *name;
    } splits[] = {{HPCT_TRAIN, "training"}, {HPCT_TEST, "test"}};
    bool found = false;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < 2; i++) {
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
    static const char usage[] =
        "Usage: hpc-train data info PATH\n"
        "Says what PATH holds: format, splits, samples, shape, memory, and "
        "the classes with\ntheir counts. All of it is read and checked.\n\n"
        "PATH may be\n"
        "  a folder with MNIST's four IDX files, plain or .gz\n"
        "  an .npz with x_train, y_train, x_test, y_test\n"
        "  a folder with CIFAR-10 or CIFAR-100, binary or Python version\n"
        "  a folder with JPEG and PNG pictures: train/CLASS/x.jpg, "
        "test/CLASS/x.jpg (or val/),\n    or CLASS/x.jpg\n"
        "  a .tar, plain or compressed, of such folders, or with KEY.jpg and "
        "KEY.cls\n    (WebDataset), or a folder with train*.tar and "
        "test*.tar\n";
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
