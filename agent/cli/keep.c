/* Protects inputs: outputs that would replace an input are an error. */
#include "agent/cli/cli.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_below(const char *path, const struct stat *folder)
{
    char at[PATH_MAX];
    struct stat info;
    bool found = false;
    if (realpath(path, at) == NULL)
        return false;
    while (!found && strcmp(at, "/") != 0) {
        dirname(at);
        found = stat(at, &info) == 0 && same(&info, folder);
    }
    return found;
}

/* Whether the file is weights, JSON or empty, so neither pictures nor labels. */
static bool may_be_a_result(const char *path)
{
    char head[9] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, head, sizeof head) : 0;
    if (fd >= 0)
        close(fd);
    return bytes <= 0 || head[0] == '{' || head[0] == '[' || memcmp(head, "\x89HDF", 4) == 0 ||
           (bytes == sizeof head && head[8] == '{');
}

/* Whether the output is the input itself, or, in a data folder, may be part of the data. */
static bool would_replace(const char *output, const char *input)
{
    struct stat out, in;
    if (output == NULL || input == NULL || stat(output, &out) != 0 || !S_ISREG(out.st_mode) ||
        stat(input, &in) != 0)
        return false;
    return S_ISDIR(in.st_mode) ? is_below(output, &in) && !may_be_a_result(output)
                               : same(&out, &in);
}

void hpct_cli_keep(const hpct_cli_file *outputs, int num_outputs, const hpct_cli_file *inputs,
                   int num_inputs)
{
    for (int i = 0; i < num_outputs; i++) {
        for (int k = 0; k < num_inputs; k++) {
            if (would_replace(outputs[i].path, inputs[k].path))
                hpct_cli_usage("%s %s would replace what %s reads: give it another name",
                               outputs[i].option, outputs[i].path, inputs[k].option);
        }
    }
}
