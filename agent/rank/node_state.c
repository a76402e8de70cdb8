/* Reads /proc and /sys; what their texts mean is in node_text.c. */
#include "agent/rank/node_state.h"

#include "agent/rank/node_text.h"
#include "agent/rank/threads.h"
#include "base/process.h"
#include "base/status.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_INTERFACES 32
#define MOST_LEVELS 16
#define MOST_PROCESSES (1 << 16)
#define MOST_FREQUENCIES 32   /* CPUs: some kernels take milliseconds for each */
#define STAT_BYTES (1 << 18)  /* of /proc/stat, where CPUs come first */
#define BLOCK_BYTES (1 << 18) /* of an environment */
#define MOST_CANDIDATES 16    /* processes whose environment is read */

/* From here on it stands out. */
#define SLOW_CLOCK 0.7
#define MUCH_STOLEN 0.02
#define MANY_OTHERS 0.1

typedef struct interface {
    char name[16];
    uint64_t errors, drops;
} interface;

struct hpct_rank_node_state {
    double at; /* clock */
    char proc[256], sys[256];
    cpu_set_t *mask;
    size_t mask_bytes;
    double mhz, most_mhz;
    uint64_t core_throttles, package_throttles; /* throttled so far */
    hpct_rank_cpu_ticks ticks;
    hpct_rank_quota_text quotas[MOST_LEVELS]; /* of this process's cgroup and those above it */
    int num_quotas;
    hpct_rank_process_text *processes; /* [num_processes], by pid */
    int num_processes;
    interface interfaces[MOST_INTERFACES];
    int num_interfaces;
};

/* ---- files ---- */

/* As much of the file as fits, with a zero behind it; false if it cannot be read. */
__attribute__((format(printf, 4, 5))) static bool read_text(char *text, size_t size, size_t *length,
                                                            const char *format, ...)
{
    char path[4600];
    va_list args;
    va_start(args, format);
    int written = vsnprintf(path, sizeof path, format, args);
    va_end(args);
    int fd = written < (int) sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t got = fd >= 0 ? 1 : -1;
    *length = 0;
    while (got > 0 && *length + 1 < size) {
        got = read(fd, text + *length, size - 1 - *length);
        *length += got > 0 ? (size_t) got : 0;
    }
    text[*length] = '\0';
    if (fd >= 0)
        close(fd);
    return got >= 0;
}

static uint64_t read_number(const char *folder, const char *name)
{
    char text[64];
    size_t length;
    uint64_t value = 0;
    if (read_text(text, sizeof text, &length, "%s/%s", folder, name))
        hpct_rank_node_text_number(text, &value);
    return value;
}

/* ---- CPUs ---- */

/* A package's count is that of each of its CPUs. */
static void take_cpu(hpct_rank_node_state *s, size_t cpu, bool clock, int *clocks)
{
    char folder[400];
    snprintf(folder, sizeof folder, "%s/devices/system/cpu/cpu%zu", s->sys, cpu);
    uint64_t package = read_number(folder, "thermal_throttle/package_throttle_count");
    s->core_throttles += read_number(folder, "thermal_throttle/core_throttle_count");
    s->package_throttles = package > s->package_throttles ? package : s->package_throttles;
    uint64_t khz = clock ? read_number(folder, "cpufreq/scaling_cur_freq") : 0;
    double most = clock ? (double) read_number(folder, "cpufreq/cpuinfo_max_freq") / 1e3 : 0;
    if (khz == 0)
        return;
    s->mhz += (double) khz / 1e3;
    s->most_mhz = most > s->most_mhz ? most : s->most_mhz;
    ++*clocks;
}

static void take_cpus(hpct_rank_node_state *s)
{
    int seen = 0, clocks = 0;
    size_t length;
    char *text = malloc(STAT_BYTES);
    for (size_t cpu = 0; cpu < 8 * s->mask_bytes; cpu++) {
        if (CPU_ISSET_S(cpu, s->mask_bytes, s->mask))
            take_cpu(s, cpu, seen++ < MOST_FREQUENCIES, &clocks);
    }
    if (clocks > 0)
        s->mhz /= clocks;
    if (text != NULL && read_text(text, STAT_BYTES, &length, "%s/stat", s->proc))
        hpct_rank_node_text_cpus(text, s->mask, s->mask_bytes, &s->ticks);
    free(text);
}

/* ---- the cgroup's CPU limit ---- */

