/* Wrong usage, and the context: what the subcommands share. */
#include "agent/cli/cli.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Only rank 0 speaks. mpirun ends all ranks when the first one fails, so the others leave it the
 * time to do so. */
void hpct_cli_end_with_usage(bool spoke)
{
    if (!spoke)
        nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    exit(HPCT_ERR_USAGE);
}

void hpct_cli_usage(const char *format, ...)
{
    bool speaks = hpct_context_rank_hint() == 0;
    if (speaks) {
        va_list args;
        va_start(args, format);
        fputs("hpc-train: ", stderr);
        vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
    hpct_cli_end_with_usage(speaks);
}

hpct_status hpct_cli_set_device(hpct_model *model, const char *device)
{
    hpct_status status = hpct_model_set_device(model, device != NULL ? device : "auto");
    return status == HPCT_OK ? hpct_model_check_device(model) : status;
}

#define KEY_COMM 1100

static const struct argp_option comm_options[] = {
    {"comm", KEY_COMM, "NAME", 0,
     "what connects the ranks: mpi, tcp (of its own, needs no MPI or PMIx), or auto (default): mpi "
     "where the launcher has told it of all ranks",
     3},
    {0},
};

static error_t parse_comm(int key, char *value, struct argp_state *state)
{
    static const char *const names[] = {"auto", "mpi", "tcp", NULL};
    hpct_context_options *o = state->input;
    if (key != KEY_COMM)
        return ARGP_ERR_UNKNOWN;
    o->comm = names[hpct_cli_name("comm", value, names)];
    return 0;
}

const struct argp hpct_cli_comm_argp = {.options = comm_options, .parser = parse_comm};

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : 0;
}

#define FIRST_SPECIAL_STEP 0xfffffffaU

/* Launchers that start a process for each rank and are not asked: to them each is alone. */
static const struct launcher {
    const char *variable, *name;
} launchers[] = {{"WORLD_SIZE", "torchrun"},
                 {"HOROVOD_SIZE", "horovodrun"},
                 {"MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun"}};

/* A step of srun: not the batch script, nor the shell of salloc, which Slurm counts as steps. */
static bool in_step(void)
{
    const char *step = getenv("SLURM_STEP_ID");
    return getenv("SLURM_STEP_NODELIST") != NULL && step != NULL &&
           strtoull(step, NULL, 10) < FIRST_SPECIAL_STEP;
}

/* In a job's script or shell what is started without srun runs once, whatever the job has. */
static void say_alone(const hpct_context *context)
{
    int nodes = number_of("SLURM_JOB_NUM_NODES"), tasks = number_of("SLURM_NTASKS");
    bool launched =
        in_step() || getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("PMI_SIZE") != NULL;
    if (launched || hpct_context_size(context) > 1)
        return;
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        if (number_of(launchers[i].variable) > 1) {
            fprintf(stderr,
                    "hpc-train: one process by itself, though %s (of %s) is %s: ranks are started "
                    "by srun (srun --hpc-train hpc-train ...) or mpirun\n",
                    launchers[i].variable, launchers[i].name, getenv(launchers[i].variable));
            return;
        }
    }
    if (getenv("SLURM_JOB_ID") == NULL)
        return;
    if (nodes > 1)
        fprintf(stderr,
                "hpc-train: one process, on one of this job's %d nodes: to use all of them, start "
                "it with srun (srun --hpc-train hpc-train ...)\n",
                nodes);
    else if (tasks > 1)
        fprintf(stderr,
                "hpc-train: one process, though this job has %d tasks: to use all of them, start "
                "it with srun (srun --hpc-train hpc-train ...)\n",
                tasks);
}

hpct_status hpct_cli_open_context(hpct_context **out, hpct_model *model, const char *device,
                                  const hpct_context_options *options, bool apart)
{
    hpct_context_options all = *options;
    all.device = device != NULL ? device : "auto";
    hpct_status status = apart ? hpct_context_open_apart(out) : hpct_context_open_with(out, &all);
    if (status == HPCT_OK && !apart)
        say_alone(*out);
    return status == HPCT_OK ? hpct_set_device(*out, model, all.device) : status;
}

void hpct_cli_say_connected(const hpct_context *context)
{
    const char *line = hpct_context_connected(context);
    if (line != NULL && hpct_context_rank(context) == 0)
        puts(line);
}
