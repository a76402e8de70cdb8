/* hpc-train-gpus: which GPU is whose, started by the plugin as the job's user. A program of its own
 * because the libraries that know (hwloc, NVML) have no place in Slurm's processes: they may be
 * missing, slow or broken, and the plugin only waits so long. Reads a request from its standard
 * input, prints a place per line, or one line that says why it cannot be told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/gpu/assign.h"
#include "spank/gpu/closest.h"

/* Beside slurm.conf, where slurmd says that is; else where a configless node keeps it, or a usual
 * place. */
static const char *find_gres_conf(char *room, size_t size)
{
    static const char *const usual[] = {"/run/slurm/conf/gres.conf", "/etc/slurm/gres.conf"};
    const char *slurm_conf = getenv("SLURM_CONF"), *end;
    if (slurm_conf != NULL && (end = strrchr(slurm_conf, '/')) != NULL) {
        snprintf(room, size, "%.*s/gres.conf", (int) (end - slurm_conf), slurm_conf);
        if (access(room, R_OK) == 0)
            return room;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (access(usual[i], R_OK) == 0)
            return usual[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static int places[HPCT_GPU_MAX_TASKS];
    char room[4096];
    hpct_request request = {0};
    if (argc != 1 && (argc != 3 || strcmp(argv[1], "--node") != 0)) {
        printf("usage: hpc-train-gpus [--node NAME]\n");
        return HPCT_ERR_USAGE;
    }
    hpct_status status = hpct_request_read(stdin, &request);
    if (status == HPCT_OK)
        status = hpct_gpu_closest(&request, find_gres_conf(room, sizeof room),
                                  argc == 3 ? argv[2] : NULL, places);
    if (status != HPCT_OK)
        printf("%s\n", hpct_last_error());
    for (int task = 0; status == HPCT_OK && task < request.num_tasks; task++)
        printf("%d\n", places[task]);
    hpct_request_free(&request);
    return fflush(stdout) == 0 ? (int) status : HPCT_ERR_IO;
}
