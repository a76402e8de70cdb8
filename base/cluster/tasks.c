/* Parses strings of tasks per node. */
#include "base/cluster/tasks.h"

#include <stdlib.h>

#include "base/cluster/nodelist.h"
#include "base/number.h"
#include "base/status.h"

/* One "2" or "2(x3)"; advances *text. */
static bool scan_run(const char **text, long *tasks, long *repeat)
{
    const char *p = *text;
    *repeat = 1;
    if (!hpct_number_scan(&p, HPCT_CLUSTER_MAX_TASKS, tasks) || *tasks == 0)
        return false;
    if (p[0] == '(') {
        if (p[1] != 'x')
            return false;
        p += 2;
        if (!hpct_number_scan(&p, HPCT_CLUSTER_MAX_NODES, repeat) || *repeat == 0 || *p != ')')
            return false;
        p++;
    }
    *text = p;
    return true;
}

hpct_status hpct_cluster_tasks_expand(const char *text, int num_nodes, int **out)
{
    hpct_status status = HPCT_ERR_CONFIG;
    long count = 0, sum = 0;
    int *tasks = calloc((size_t) num_nodes + 1, sizeof *tasks);
    if (tasks == NULL)
        return hpct_fail_memory((size_t) num_nodes * sizeof *tasks);
    for (const char *p = text;; p++) {
        long each = 0, repeat = 0;
        if (!scan_run(&p, &each, &repeat)) {
            hpct_fail(status, "tasks per node '%.200s' cannot be read at '%.40s'", text, p);
            goto fail;
        }
        if (count + repeat > num_nodes) {
            hpct_fail(status, "tasks per node '%.200s' names more than %d nodes", text, num_nodes);
            goto fail;
        }
        if (each > (HPCT_CLUSTER_MAX_TASKS - sum) / repeat) {
            hpct_fail(status, "tasks per node '%.200s': more than %d tasks", text,
                      HPCT_CLUSTER_MAX_TASKS);
            goto fail;
        }
        sum += each * repeat;
        for (long i = 0; i < repeat; i++)
            tasks[count++] = (int) each;
        if (*p == '\0')
            break;
        if (*p != ',') {
            hpct_fail(status, "tasks per node '%.200s' cannot be read at '%.40s'", text, p);
            goto fail;
        }
    }
    if (count != num_nodes) {
        hpct_fail(status, "tasks per node '%.200s' names %ld nodes, the host list %d", text, count,
                  num_nodes);
        goto fail;
    }
    *out = tasks;
    return HPCT_OK;
fail:
    free(tasks);
    return status;
}
