/* GPU binding by the text of CUDA_VISIBLE_DEVICES; an entry is passed on unchanged. */
#include "spank/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"

#define MAX_GPU 4095
#define MAX_MAP 65536

static hpct_status parse_map(const char *text, hpct_spank_gpu_bind *out)
{
    int size = 1;
    for (const char *p = text; *p != '\0'; p++)
        size += *p == ',';
    if (size > MAX_MAP)
        return hpct_fail(HPCT_ERR_USAGE, "the map has more than %d entries", MAX_MAP);
    out->map = calloc((size_t) size, sizeof *out->map);
    if (out->map == NULL)
        return hpct_fail_memory(0);
    for (const char *p = text;; p++) {
        long gpu = 0;
        if (!hpct_number_scan(&p, MAX_GPU, &gpu) || (*p != ',' && *p != '\0'))
            return hpct_fail(HPCT_ERR_USAGE,
                             "'map:%.100s' is not a list of GPUs: write map:0,1,...", text);
        out->map[out->map_size++] = (int) gpu;
        if (*p == '\0')
            return HPCT_OK;
    }
}

hpct_status hpct_spank_gpu_bind_parse(const char *text, hpct_spank_gpu_bind *out)
{
    hpct_spank_gpu_bind bind = {.asked = true};
    hpct_status status = HPCT_OK;
    if (strcmp(text, "closest") == 0) {
        bind.kind = HPCT_SPANK_GPU_BIND_CLOSEST;
    } else if (strcmp(text, "rank") == 0) {
        bind.kind = HPCT_SPANK_GPU_BIND_RANK;
    } else if (strcmp(text, "none") == 0) {
        bind.kind = HPCT_SPANK_GPU_BIND_NONE;
    } else if (strncmp(text, "map:", 4) == 0) {
        bind.kind = HPCT_SPANK_GPU_BIND_MAP;
        status = parse_map(text + 4, &bind);
    } else {
        status =
            hpct_fail(HPCT_ERR_USAGE, "'%.100s' is not closest, rank, map:I,J,... or none", text);
    }
    if (status != HPCT_OK) {
        hpct_spank_gpu_bind_free(&bind);
        return status;
    }
    hpct_spank_gpu_bind_free(out);
    *out = bind;
    return HPCT_OK;
}

void hpct_spank_gpu_bind_free(hpct_spank_gpu_bind *bind)
{
    free(bind->map);
    *bind = (hpct_spank_gpu_bind){0};
}

int hpct_spank_gpu_count(const char *visible)
{
    /* Slurm's value for a step without devices */
    if (visible == NULL || *visible == '\0' || strcmp(visible, "NoDevFiles") == 0)
        return 0;
    int count = 1;
    for (; *visible != '\0'; visible++)
        count += *visible == ',';
    return count;
}

char *hpct_spank_gpu_entry(const char *visible, int place)
{
    for (; place > 0; place--)
        visible += strcspn(visible, ",") + 1;
    return strndup(visible, strcspn(visible, ","));
}

hpct_status hpct_spank_gpu_choose(const hpct_spank_gpu_bind *bind, const char *visible,
                                  int local_rank, char **gpu)
{
    int count = hpct_spank_gpu_count(visible), place = 0;
    *gpu = NULL;
    if (bind->kind == HPCT_SPANK_GPU_BIND_NONE)
        return HPCT_OK;
    if (bind->kind == HPCT_SPANK_GPU_BIND_MAP) {
        place = bind->map[local_rank % bind->map_size];
        if (place >= count)
            return hpct_fail(
                HPCT_ERR_CONFIG,
                "--hpc-train-bind=map gives local rank %d the GPU %d, but the task sees "
                "%d (counted from 0; CUDA_VISIBLE_DEVICES is '%s')",
                local_rank, place, count, visible == NULL ? "" : visible);
    } else if (count == 0) {
        return HPCT_OK;
    } else {
        place = local_rank % count;
    }
    *gpu = hpct_spank_gpu_entry(visible, place);
    return *gpu != NULL ? HPCT_OK : hpct_fail_memory(0);
}
