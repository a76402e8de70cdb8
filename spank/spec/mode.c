/* Modes. */
#include "spank/spec/mode.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "spank/spec/bytes.h"

/* What the file system does not notice, all nodes together. */
#define FEW_OPENS 64
#define FEW_BYTES (UINT64_C(16) << 20)
/* Files of at least this size are read at the file system's full rate by two nodes at once. */
#define LARGE_FILE (UINT64_C(64) << 20)

hpct_status hpct_stage_mode_parse(const char *text, hpct_stage_mode *mode)
{
    static const struct {
        const char *text;
        hpct_stage_mode mode;
    } modes[] = {
        {"auto", {HPCT_WAY_AUTO, false}},
        {"copy", {HPCT_WAY_COPY, false}},
        {"broadcast", {HPCT_WAY_BROADCAST, false}},
        {"extract", {HPCT_WAY_AUTO, true}},
        {"extract,copy", {HPCT_WAY_COPY, true}},
        {"extract,broadcast", {HPCT_WAY_BROADCAST, true}},
        {"copy,extract", {HPCT_WAY_COPY, true}},
        {"broadcast,extract", {HPCT_WAY_BROADCAST, true}},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(text, modes[i].text) == 0) {
            *mode = modes[i].mode;
            return HPCT_OK;
        }
    }
    return hpct_fail(HPCT_ERR_USAGE,
                     "'%.100s' is not a way to stage: write auto, copy, broadcast, extract, or "
                     "extract,copy and extract,broadcast",
                     text);
}

hpct_stage_way hpct_stage_mode_choose(const hpct_stage_facts *facts, char *why, size_t size)
{
    char bytes[32];
    const uint64_t nodes = (uint64_t) facts->nodes,
                   entries = facts->entries == 0 ? 1 : facts->entries;
    hpct_bytes_show(facts->bytes, bytes, sizeof bytes);
    if (facts->nodes == 1) {
        snprintf(why, size, "there is one node");
        return HPCT_WAY_COPY;
    }
    if (!facts->same) {
        snprintf(why, size, "not all nodes see the same source: it is local to each");
        return HPCT_WAY_COPY;
    }
    if (facts->bytes <= FEW_BYTES / nodes && entries <= FEW_OPENS / nodes) {
        snprintf(why, size, "%s in %llu entries are few enough for each of %d nodes to read", bytes,
                 (unsigned long long) entries, facts->nodes);
        return HPCT_WAY_COPY;
    }
    if (facts->nodes == 2 && !facts->extract && facts->bytes / entries >= LARGE_FILE) {
        snprintf(why, size, "two nodes read large files as fast as one");
        return HPCT_WAY_COPY;
    }
    snprintf(why, size, "%s in %llu entries are read once instead of by %d nodes", bytes,
             (unsigned long long) entries, facts->nodes);
    return HPCT_WAY_BROADCAST;
}
