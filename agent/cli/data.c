/* hpc-train data info */
#include "agent/cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_SPLITS 3

/* Whether an earlier split was read from the same source: one split may substitute another. */
static bool is_known(char *const seen[NUM_SPLITS], const char *source)
{
    for (int i = 0; i < NUM_SPLITS; i++) {
        if (seen[i] != NULL && strcmp(seen[i], source) == 0)
            return true;
    }
    return false;
}

static hpct_status print_split(const hpct_dataset *dataset, const char *name,
                               char *const seen[NUM_SPLITS])
{
    if (!is_known(seen, hpct_dataset_source(dataset))) {
        printf("%s\n", name);
        return hpct_dataset_summary(dataset, stdout);
    }
    if (strcmp(name, "validation") != 0)
        printf("%s\n  the same pictures\n", name);
    return HPCT_OK;
}

/* Prints the existing splits; an error if there is none. */
static hpct_status print_info(const char *path)
{
    static const struct {
        hpct_split split;
        const char *name;
    } splits[NUM_SPLITS] = {
        {HPCT_TRAIN, "training"}, {HPCT_TEST, "test"}, {HPCT_VALIDATION, "validation"}};
    char *seen[NUM_SPLITS] = {NULL};
    bool found = false;
    hpct_dataset *dataset = NULL;
    hpct_status status = HPCT_OK;
    for (int i = 0; i < NUM_SPLITS && status == HPCT_OK; i++) {
        status = hpct_dataset_open_as(&dataset, path, splits[i].split,
                                      &(hpct_dataset_options){.may_lack = true, .check = true});
        if (status != HPCT_OK || dataset == NULL)
            continue;
        if (!found)
            printf("%s: %s\n", path, hpct_dataset_format(dataset));
        found = true;
        status = print_split(dataset, splits[i].name, seen);
        seen[i] = strdup(hpct_dataset_source(dataset));
        hpct_dataset_free(dataset);
    }
    if (status == HPCT_OK && !found) { /* for its error message */
        status = hpct_dataset_open(&dataset, path, HPCT_TRAIN);
        hpct_dataset_free(dataset);
    }
    for (int i = 0; i < NUM_SPLITS; i++)
        free(seen[i]);
    return status;
}

static int run(int argc, char **argv)
{
    static const char usage[] =
        "Usage: hpc-train data info PATH\n"
        "Reads and checks all of PATH and prints format, splits, samples, shape, "
        "memory, and\nclasses with counts.\n\n"
        "PATH may be\n"
        "  a folder with MNIST's four IDX files, plain or .gz, or the folder above\n"
        "  an .npz with x_train, y_train, x_test, y_test\n"
        "  a folder with CIFAR-10 or CIFAR-100, binary or Python version, or its "
        ".tar.gz\n"
        "  a folder with JPEG and PNG images: train/CLASS/x.jpg, "
        "test/CLASS/x.jpg,\n    val/CLASS/x.jpg (or Training/, valid/ ...), or CLASS/x.jpg\n"
        "  a .tar, plain or compressed, or .zip of such folders, or with KEY.jpg and "
        "KEY.cls\n    (WebDataset), or a folder with such archives, with train, test or "
        "val in their names\n\n"
        "Manual page: hpc-train help data\n";
    const char *last = argv[argc - 1];
    if (argc > 1 && (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0)) {
        fputs(usage, stdout);
        return HPCT_OK;
    }
    if (argc != 3 || strcmp(argv[1], "info") != 0)
        hpct_cli_usage("data: give 'info' and a path: hpc-train data info PATH");
    return (int) hpct_context_finish(NULL, "hpc-train", print_info(argv[2]));
}

const hpct_command hpct_command_data = {
    .name = "data",
    .summary = "check and describe a data set: data info PATH",
    .run = run,
};
