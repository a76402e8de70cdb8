/* Port ranges and the blocks of a step. */
#include "base/cluster/ports.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"

#define LOWEST 1024
#define DEFAULT_LOW 20000
#define DEFAULT_HIGH 32767
/* Distance in blocks between jobs with consecutive ids: room for that many steps. */
#define JOB_STRIDE 37

hpct_status hpct_cluster_port_range_parse(const char *text, hpct_cluster_port_range *out)
{
    const char *p = text;
    long low = 0, high = 0;
    if (!hpct_number_scan(&p, HPCT_CLUSTER_HIGHEST_PORT, &low))
        goto fail;
    high = low;
    int single = *p == '\0';
    if (!single &&
        (*p != '-' || (p++, !hpct_number_scan(&p, HPCT_CLUSTER_HIGHEST_PORT, &high)) || *p != '\0'))
        goto fail;
    if (low < LOWEST || high < low)
        goto fail;
    *out = (hpct_cluster_port_range){.low = (int) low, .high = (int) high, .single = single};
    return HPCT_OK;
fail:
    return hpct_fail(HPCT_ERR_USAGE,
                     "'%.100s' is not a port or a range: write 22000 or 22000-23000, between %d "
                     "and %d",
                     text, LOWEST, HPCT_CLUSTER_HIGHEST_PORT);
}

hpct_cluster_port_range hpct_cluster_port_range_default(void)
{
    return (hpct_cluster_port_range){.low = DEFAULT_LOW, .high = DEFAULT_HIGH};
}

static int block_size(hpct_cluster_port_range range, int max_tasks)
{
    int size = (max_tasks + HPCT_CLUSTER_PORT_BLOCK - 1) / HPCT_CLUSTER_PORT_BLOCK *
               HPCT_CLUSTER_PORT_BLOCK;
    return size > range.high - range.low + 1 ? max_tasks : size;
}

int hpct_cluster_port_choices(hpct_cluster_port_range range, int max_tasks)
{
    int blocks = range.single ? 1 : (range.high - range.low + 1) / block_size(range, max_tasks);
    return blocks > HPCT_CLUSTER_PORT_CHOICES ? HPCT_CLUSTER_PORT_CHOICES : blocks > 1 ? blocks : 1;
}

hpct_status hpct_cluster_port_base(hpct_cluster_port_range range, uint32_t job, uint32_t step,
                                   int max_tasks, int choice, int *base)
{
    int span =
        range.single ? HPCT_CLUSTER_HIGHEST_PORT - range.low + 1 : range.high - range.low + 1;
    if (max_tasks > span)
        return hpct_fail(
            HPCT_ERR_CONFIG,
            "ports %d-%d are too few for %d tasks on one node: give a wider range with "
            "--hpc-train-port",
            range.low, range.low + span - 1, max_tasks);
    if (range.single) {
        *base = range.low;
        return HPCT_OK;
    }
    int size = block_size(range, max_tasks);
    uint64_t blocks = (uint64_t) (span / size), first = (uint64_t) job * JOB_STRIDE + step;
    *base = range.low + (int) ((first + (uint64_t) choice) % blocks) * size;
    return HPCT_OK;
}

hpct_status hpct_cluster_ports_reserved(const char *text, int *ports, int max, int *count)
{
    *count = 0;
    for (const char *p = text;; p++) {
        long low = 0, high = 0;
        if (!hpct_number_scan(&p, HPCT_CLUSTER_HIGHEST_PORT, &low))
            goto fail;
        high = low;
        if (*p == '-' && (p++, !hpct_number_scan(&p, HPCT_CLUSTER_HIGHEST_PORT, &high)))
            goto fail;
        if (low == 0 || high < low)
            goto fail;
        for (long port = low; port <= high && *count < max; port++)
            ports[(*count)++] = (int) port;
        if (*p == '\0')
            return HPCT_OK;
        if (*p != ',')
            goto fail;
    }
fail:
    return hpct_fail(HPCT_ERR_CONFIG, "SLURM_STEP_RESV_PORTS '%.100s' is not a list of ports",
                     text);
}