/* A cgroup and those above it, up to the folder of length `top`. */
static void take_branch(hpct_rank_node_state *s, char *folder, size_t top)
{
    char text[2048];
    size_t length;
    for (char *end = folder + strlen(folder);
         end != NULL && (size_t) (end - folder) >= top && s->num_quotas < MOST_LEVELS;
         end = strrchr(folder, '/')) {
        hpct_rank_quota_text *quota = &s->quotas[s->num_quotas++];
        *end = '\0';
        if (!read_text(text, sizeof text, &length, "%s/cpu.stat", folder) ||
            !hpct_rank_node_text_quota(text, quota))
            *quota = (hpct_rank_quota_text){0};
    }
}

static void take_quota(hpct_rank_node_state *s)
{
    char text[8192], folder[4400], *rest = NULL;
    size_t length;
    if (!read_text(text, sizeof text, &length, "%s/self/cgroup", s->proc))
        return;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        bool unified;
        const char *path = hpct_rank_node_text_cgroup(line, &unified);
        if (path == NULL)
            continue;
        const char *middle = unified ? "" : "/cpu";
        int top = snprintf(folder, sizeof folder, "%s/fs/cgroup%s", s->sys, middle);
        snprintf(folder + top, sizeof folder - (size_t) top, "%.4000s",
                 strcmp(path, "/") == 0 ? "" : path);
        take_branch(s, folder, (size_t) top);
    }
}

/* ---- processes ---- */

static int by_pid(const void *a, const void *b)
{
    const hpct_rank_process_text *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool add_process(hpct_rank_node_state *s, const char *name, int *room)
{
    char text[2048];
    size_t length;
    hpct_rank_process_text p;
    if (!isdigit((unsigned char) name[0]) ||
        !read_text(text, sizeof text, &length, "%s/%s/stat", s->proc, name) ||
        !hpct_rank_node_text_process(text, &p))
        return true;
    if (s->num_processes == *room) {
        int more = *room < 256 ? 256 : 2 * *room;
        hpct_rank_process_text *all = realloc(s->processes, (size_t) more * sizeof *all);
        if (all == NULL)
            return false;
        s->processes = all;
        *room = more;
    }
    s->processes[s->num_processes++] = p;
    return true;
}

static hpct_status take_processes(hpct_rank_node_state *s)
{
    int room = 0;
    bool fits = true;
    DIR *folder = opendir(s->proc);
    const struct dirent *entry;
    while (folder != NULL && fits && s->num_processes < MOST_PROCESSES &&
           (entry = readdir(folder)) != NULL)
        fits = add_process(s, entry->d_name, &room);
    if (folder != NULL)
        closedir(folder);
    if (s->num_processes > 0)
        qsort(s->processes, (size_t) s->num_processes, sizeof *s->processes, by_pid);
    return fits ? HPCT_OK : hpct_fail_memory(2 * (size_t) room * sizeof *s->processes);
}

static const hpct_rank_process_text *find_process(const hpct_rank_node_state *s, int pid)
{
    const hpct_rank_process_text key = {.pid = pid};
    return s->num_processes == 0 ? NULL
                                 : bsearch(&key, s->processes, (size_t) s->num_processes,
                                           sizeof *s->processes, by_pid);
}

/* ---- network interfaces ---- */

static void take_interface(hpct_rank_node_state *s, const char *name)
{
    char folder[600];
    interface *i = &s->interfaces[s->num_interfaces];
    if (name[0] == '.' || strcmp(name, "lo") == 0 || strlen(name) >= sizeof i->name)
        return;
    snprintf(folder, sizeof folder, "%s/class/net/%s/statistics", s->sys, name);
    strcpy(i->name, name);
    i->errors = read_number(folder, "rx_errors") + read_number(folder, "tx_errors");
    i->drops = read_number(folder, "rx_dropped") + read_number(folder, "tx_dropped");
    s->num_interfaces++;
}

static void take_interfaces(hpct_rank_node_state *s)
{
    char path[300];
    const struct dirent *entry;
    snprintf(path, sizeof path, "%s/class/net", s->sys);
    DIR *folder = opendir(path);
    while (folder != NULL && s->num_interfaces < MOST_INTERFACES &&
           (entry = readdir(folder)) != NULL)
        take_interface(s, entry->d_name);
    if (folder != NULL)
        closedir(folder);
}

/* ---- a state ---- */

hpct_status hpct_rank_node_state_take_in(hpct_rank_node_state **out, const char *proc,
                                         const char *sys)
{
    hpct_rank_node_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return hpct_fail_memory(sizeof *s);
    snprintf(s->proc, sizeof s->proc, "%s", proc);
    snprintf(s->sys, sizeof s->sys, "%s", sys);
    s->at = hpct_process_clock();
    s->mask = hpct_rank_threads_mask(&s->mask_bytes);
    if (s->mask != NULL)
        take_cpus(s);
    take_quota(s);
    take_interfaces(s);
    hpct_status status = take_processes(s);
    if (status == HPCT_OK)
        *out = s;
    else
        hpct_rank_node_state_free(s);
    return status;
}

hpct_status hpct_rank_node_state_take(hpct_rank_node_state **out)
{
    return hpct_rank_node_state_take_in(out, "/proc", "/sys");
}

void hpct_rank_node_state_free(hpct_rank_node_state *s)
{
    if (s == NULL)
        return;
    if (s->mask != NULL)
        CPU_FREE(s->mask);
    free(s->processes);
    free(s);
}

/* ---- whose a process is ---- */

/* In a step: whether its environment names the same step. Of another user's it cannot be read. */
static bool is_of_step(const hpct_rank_node_state *s, int pid, const char *job, const char *step)
{
    char *block = malloc(BLOCK_BYTES);
    size_t length;
    bool same = false;
    if (block != NULL && read_text(block, BLOCK_BYTES, &length, "%s/%d/environ", s->proc, pid)) {
        const char *its_job = hpct_rank_node_text_variable(block, length, "SLURM_JOB_ID"),
                   *its_step = hpct_rank_node_text_variable(block, length, "SLURM_STEP_ID");
        same = its_job != NULL && its_step != NULL && strcmp(its_job, job) == 0 &&
               strcmp(its_step, step) == 0;
    }
    free(block);
    return same;
}

static bool descends_from(const hpct_rank_node_state *s, const hpct_rank_process_text *p, int pid)
{
    for (int depth = 0; p != NULL && depth < 64; depth++) {
        if (p->pid == pid)
            return true;
        p = find_process(s, p->parent);
    }
    return false;
}

/* This process, what it started, and the other ranks: in a Slurm step by their environment, else
 * those that the same launcher started under the same name. */
static bool is_own(const hpct_rank_node_state *s, const hpct_rank_process_text *p)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    const hpct_rank_process_text *self = find_process(s, (int) getpid());
    if (descends_from(s, p, (int) getpid()))
        return true;
    if (job != NULL && step != NULL)
        return is_of_step(s, p->pid, job, step);
    return self != NULL && p->parent == self->parent && strcmp(p->name, self->name) == 0;
}

