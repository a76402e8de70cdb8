/* hpc-train-gpus: assigns GPUs to tasks; started by the plugin as the job's user. A separate
 * program because hwloc and NVML, which may be missing, slow or broken, must not be loaded into
 * Slurm's processes, and the plugin can end it by timeout. Reads a request from standard input;
 * prints one index per line, or one line with the reason why locality is unknown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/gpu/assign.h"
#include "spank/gpu/closest.h"

/* In the directory of slurmd's slurm.conf if known; else where a configless node keeps it, or the
 * usual path. */
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
    static int places[HPCT_GPUS_MAX_TASKS];
    char room[4096];
    hpct_gpus_request request = {0};
    if (argc != 1 && (argc != 3 || strcmp(argv[1], "--node") != 0)) {
        printf("usage: hpc-train-gpus [--node NAME]\n");
        return HPCT_ERR_USAGE;
    }
    hpct_status status = hpct_gpus_request_read(stdin, &request);
    if (status == HPCT_OK)
        status = hpct_gpus_closest(&request, find_gres_conf(room, sizeof room),
                                   argc == 3 ? argv[2] : NULL, places);
    if (status != HPCT_OK)
        printf("%s\n", hpct_last_error());
    for (int task = 0; status == HPCT_OK && task < request.num_tasks; task++)
        printf("%d\n", places[task]);
    hpct_gpus_request_free(&request);
    return fflush(stdout) == 0 ? (int) status : HPCT_ERR_IO;
}
