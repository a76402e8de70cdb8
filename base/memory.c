/* Available memory: /proc/meminfo, the cgroups (v2, or v1's memory controller) above this process,
 * and the Slurm job's request if no cgroup enforces it. */
#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define UNLIMITED ((size_t) 1 << 60) /* v1's value for no limit: 2^63 rounded to pages */
#define MIB ((size_t) 1 << 20)

/* Ids of limits that are not cgroups. */
enum { ID_MACHINE = 1, ID_SLURM };

typedef struct level_list {
    hpct_memory_level *levels;
    int num;
} level_list;

static void add(level_list *all, hpct_memory_level level)
{
    if (all->num < HPCT_MEMORY_LEVELS)
        all->levels[all->num++] = level;
}

/* The number at the beginning of a file; "max" is SIZE_MAX. Returns false if there is none. */
static bool read_number(const char *folder, const char *name, size_t *out)
{
    char path[4096], text[32] = "";
    unsigned long long value;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int) sizeof path)
        return false;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool found = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    if (found && strncmp(text, "max", 3) == 0) {
        *out = SIZE_MAX;
        return true;
    }
    if (!found || sscanf(text, "%llu", &value) != 1)
        return false;
    *out = (size_t) value;
    return true;
}

/* The number after `key` in a file of lines "key number". */
static size_t read_keyed(const char *folder, const char *name, const char *key)
{
    char path[4096], line[256];
    unsigned long long value = 0;
    size_t length = strlen(key);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int) sizeof path)
        return 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, length) == 0 && sscanf(line + length, " %llu", &value) == 1)
            break;
        value = 0;
    }
    fclose(file);
    return (size_t) value;
}

typedef struct files {
    const char *limit, *used, *cache, *active;
} files;

static const files v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                         "total_active_file"};
static const files v2 = {"memory.max", "memory.current", "inactive_file", "active_file"};

static size_t above(size_t limit, size_t used)
{
    return limit > used ? limit - used : 0;
}

/* What this cgroup's limit leaves, if it has one. */
static void add_cgroup(level_list *all, const char *folder, const files *names)
{
    size_t limit, used;
    struct stat about;
    if (!read_number(folder, names->limit, &limit) || limit >= UNLIMITED ||
        !read_number(folder, names->used, &used) || stat(folder, &about) != 0)
        return;
    used = above(used, read_keyed(folder, "memory.stat", names->cache));
    add(all, (hpct_memory_level){.whose = "cgroup",
                                 .id = (uint64_t) about.st_dev << 48 ^ (uint64_t) about.st_ino,
                                 .left = above(limit, used),
                                 .active = read_keyed(folder, "memory.stat", names->active)});
}

/* A cgroup and its ancestors up to `top`. */
static void add_branch(level_list *all, char *folder, size_t top, const files *names)
{
    for (;;) {
        add_cgroup(all, folder, names);
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t) (slash - folder) < top)
            return;
        *slash = '\0';
    }
}

/* Lines of /proc/self/cgroup: "0::/a/b" (v2), "5:memory:/a/b" (v1). */
static void add_cgroups(level_list *all, const char *proc, const char *cgroups)
{
    char path[4096], line[4096];
    snprintf(path, sizeof path, "%s/self/cgroup", proc);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        bool old = strcmp(controllers + 1, "memory") == 0;
        if (!old && controllers[1] != '\0')
            continue;
        int length = snprintf(path, sizeof path, "%s%s%s", cgroups, old ? "/memory" : "",
                              strcmp(group, "/") == 0 ? "" : group);
        if (length < 0 || length >= (int) sizeof path)
            continue;
        add_branch(all, path, strlen(cgroups) + (old ? strlen("/memory") : 0), old ? &v1 : &v2);
    }
    fclose(file);
}

/* A number in the environment; 0 if not set. */
static size_t variable(const char *name)
{
    const char *text = getenv(name);
    return text == NULL ? 0 : (size_t) strtoull(text, NULL, 10);
}

/* Memory the step requested on this node in MiB; 0 if unspecified or all. */
static size_t asked_of_slurm(void)
{
    size_t node = variable("SLURM_MEM_PER_NODE");
    size_t cpus = variable("SLURM_MEM_PER_CPU") * variable("SLURM_CPUS_ON_NODE");
    if (getenv("SLURM_STEP_ID") == NULL)
        return 0;
    return node > 0 ? node : cpus;
}

int hpct_memory_levels_in(const char *proc, const char *cgroups,
                          hpct_memory_level levels[HPCT_MEMORY_LEVELS])
{
    level_list all = {.levels = levels};
    size_t machine = read_keyed(proc, "meminfo", "MemAvailable:") * 1024, asked = asked_of_slurm();
    if (machine > 0)
        add(&all, (hpct_memory_level){.whose = "machine", .id = ID_MACHINE, .left = machine});
    int without = all.num;
    add_cgroups(&all, proc, cgroups);
    if (asked > 0 && all.num == without)
        add(&all, (hpct_memory_level){.whose = "Slurm job",
                                      .id = ID_SLURM,
                                      .left = asked * MIB,
                                      .taken = read_keyed(proc, "self/status", "VmRSS:") * 1024});
    return all.num;
}

/* ---- the share of one rank ---- */

/* Used by this process since it connected to the others. */
static struct {
    uint64_t id;
    int ranks;
} shared[HPCT_MEMORY_LEVELS];

void hpct_memory_set_sharers(const uint64_t ids[HPCT_MEMORY_LEVELS],
                             const int ranks[HPCT_MEMORY_LEVELS])
{
    for (int i = 0; i < HPCT_MEMORY_LEVELS; i++) {
        shared[i].id = ids[i];
        shared[i].ranks = ranks[i];
    }
}

static int sharers_of(uint64_t id)
{
    for (int i = 0; i < HPCT_MEMORY_LEVELS; i++) {
        if (shared[i].id == id && shared[i].ranks > 0)
            return shared[i].ranks;
    }
    return 1;
}

hpct_memory_share hpct_memory_share_in(const char *proc, const char *cgroups)
{
    hpct_memory_share share = {.bytes = SIZE_MAX, .whose = "machine", .ranks = 1};
    hpct_memory_level levels[HPCT_MEMORY_LEVELS];
    int num = hpct_memory_levels_in(proc, cgroups, levels);
    for (int i = 0; i < num; i++) {
        const hpct_memory_level *level = &levels[i];
        int ranks = sharers_of(level->id);
        size_t part = level->left / (size_t) ranks;
        part = part > level->taken ? part - level->taken : 0;
        if (part < share.bytes)
            share = (hpct_memory_share){part, level->whose, ranks};
    }
    return share;
}

hpct_memory_share hpct_memory_share_now(void)
{
    return hpct_memory_share_in(HPCT_PROC, HPCT_CGROUPS);
}
