/* The agent's side: detects the launcher of this process, and reads its variables. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cluster/cluster.h"
#include "base/cluster/tasks.h"
#include "base/fd.h"
#include "base/number.h"
#include "base/status.h"

#define MAX_FILE (1L << 30)

/* *value is `otherwise` if the variable is not set; `otherwise` < 0: it is required. */
static hpct_status get_number(const hpct_cluster_environment *environment, const char *name,
                              long max, long otherwise, long *value)
{
    const char *text = hpct_cluster_environment_get(environment, name);
    *value = otherwise;
    if (text == NULL && otherwise >= 0)
        return HPCT_OK;
    if (text == NULL || !hpct_number_parse(text, 0, max, value))
        return hpct_fail(HPCT_ERR_CONFIG, "%s is '%.40s', not a number from 0 to %ld", name,
                         text == NULL ? "" : text, max);
    return HPCT_OK;
}

/* Adds tmpdir and data from their variables if the config lacks them. */
static hpct_status add_places(const hpct_cluster_environment *environment,
                              hpct_cluster_config *config)
{
    const char *tmpdir = hpct_cluster_environment_get(environment, "SLURM_TMPDIR"),
               *data = hpct_cluster_environment_get(environment, "HPC_TRAIN_DATA");
    if (config->tmpdir == NULL && tmpdir != NULL && (config->tmpdir = strdup(tmpdir)) == NULL)
        return hpct_fail_memory(0);
    if (config->data == NULL && data != NULL && (config->data = strdup(data)) == NULL)
        return hpct_fail_memory(0);
    return HPCT_OK;
}

/* ---- the plugin's config ---- */

static hpct_status read_file(const char *path, hpct_cluster_config **out)
{
    char *text = NULL;
    hpct_status status = HPCT_OK;
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = hpct_fail(HPCT_ERR_CONFIG, "HPC_TRAIN_CONFIG_FILE: %s cannot be read: %s", path,
                           fd < 0 ? strerror(errno) : "not a plain file");
        goto end;
    }
    if (info.st_size > MAX_FILE || (text = malloc((size_t) info.st_size + 1)) == NULL) {
        status = hpct_fail(HPCT_ERR_CONFIG, "HPC_TRAIN_CONFIG_FILE: %s is too large", path);
        goto end;
    }
    ssize_t got = hpct_fd_read(fd, text, (size_t) info.st_size);
    status = got == info.st_size
                 ? hpct_cluster_config_from_json(text, (size_t) got, path, out)
                 : hpct_fail(HPCT_ERR_CONFIG, "HPC_TRAIN_CONFIG_FILE: %s cannot be read: %s", path,
                             got < 0 ? strerror(errno) : "it became shorter");
end:
    free(text);
    hpct_fd_close(fd);
    return status;
}

static hpct_status read_plugin(const hpct_cluster_environment *environment,
                               hpct_cluster_config **out)
{
    const char *text = hpct_cluster_environment_get(environment, "HPC_TRAIN_CONFIG");
    if (text != NULL)
        return hpct_cluster_config_from_json(text, strlen(text), "HPC_TRAIN_CONFIG", out);
    return read_file(hpct_cluster_environment_get(environment, "HPC_TRAIN_CONFIG_FILE"), out);
}

/* ---- Slurm without the plugin ---- */

/* Slurm's variables of this task must agree with the layout computed from those of the step. */
static hpct_status check_slurm(const hpct_cluster_config *config, const char *layout_of, long node,
                               long local)
{
    if (config->node_rank == node && config->local_rank == local)
        return HPCT_OK;
    return hpct_fail(
        HPCT_ERR_CONFIG,
        "Slurm placed rank %d as task %ld of node %ld, but %s puts it as task %d of node "
        "%d: use --distribution=block, or srun --hpc-train",
        config->rank, local, node, layout_of, config->local_rank, config->node_rank);
}

static hpct_status read_slurm(const hpct_cluster_environment *environment,
                              hpct_cluster_config **out)
{
    long rank = 0, size = 0, node = 0, local = 0, job = 0, step = 0;
    hpct_cluster cluster = {0};
    hpct_cluster_config *config = NULL;
    HPCT_TRY(get_number(environment, "SLURM_PROCID", HPCT_CLUSTER_MAX_TASKS, -1, &rank));
    HPCT_TRY(get_number(environment, "SLURM_STEP_NUM_TASKS", HPCT_CLUSTER_MAX_TASKS, -1, &size));
    HPCT_TRY(get_number(environment, "SLURM_NODEID", HPCT_CLUSTER_MAX_TASKS, -1, &node));
    HPCT_TRY(get_number(environment, "SLURM_LOCALID", HPCT_CLUSTER_MAX_TASKS, -1, &local));
    HPCT_TRY(get_number(environment, "SLURM_JOB_ID", UINT32_MAX, -1, &job));
    HPCT_TRY(get_number(environment, "SLURM_STEP_ID", UINT32_MAX, -1, &step));
    HPCT_TRY(hpct_cluster_from_slurm(environment, 0, &cluster));
    hpct_status status = HPCT_OK;
    if (size != cluster.layout.size || rank >= size) {
        status = hpct_fail(HPCT_ERR_CONFIG,
                           "SLURM_PROCID %ld, SLURM_STEP_NUM_TASKS %ld and the %d tasks of "
                           "SLURM_STEP_TASKS_PER_NODE do not agree",
                           rank, size, cluster.layout.size);
        goto end;
    }
    status = hpct_cluster_set_ports(&cluster, environment, NULL, hpct_cluster_port_range_default(),
                                    (uint32_t) job, (uint32_t) step, 0, NULL);
    if (status == HPCT_OK)
        status = hpct_cluster_set_hosts(&cluster, environment, NULL);
    if (status == HPCT_OK)
        status = hpct_cluster_config_of(&cluster, (int) rank, (uint32_t) job, (uint32_t) step, NULL,
                                        NULL, &config);
    if (status == HPCT_OK)
        status = check_slurm(config, "SLURM_STEP_TASKS_PER_NODE", node, local);
    if (status == HPCT_OK) {
        config->source = HPCT_CLUSTER_CONFIG_SLURM;
        *out = config;
        config = NULL;
    }
end:
    hpct_cluster_config_free(config);
    hpct_cluster_free(&cluster);
    return status;
}

