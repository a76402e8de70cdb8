/* spank/script_lines: #SBATCH lines that sbatch does not read, or cuts. */
#include "spank/script_lines.h"
#include "tests/unit/cases.h"

#include <unistd.h>

/* Text: the script. With: what follows its name on the command line; number 1: it is the value of
 * an option before that, too. */
static hpct_status script(const parse_case *c, char *got, size_t size)
{
    char path[] = "/tmp/hpc-train-options-XXXXXX", program[] = "/usr/bin/sbatch", nodes[] = "-N1";
    char name[] = "-J", ours[] = "--hpc-train-stage=/a";
    char behind[64] = "";
    if (c->with != NULL)
        snprintf(behind, sizeof behind, "%s", (const char *) c->with);
    int fd = mkstemp(path);
    assert_int_equal(write(fd, c->text, strlen(c->text)), strlen(c->text));
    close(fd);
    hpct_status status =
        c->number == 1
            ? hpct_spank_script_lines_check((char *[]){program, name, path, ours, path, NULL})
            : hpct_spank_script_lines_check(
                  (char *[]){program, nodes, path, c->with != NULL ? behind : NULL, NULL});
    unlink(path);
    return status;
}

TEST(lines_that_sbatch_does_not_read_are_refused)
{
    static const parse_case cases[] = {
        {"#!/bin/sh\n\n# x\n#SBATCH --hpc-train\nsrun a\n", HPCT_OK, NULL, 0, NULL},
        {"#!/bin/sh\nset -e\n#SBATCH -N1 --hpc-train=on\n", HPCT_ERR_USAGE,
         "line 3 of '/tmp/hpc-train-options-", 0, NULL},
        {"#!/bin/sh\nset -e\n#SBATCH -N1\n##SBATCH --hpc-train\n", HPCT_OK, NULL, 0, NULL},
        /* those of another script */
        {"#!/bin/sh\ncat >x <<E\n#!/bin/sh\n#SBATCH --hpc-train\nE\n", HPCT_OK, NULL, 0, NULL},
        {"#!/bin/sh\necho '#!/bin/sh\n#SBATCH --hpc-train' >x\n", HPCT_OK, NULL, 0, NULL},
        {"#!/usr/bin/python3\n\"\"\"Submit with\n#SBATCH --hpc-train\n\"\"\"\nimport os\n", HPCT_OK,
         NULL, 0, NULL},
        /* what would be cut */
        {"#!/bin/sh\n#SBATCH --hpc-train-stage=/a#1\n", HPCT_ERR_USAGE, NULL, 0, NULL},
        {"#!/bin/sh\n#SBATCH --hpc-train-stage=\"/a#1\" -N1\n", HPCT_OK, NULL, 0, NULL},
        {"#!/bin/sh\n#SBATCH --hpc-train-stage=/a\\#1 # it\n", HPCT_OK, NULL, 0, NULL},
        /* behind the script's name */
        {"#!/bin/sh\nsrun a\n", HPCT_ERR_USAGE, NULL, 0, "--hpc-train-stage=/a"},
        {"#!/bin/sh\nsrun \"$@\" a\n", HPCT_OK, NULL, 0, "--hpc-train-stage=/a"},
        {"#!/bin/sh\nwhile getopts e: o; do :; done\nsrun a\n", HPCT_OK, NULL, 0,
         "--hpc-train-stage=/a"},
        {"#!/bin/sh\nsrun a\n", HPCT_OK, NULL, 0, "--epochs=3"},
        /* sbatch -J train.sh --hpc-train-stage=/a train.sh */
        {"#!/bin/sh\nsrun a\n", HPCT_OK, NULL, 1, NULL},
    };
    RUN_CASES(script, cases);
}
