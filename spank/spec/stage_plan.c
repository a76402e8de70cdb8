/* Modes, and the arithmetic of the disk. */
#include "spank/spec/stage_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "spank/spec/bytes.h"

/* What the file system does not notice, all nodes together. */
#define FEW_OPENS 64
#define FEW_BYTES (UINT64_C(16) << 20)
/* Files of at least this size are read at the file system's full rate by two nodes at once. */
#define LARGE_FILE (UINT64_C(64) << 20)

hpct_status hpct_spec_stage_request_parse(const char *text, hpct_spec_stage_request *request)
{
    static const struct {
        const char *text;
        hpct_spec_stage_request request;
    } modes[] = {
        {"auto", {HPCT_SPEC_STAGE_AUTO, false}},
        {"copy", {HPCT_SPEC_STAGE_COPY, false}},
        {"broadcast", {HPCT_SPEC_STAGE_BROADCAST, false}},
        {"extract", {HPCT_SPEC_STAGE_AUTO, true}},
        {"extract,copy", {HPCT_SPEC_STAGE_COPY, true}},
        {"extract,broadcast", {HPCT_SPEC_STAGE_BROADCAST, true}},
        {"copy,extract", {HPCT_SPEC_STAGE_COPY, true}},
        {"broadcast,extract", {HPCT_SPEC_STAGE_BROADCAST, true}},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(text, modes[i].text) == 0) {
            *request = modes[i].request;
            return HPCT_OK;
        }
    }
    return hpct_fail(HPCT_ERR_USAGE,
                     "'%.100s' is not a way to stage: write auto, copy, broadcast, extract, or "
                     "extract,copy and extract,broadcast",
                     text);
}

hpct_spec_stage_plan hpct_spec_stage_plan_make(hpct_spec_stage_request request, int sources,
                                               int nodes, bool trusted)
{
    return (hpct_spec_stage_plan){
        .request = request,
        .nodes = nodes,
        .connect = sources > 0 && nodes > 1 && request.mode != HPCT_SPEC_STAGE_COPY &&
                   (trusted || request.mode == HPCT_SPEC_STAGE_BROADCAST),
    };
}

static hpct_spec_stage_mode choose(int nodes, const hpct_spec_stage_view *view, char *why,
                                   size_t size)
{
    char bytes[32];
    const uint64_t count = (uint64_t) nodes, entries = view->entries == 0 ? 1 : view->entries;
    hpct_spec_bytes_show(view->bytes, bytes, sizeof bytes);
    if (!view->shared) {
        snprintf(why, size, "not all nodes see the same source: it is local to each");
        return HPCT_SPEC_STAGE_COPY;
    }
    if (view->bytes <= FEW_BYTES / count && entries <= FEW_OPENS / count) {
        snprintf(why, size, "%s in %llu entries are few enough for each of %d nodes to read", bytes,
                 (unsigned long long) entries, nodes);
        return HPCT_SPEC_STAGE_COPY;
    }
    if (nodes == 2 && !view->extract && view->bytes / entries >= LARGE_FILE) {
        snprintf(why, size, "two nodes read large files as fast as one");
        return HPCT_SPEC_STAGE_COPY;
    }
    snprintf(why, size, "%s in %llu entries are read once instead of by %d nodes", bytes,
             (unsigned long long) entries, nodes);
    return HPCT_SPEC_STAGE_BROADCAST;
}

hpct_spec_stage_mode hpct_spec_stage_plan_mode(const hpct_spec_stage_plan *plan,
                                               const hpct_spec_stage_view *view, char *why,
                                               size_t size)
{
    snprintf(why, size, "as asked for");
    if (view->staged)
        return HPCT_SPEC_STAGE_AUTO;
    if (!plan->connect)
        return HPCT_SPEC_STAGE_COPY;
    return plan->request.mode == HPCT_SPEC_STAGE_AUTO ? choose(plan->nodes, view, why, size)
                                                      : plan->request.mode;
}

void hpct_spec_stage_need_add(hpct_spec_stage_need *need, const hpct_spec_stage_view *view)
{
    if (view->staged)
        return;
    if (view->extract) {
        need->known = false;
        need->blocks += 4096; /* the minimum: reports at least a full disk */
        return;
    }
    need->bytes += view->bytes;
    need->blocks += view->blocks;
    need->entries += view->entries;
}

hpct_status hpct_spec_stage_need_check(const hpct_spec_stage_need *need, uint64_t max)
{
    char bytes[32], most[32];
    if (max == 0 || need->bytes <= max)
        return HPCT_OK;
    return hpct_fail(HPCT_ERR_CONFIG, "%s are to be staged, but at most %s may be (stage_max)",
                     hpct_spec_bytes_show(need->bytes, bytes, sizeof bytes),
                     hpct_spec_bytes_show(max, most, sizeof most));
}

uint64_t hpct_spec_stage_limit(uint64_t max, uint64_t room, uint64_t used)
{
    uint64_t left = max != 0 && max < room ? max : room;
    return left > used ? left - used : 1;
}
