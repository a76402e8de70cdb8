/* Prints built-in and installed features. */
#include "config.h"

#include "agent/comm/comm.h"
#include "agent/rank/threads.h"
#include "base/cluster/config.h"
#include "base/device_calls.h"
#include "base/status.h"
#include "nn/backend/backend.h"
#include "nn/backend/cpu/backend.h"
#include "nn/backend/module.h"
#include "nn/backends/backends.h"

#include <hpctrain/info.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *hpct_version(void)
{
    return PACKAGE_VERSION;
}

static void print_processor(FILE *stream)
{
    char line[512], model[256] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "model name : %255[^\n]", model) == 1)
            break;
    }
    if (file != NULL)
        fclose(file);
    fprintf(stream, "  processor  %s;", model);
#if defined(__x86_64__)
    __builtin_cpu_init();
    const struct {
        const char *name;
        bool here;
    } features[] = {
        {"sse4.2", __builtin_cpu_supports("sse4.2") != 0},
        {"avx2", __builtin_cpu_supports("avx2") != 0},
        {"fma", __builtin_cpu_supports("fma") != 0},
        {"avx512f", __builtin_cpu_supports("avx512f") != 0},
        {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
        {"avx512vnni", __builtin_cpu_supports("avx512vnni") != 0},
    };
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        if (features[i].here)
            fprintf(stream, " %s", features[i].name);
    }
#endif
    fputc('\n', stream);
}

static void print_cpus(FILE *stream)
{
    size_t bytes;
    cpu_set_t *mask = hpct_rank_threads_mask(&bytes);
    if (mask == NULL)
        return;
    fprintf(stream, "  CPUs       %d of %ld by affinity, on %d cores\n", CPU_COUNT_S(bytes, mask),
            sysconf(_SC_NPROCESSORS_ONLN), hpct_rank_threads_cores(mask, bytes));
    CPU_FREE(mask);
}

static void print_nccl(FILE *stream)
{
    void *found = NULL;
    int version = 0;
    if (hpct_backend_module_find(&found, HPCT_BACKEND_MODULE_CUDA, HPCT_DEVICE_CALLS_SYMBOL) !=
        HPCT_OK)
        return;
    const hpct_device_calls *calls = found;
    if (calls->has_nccl(&version))
        fprintf(stream, "  NCCL       %d.%d.%d\n", version / 10000, version / 100 % 100,
                version % 100);
    else
        fprintf(stream, "  NCCL       %s\n", calls->error());
}

/* The installed CUDA module, or what it lacks. */
static void print_module(FILE *stream)
{
    char text[256];
    const hpct_backend_device *device;
    if (hpct_backend_find_device(&device, "cuda") != HPCT_OK) {
        fprintf(stream, "  GPUs       %s\n", hpct_last_error());
        return;
    }
    device->versions(text, sizeof text);
    fprintf(stream, "  GPUs       %s\n", text);
    print_nccl(stream);
}

static void print_gpus(FILE *stream)
{
    char text[256];
    const hpct_backend_device *device;
    if (hpct_backend_find_device(&device, "cuda") != HPCT_OK)
        return;
    for (int i = 0; device->describe(i, text, sizeof text); i++) {
        fprintf(stream, "  GPU %-6d %s\n", i, text);
        if (device->links(i, text, sizeof text))
            fprintf(stream, "             to the others: %s\n", text);
    }
}

static void print_layout(FILE *stream, const hpct_cluster_config *config)
{
    static const char *const sources[] = {
        [HPCT_CLUSTER_CONFIG_PLUGIN] = "srun --hpc-train",
        [HPCT_CLUSTER_CONFIG_SLURM] = "srun, without the plugin",
        [HPCT_CLUSTER_CONFIG_MPI] = "mpirun",
        [HPCT_CLUSTER_CONFIG_ALONE] = "nobody: it stands alone",
    };
    fprintf(stream, "  started by %s\n", sources[config->source]);
    fprintf(stream, "  rank       %d of %d; %d of %d on node %d of %d; role %s %d\n", config->rank,
            config->size, config->local_rank, config->local_size, config->node_rank,
            config->num_nodes, config->role == NULL ? "worker" : config->role, config->role_index);
    for (int node = 0; config->nodes != NULL && node < config->num_nodes; node++)
        fprintf(stream, "  node %-5d %s, %d task%s\n", node, config->nodes[node].name,
                config->nodes[node].tasks, config->nodes[node].tasks == 1 ? "" : "s");
    if (config->addresses != NULL)
        fprintf(stream, "  rank 0 at  %s\n", config->addresses[0]);
    if (config->gpu != NULL)
        fprintf(stream, "  GPU        %s\n", config->gpu);
    if (config->tmpdir != NULL)
        fprintf(stream, "  job folder %s\n", config->tmpdir);
    if (config->data != NULL)
        fprintf(stream, "  data       %s\n", config->data);
}

hpct_status hpct_info_print(FILE *stream)
{
    char host[256] = "unknown";
    hpct_cluster_config *config;
    gethostname(host, sizeof host - 1);
    fprintf(stream, "hpc-train %s, built with\n", hpct_version());
    fprintf(stream, "  MPI        %s\n", hpct_comm_mpi_version());
    fprintf(stream, "  oneDNN     %s\n", hpct_cpu_library());
    print_module(stream);
    fprintf(stream, "on %s\n", host);
    print_processor(stream);
    print_cpus(stream);
    print_gpus(stream);
    HPCT_TRY(hpct_cluster_config_read(&config));
    print_layout(stream, config);
    hpct_cluster_config_free(config);
    return HPCT_OK;
}
