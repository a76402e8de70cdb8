/* Memory that is left: /proc/meminfo, and each cgroup (v2, or v1's memory controller) above us. */
#include "agent/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The number at the beginning of a file, "max" being SIZE_MAX; false when there is none. */
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

/* The number behind `key` in a file of lines "key number". */
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
    const char *limit, *used, *cache;
} files;

static const files v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
static const files v2 = {"memory.max", "memory.current", "inactive_file"};

/* What the cgroup in this folder leaves. */
static size_t left_in(const char *folder, const files *names)
{
    size_t limit, used;
    if (!read_number(folder, names->limit, &limit) || limit == SIZE_MAX ||
        !read_number(folder, names->used, &used))
        return SIZE_MAX;
    size_t cache = read_keyed(folder, "memory.stat", names->cache);
    used = used > cache ? used - cache : 0;
    return limit > used ? limit - used : 0;
}

/* The smallest of a cgroup and those above it, up to `top`. */
static size_t left_above(char *folder, size_t top, const files *names)
{
    size_t least = SIZE_MAX;
    for (;;) {
        size_t left = left_in(folder, names);
        least = left < least ? left : least;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t) (slash - folder) < top)
            return least;
        *slash = '\0';
    }
}

/* Lines of /proc/self/cgroup: "0::/a/b" (v2), "5:memory:/a/b" (v1). */
static size_t left_in_cgroups(const char *proc, const char *cgroups)
{
    char path[4096], line[4096];
    size_t least = SIZE_MAX;
    snprintf(path, sizeof path, "%s/self/cgroup", proc);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return SIZE_MAX;
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
        size_t top = strlen(cgroups) + (old ? strlen("/memory") : 0);
        size_t left = left_above(path, top, old ? &v1 : &v2);
        least = left < least ? left : least;
    }
    fclose(file);
    return least;
}

size_t hpct_memory_available_in(const char *proc, const char *cgroups)
{
    size_t machine = read_keyed(proc, "meminfo", "MemAvailable:");
    size_t group = left_in_cgroups(proc, cgroups);
    machine = machine == 0 ? SIZE_MAX : machine * 1024;
    return group < machine ? group : machine;
}

size_t hpct_memory_available(void)
{
    return hpct_memory_available_in("/proc", "/sys/fs/cgroup");
}
