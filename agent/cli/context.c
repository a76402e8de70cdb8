/* Opens the context and device of a subcommand, and prints warnings about them. */
#include "agent/cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

hpct_status hpct_cli_set_device(hpct_model *model, const char *device)
{
    hpct_status status = hpct_model_set_device(model, device != NULL ? device : "auto");
    return status == HPCT_OK ? hpct_model_check_device(model) : status;
}

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : 0;
}

#define FIRST_SPECIAL_STEP 0xfffffffaU

/* Launchers that start one process per rank and are not supported: each process would be alone. */
static const struct launcher {
    const char *variable, *name;
} launchers[] = {{"WORLD_SIZE", "torchrun"},
                 {"HOROVOD_SIZE", "horovodrun"},
                 {"MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun"}};

/* In a step started by srun: not in the batch script or salloc's shell, which Slurm counts as
 * steps. */
static bool in_step(void)
{
    const char *step = getenv("SLURM_STEP_ID");
    return getenv("SLURM_STEP_NODELIST") != NULL && step != NULL &&
           strtoull(step, NULL, 10) < FIRST_SPECIAL_STEP;
}

/* A command started without srun in a job's script or shell is a single process, whatever the size
 * of the job. */
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

hpct_status hpct_cli_open_context(hpct_context **out, hpct_status before, hpct_model *model,
                                  const char *device, const hpct_context_options *options,
                                  bool apart)
{
    hpct_context_options all = *options;
    all.device = device != NULL ? device : "auto";
    if (apart && before != HPCT_OK)
        return before;
    hpct_status status =
        apart ? hpct_context_open_apart(out) : hpct_context_open_after(out, before, &all);
    if (status == HPCT_OK && !apart)
        say_alone(*out);
    if (status == HPCT_OK && !apart)
        status = hpct_context_compare(*out, hpct_cli_settings());
    return status == HPCT_OK && model != NULL ? hpct_set_device(*out, model, all.device) : status;
}

void hpct_cli_say_connected(const hpct_context *context)
{
    const char *line = hpct_context_connected(context);
    if (line != NULL && hpct_context_rank(context) == 0)
        puts(line);
}