/* ---- the difference ---- */

typedef struct user {
    const hpct_rank_process_text *process;
    uint64_t ticks;
} user;

static int by_use(const void *a, const void *b)
{
    const user *x = a, *y = b;
    return (x->ticks < y->ticks) - (x->ticks > y->ticks);
}

/* Ticks since `before`; 0 on CPUs that are not ours. */
static uint64_t used(const hpct_rank_node_state *before, const hpct_rank_node_state *after,
                     const hpct_rank_process_text *p)
{
    const hpct_rank_process_text *then = find_process(before, p->pid);
    bool here =
        after->mask == NULL || ((size_t) p->cpu < 8 * after->mask_bytes &&
                                CPU_ISSET_S((size_t) p->cpu, after->mask_bytes, after->mask));
    if (!here)
        return 0;
    if (then == NULL || then->started != p->started)
        return p->ticks;
    return p->ticks > then->ticks ? p->ticks - then->ticks : 0;
}

/* The processes that used most CPU time; whether they are others is asked of these only. */
static void compare_processes(hpct_rank_node_change *c, const hpct_rank_node_state *before,
                              const hpct_rank_node_state *after)
{
    double tick = 1.0 / (double) sysconf(_SC_CLK_TCK);
    user *users = calloc((size_t) after->num_processes + 1, sizeof *users);
    if (users == NULL)
        return;
    for (int i = 0; i < after->num_processes; i++)
        users[i] = (user){&after->processes[i], used(before, after, &after->processes[i])};
    qsort(users, (size_t) after->num_processes, sizeof *users, by_use);
    for (int i = 0; i < after->num_processes && i < MOST_CANDIDATES && users[i].ticks > 0; i++) {
        const hpct_rank_process_text *p = users[i].process;
        if (is_own(after, p))
            continue;
        c->others += (double) users[i].ticks * tick / c->seconds;
        if (c->busiest_pid == 0) {
            c->busiest_pid = p->pid;
            memcpy(c->busiest, p->name, sizeof c->busiest);
        }
    }
    free(users);
}

