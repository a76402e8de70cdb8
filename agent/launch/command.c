/* Later options of srun win over earlier ones, and over its variables. */
#include "agent/launch/command.h"

#include "base/status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of an option, its long name and its letter, or 0: whether `word` is it. */
static bool is_option(const char *word, const char *name, char letter)
{
    size_t length = strlen(name);
    if (strncmp(word, "--", 2) == 0)
        return strncmp(word + 2, name, length) == 0 &&
               (word[2 + length] == '\0' || word[2 + length] == '=');
    return letter != 0 && word[0] == '-' && word[1] == letter;
}

/* What follows it; NULL: the last word. */
static const char *value_of(char *const *word)
{
    const char *equals = strchr(*word, '=');
    if (strncmp(*word, "--", 2) == 0)
        return equals != NULL ? equals + 1 : word[1];
    return (*word)[2] != '\0' ? *word + 2 : word[1];
}

static const struct refusal {
    const char *name;
    char letter;
    const char *why;
} refusals[] = {
    {"no-kill", 'k', "a step that goes on without a node is not started again"},
    {"relative", 'r', "nodes are chosen among those that are left: use --nodelist"},
    {"nodefile", 'F', "nodes are chosen among those that are left: use --nodelist"},
    {"gpus", 'G', "their number is that of the nodes that are left: use --gpus-per-node"},
    {"het-group", 0, "a step over several components is not started again"},
    {"pack-group", 0, "a step over several components is not started again"},
    {"pty", 0, "its output is read here"},
    {"jobid", 0, "it runs in this job"},
};

/* The value of an option that has one: the last on the command line, else that of its variable. */
static const char *find_value(char *const *options, const char *name, char letter,
                              const char *variable)
{
    const char *value = getenv(variable);
    for (char *const *word = options; *word != NULL; word++) {
        if (is_option(*word, name, letter) && value_of(word) != NULL)
            value = value_of(word);
    }
    return value;
}

bool hpct_launch_goes_on(char *const *options)
{
    const char *value = find_value(options, "kill-on-bad-exit", 'K', "SLURM_KILL_BAD_EXIT");
    return value != NULL && strcmp(value, "0") == 0;
}

hpct_status hpct_launch_check_options(char *const *options)
{
    for (char *const *word = options; *word != NULL; word++) {
        for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
            const struct refusal *r = &refusals[i];
            if (!is_option(*word, r->name, r->letter) ||
                (r->letter == 'k' && hpct_launch_goes_on(options)))
                continue;
            return hpct_fail(HPCT_ERR_USAGE, "launch: srun's %s is not for launch: %s", *word,
                             r->why);
        }
    }
    return HPCT_OK;
}

static bool has_option(char *const *options, const char *name, char letter)
{
    for (; *options != NULL; options++) {
        if (is_option(*options, name, letter))
            return true;
    }
    return false;
}

/* srun reads the file if it is given no list, and takes that for an arbitrary layout. */
static bool has_hostfile(char *const *options)
{
    return getenv("SLURM_HOSTFILE") != NULL && !has_option(options, "nodelist", 'w');
}

bool hpct_launch_chooses_nodes(char *const *options)
{
    return has_option(options, "nodelist", 'w') || has_option(options, "exclude", 'x') ||
           has_hostfile(options);
}

bool hpct_launch_divides_gpus(char *const *options)
{
    return has_option(options, "gpus-per-node", 0) || has_option(options, "gpus-per-task", 0) ||
           has_option(options, "gres", 0);
}

bool hpct_launch_is_arbitrary(char *const *options)
{
    const char *value = find_value(options, "distribution", 'm', "SLURM_DISTRIBUTION");
    return has_hostfile(options) || (value != NULL && (strncasecmp(value, "arbitrary", 9) == 0 ||
                                                       strncasecmp(value, "hostfile", 8) == 0));
}

