/* Network adapters of this node, and the agreement of all nodes. */
#include "agent/comm/fabric.h"

#include "base/status.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static bool has_entries(const char *folder)
{
    bool any = false;
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir != NULL && !any && (entry = readdir(dir)) != NULL;)
        any = entry->d_name[0] != '.';
    if (dir != NULL)
        closedir(dir);
    return any;
}

bool hpct_comm_fabric_has_adapter(void)
{
    return has_entries("/sys/class/infiniband") || has_entries("/sys/class/cxi");
}

bool hpct_comm_fabric_tcp_everywhere(void)
{
    const char *wish = getenv("HPC_TRAIN_SUMS");
    return wish != NULL && strcmp(wish, "tcp") == 0;
}

hpct_status hpct_comm_fabric_choose(bool *own, hpct_comm *comm, int num_nodes)
{
    const char *wish = getenv("HPC_TRAIN_SUMS");
    bool mine = num_nodes > 1 && !hpct_comm_fabric_has_adapter(), known = true;
    if (wish != NULL && *wish != '\0' && strcmp(wish, "auto") != 0) {
        mine = hpct_comm_fabric_tcp_everywhere();
        known = mine || strcmp(wish, "mpi") == 0;
    }
    float votes[2] = {!mine, !known}; /* ranks against own connections; with a wrong value */
    hpct_status status = comm->ops->allreduce_sum(comm, votes, 2);
    *own = votes[0] == 0;
    if (status == HPCT_OK && votes[1] > 0)
        return known ? hpct_fail(HPCT_ERR_CONFIG, "HPC_TRAIN_SUMS is wrong on another rank")
                     : hpct_fail(HPCT_ERR_CONFIG,
                                 "HPC_TRAIN_SUMS is '%s', it must be auto, mpi or tcp", wish);
    return status;
}