static uint64_t more(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

/* The level that throttled most. */
static void compare_quotas(hpct_rank_node_change *c, const hpct_rank_node_state *before,
                           const hpct_rank_node_state *after)
{
    for (int i = 0; i < after->num_quotas && i < before->num_quotas; i++) {
        const hpct_rank_quota_text *then = &before->quotas[i], *now = &after->quotas[i];
        uint64_t throttled = more(then->throttled, now->throttled);
        if (throttled <= c->throttled)
            continue;
        c->throttled = throttled;
        c->quota_periods = more(then->periods, now->periods);
    }
}

static void compare_interfaces(hpct_rank_node_change *c, const hpct_rank_node_state *before,
                               const hpct_rank_node_state *after)
{
    for (int i = 0; i < after->num_interfaces; i++) {
        const interface *now = &after->interfaces[i];
        for (int k = 0; k < before->num_interfaces; k++) {
            const interface *then = &before->interfaces[k];
            uint64_t errors = more(then->errors, now->errors),
                     drops = more(then->drops, now->drops);
            if (strcmp(now->name, then->name) != 0 || errors + drops <= c->errors + c->drops)
                continue;
            memcpy(c->interface, now->name, sizeof c->interface);
            c->errors = errors;
            c->drops = drops;
        }
    }
}

void hpct_rank_node_state_compare(hpct_rank_node_change *c, const hpct_rank_node_state *before,
                                  const hpct_rank_node_state *after)
{
    uint64_t ticks = more(before->ticks.all, after->ticks.all);
    *c = (hpct_rank_node_change){
        .seconds = after->at - before->at,
        .cpus = after->mask != NULL ? CPU_COUNT_S(after->mask_bytes, after->mask) : 1,
        .mhz = after->mhz,
        .most_mhz = after->most_mhz,
        .throttles = more(before->core_throttles, after->core_throttles) +
                     more(before->package_throttles, after->package_throttles),
    };
    if (ticks > 0)
        c->stolen = (double) more(before->ticks.stolen, after->ticks.stolen) / (double) ticks;
    if (c->seconds > 0)
        compare_processes(c, before, after);
    compare_quotas(c, before, after);
    compare_interfaces(c, before, after);
}

/* ---- in words ---- */

__attribute__((format(printf, 2, 3))) static void add_phrase(char *text, const char *format, ...)
{
    va_list args;
    size_t used = strlen(text);
    if (used > 0 && used + 2 < HPCT_RANK_NODE_PHRASE) {
        strcpy(text + used, "; ");
        used += 2;
    }
    va_start(args, format);
    vsnprintf(text + used, HPCT_RANK_NODE_PHRASE - used, format, args);
    va_end(args);
}

void hpct_rank_node_change_describe(const hpct_rank_node_change *c,
                                    char text[HPCT_RANK_NODE_PHRASE])
{
    text[0] = '\0';
    if (c->mhz > 0 && c->mhz < SLOW_CLOCK * c->most_mhz)
        add_phrase(text, "CPUs at %.0f of %.0f MHz", c->mhz, c->most_mhz);
    if (c->throttles > 0)
        add_phrase(text, "CPUs were throttled by heat %llu times",
                   (unsigned long long) c->throttles);
    if (c->throttled > 0)
        add_phrase(text, "the CPU limit of its cgroup throttled it in %llu of %llu periods",
                   (unsigned long long) c->throttled, (unsigned long long) c->quota_periods);
    if (c->stolen >= MUCH_STOLEN)
        add_phrase(text, "the hypervisor took %.0f %% of CPU time", 100 * c->stolen);
    if (c->busiest_pid > 0 && c->others >= MANY_OTHERS)
        add_phrase(text, "other processes used %.1f of its %d CPUs, most %s (pid %d)", c->others,
                   c->cpus, c->busiest, c->busiest_pid);
    if (c->errors + c->drops > 0)
        add_phrase(text, "%s had %llu errors and dropped %llu packets", c->interface,
                   (unsigned long long) c->errors, (unsigned long long) c->drops);
}