/* ---- mpirun, or a single process ---- */

static hpct_status make_plain(hpct_cluster_config_source source, long rank, long size,
                              long local_rank, long local_size, hpct_cluster_config **out)
{
    if (size < 1 || rank >= size || local_size < 1 || local_rank >= local_size || local_size > size)
        return hpct_fail(HPCT_ERR_CONFIG,
                         "rank %ld of %ld, local rank %ld of %ld: mpirun's variables "
                         "(OMPI_COMM_WORLD_*, PMI_*) do not agree",
                         rank, size, local_rank, local_size);
    hpct_cluster_config *config = calloc(1, sizeof *config);
    if (config == NULL)
        return hpct_fail_memory(sizeof *config);
    config->source = source;
    config->rank = (int) rank;
    config->size = (int) size;
    config->local_rank = (int) local_rank;
    config->local_size = (int) local_size;
    config->num_nodes = 1; /* the nodes are known only after the ranks have communicated */
    config->role_index = config->rank;
    config->role = strdup("worker");
    config->roles = calloc(1, sizeof *config->roles);
    if (config->roles != NULL) {
        config->num_roles = 1;
        config->roles[0].count = config->size;
        config->roles[0].name = strdup("worker");
    }
    if (config->role == NULL || config->roles == NULL || config->roles[0].name == NULL) {
        hpct_cluster_config_free(config);
        return hpct_fail_memory(0);
    }
    *out = config;
    return HPCT_OK;
}

static hpct_status read_mpi(const hpct_cluster_environment *environment, bool open_mpi,
                            hpct_cluster_config **out)
{
    long rank = 0, size = 0, local_rank = 0, local_size = 0;
    HPCT_TRY(get_number(environment, open_mpi ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK",
                        HPCT_CLUSTER_MAX_TASKS, -1, &rank));
    HPCT_TRY(get_number(environment, open_mpi ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE",
                        HPCT_CLUSTER_MAX_TASKS, -1, &size));
    HPCT_TRY(get_number(environment, open_mpi ? "OMPI_COMM_WORLD_LOCAL_RANK" : "MPI_LOCALRANKID",
                        HPCT_CLUSTER_MAX_TASKS, 0, &local_rank));
    HPCT_TRY(get_number(environment, open_mpi ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "MPI_LOCALNRANKS",
                        HPCT_CLUSTER_MAX_TASKS, local_rank + 1, &local_size));
    return make_plain(HPCT_CLUSTER_CONFIG_MPI, rank, size, local_rank, local_size, out);
}

/* ---- precedence ---- */

static hpct_status read_nearest(const hpct_cluster_environment *environment,
                                hpct_cluster_config **out)
{
    hpct_cluster_config *config = NULL;
    bool mpirun = hpct_cluster_environment_get(environment, "OMPI_COMM_WORLD_SIZE") != NULL;
    bool plugin = hpct_cluster_environment_get(environment, "HPC_TRAIN_CONFIG") != NULL ||
                  hpct_cluster_environment_get(environment, "HPC_TRAIN_CONFIG_FILE") != NULL;
    /* Inside a job, mpirun starts its daemons as a step, and the programs below them inherit that
     * step's variables. If both disagree, mpirun's are those of the program. */
    if (mpirun) {
        hpct_status status = read_mpi(environment, true, &config);
        if (status != HPCT_OK || !plugin) {
            *out = config;
            return status;
        }
        hpct_cluster_config *step = NULL;
        status = read_plugin(environment, &step);
        if (status != HPCT_OK) {
            hpct_cluster_config_free(config);
            return status;
        }
        bool same = step->rank == config->rank && step->size == config->size;
        hpct_cluster_config_free(same ? config : step);
        *out = same ? step : config;
        return HPCT_OK;
    }
    if (plugin)
        return read_plugin(environment, out);
    /* A batch script has SLURM_PROCID too, but no step of its own. */
    if (hpct_cluster_environment_get(environment, "SLURM_PROCID") != NULL &&
        hpct_cluster_environment_get(environment, "SLURM_STEP_ID") != NULL &&
        hpct_cluster_environment_get(environment, "SLURM_STEP_NODELIST") != NULL)
        return read_slurm(environment, out);
    if (hpct_cluster_environment_get(environment, "PMI_SIZE") != NULL)
        return read_mpi(environment, false, out);
    return make_plain(HPCT_CLUSTER_CONFIG_ALONE, 0, 1, 0, 1, out);
}

hpct_status hpct_cluster_config_read_from(const hpct_cluster_environment *environment,
                                          hpct_cluster_config **out)
{
    hpct_cluster_config *config = NULL;
    hpct_status status = read_nearest(environment, &config);
    if (status == HPCT_OK)
        status = add_places(environment, config);
    if (status != HPCT_OK) {
        hpct_cluster_config_free(config);
        return status;
    }
    *out = config;
    return HPCT_OK;
}

hpct_status hpct_cluster_config_read(hpct_cluster_config **out)
{
    return hpct_cluster_config_read_from(&hpct_cluster_environment_own, out);
}