static bool is_program(const char *folder, size_t length, const char *name)
{
    char path[PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%.*s%s%s", (int) length, folder, length > 0 ? "/" : "", name);
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool hpct_launch_finds(char *const *options, const char *program)
{
    const char *at = getenv("PATH");
    bool found = has_option(options, "multi-prog", 0) || has_option(options, "chdir", 'D') ||
                 has_option(options, "container", 0) || at == NULL ||
                 (strchr(program, '/') != NULL && is_program("", 0, program));
    while (!found && strchr(program, '/') == NULL && *at != '\0') {
        size_t length = strcspn(at, ":");
        found = is_program(at, length, program);
        at += length + (at[length] == ':');
    }
    return found;
}

/* The value of --export, or of its variables; NULL: all is exported. */
static const char *find_export(char *const *options)
{
    bool own = getenv("SRUN_EXPORT_ENV") != NULL; /* overrides the job's */
    const char *value =
        find_value(options, "export", 0, own ? "SRUN_EXPORT_ENV" : "SLURM_EXPORT_ENV");
    return value != NULL && strncasecmp(value, "ALL", 3) != 0 ? value : NULL;
}

#define HANDED_ON "HPC_TRAIN_RESTART,HPC_TRAIN_LAUNCH,HPC_TRAIN_LAUNCH_TASKS"

/* srun takes no --ntasks-per-node then. */
static bool counts_by_gpu(char *const *options)
{
    return has_option(options, "ntasks-per-gpu", 0) || getenv("SLURM_NTASKS_PER_GPU") != NULL ||
           getenv("SLURM_NTASKS_PER_TRES") != NULL;
}

/* The options that are made here, one after the other, each with its NUL. */
static size_t print_options(char *out, size_t size, const char *export, bool by_gpu,
                            const hpct_launch_place *place)
{
    size_t used = 0;
#define ADD(...)                                                                                   \
    used += (size_t) snprintf(out + used, used < size ? size - used : 0, __VA_ARGS__) + 1
    if (export != NULL && (strcasecmp(export, "NONE") == 0 || strcasecmp(export, "NIL") == 0))
        ADD("--export=" HANDED_ON);
    else if (export != NULL)
        ADD("--export=%s," HANDED_ON, export);
    if (place != NULL) {
        ADD("--overlap");          /* the last step may not have ended on nodes that are gone */
        ADD("--open-mode=append"); /* files of --output */
        if (!place->by_task)       /* later releases take none beside --distribution=arbitrary */
            ADD("--nodes=%d", place->nodes);
        ADD("--ntasks=%d", place->tasks);
        if (place->per_node > 0 && !by_gpu)
            ADD("--ntasks-per-node=%d", place->per_node);
        if (place->by_task)
            ADD("--distribution=arbitrary");
        ADD("--nodelist=%s", place->list);
    }
#undef ADD
    return used;
}

static size_t count_words(char *const *words)
{
    size_t count = 0;
    while (words[count] != NULL)
        count++;
    return count;
}

char **hpct_launch_command(char *const *options, char *const *program,
                           const hpct_launch_place *place)
{
    static char exact[] = "--exact"; /* --exclusive is this, and forbids --overlap */
    const char *export = find_export(options);
    size_t size = (export != NULL ? strlen(export) : 0) +
                  (place != NULL ? strlen(place->list) : 0) + sizeof HANDED_ON + 256;
    char **words = calloc(count_words(options) + count_words(program) + 16, sizeof *words);
    char *made = malloc(size), **at = words;
    if (words == NULL || made == NULL) {
        free(words);
        free(made);
        return NULL;
    }
    size_t used = (size_t) sprintf(made, "srun") + 1, kill = used;
    used +=
        (size_t) sprintf(made + used, "--kill-on-bad-exit=%d", !hpct_launch_goes_on(options)) + 1;
    *at++ = made;
    *at++ = made + kill;
    for (char *const *word = options; *word != NULL; word++)
        *at++ = place != NULL && is_option(*word, "exclusive", 0) ? exact : *word;
    size_t end =
        used + print_options(made + used, size - used, export, counts_by_gpu(options), place);
    while (used < end) {
        *at++ = made + used;
        used += strlen(made + used) + 1;
    }
    for (; *program != NULL; program++)
        *at++ = *program;
    return words;
}
