/* The process that holds a lock. */
#include "agent/checkpoint/holder.h"

#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- this process ---- */

static void read_line(char *out, size_t size, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(out, (int) size, file) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (file != NULL)
        fclose(file);
}

/* Field 22 of /proc/PID/stat; -1 if it cannot be read, 0 for a process that has ended and was not
 * waited for. Field 2, the name, may contain anything. */
static int64_t start_of(int64_t pid)
{
    char path[64], line[1024];
    int64_t started = -1;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    read_line(line, sizeof line, path);
    const char *at = strrchr(line, ')');
    if (at != NULL && (strncmp(at, ") Z", 3) == 0 || strncmp(at, ") X", 3) == 0))
        return 0;
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at != NULL)
        started = strtoll(at, NULL, 10);
    return started;
}

static void read_machine(char boot[64], char processes[64])
{
    read_line(boot, 64, "/proc/sys/kernel/random/boot_id");
    ssize_t length = readlink("/proc/self/ns/pid", processes, 63);
    processes[length > 0 ? length : 0] = '\0';
}

static void copy_variable(char *out, size_t size, const char *variable)
{
    const char *text = getenv(variable);
    snprintf(out, size, "%s", text != NULL ? text : "");
}

static int64_t count_of(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

/* Job and launch, from the environment. */
static void name_run(hpct_ckpt_holder *out)
{
    copy_variable(out->job, sizeof out->job, "SLURM_JOB_ID");
    copy_variable(out->cluster, sizeof out->cluster, "SLURM_CLUSTER_NAME");
    copy_variable(out->launch, sizeof out->launch, "HPC_TRAIN_LAUNCH");
    out->requeues = count_of("SLURM_RESTART_COUNT");
    out->restarts = count_of("HPC_TRAIN_RESTART");
}

void hpct_ckpt_holder_self(hpct_ckpt_holder *out)
{
    time_t now = time(NULL);
    struct tm utc;
    *out = (hpct_ckpt_holder){.pid = getpid(), .started = start_of(getpid())};
    name_run(out);
    if (gethostname(out->host, sizeof out->host - 1) != 0)
        strcpy(out->host, "unknown");
    read_machine(out->boot, out->processes);
    if (gmtime_r(&now, &utc) != NULL)
        strftime(out->since, sizeof out->since, "%Y-%m-%dT%H:%M:%SZ", &utc);
    hpct_ckpt_disk_token(out->token);
}

/* ---- the file ---- */

hpct_status hpct_ckpt_holder_format(char **out, const hpct_ckpt_holder *holder)
{
    json_t *root = json_pack(
        "{s:s, s:s, s:I, s:s, s:I, s:s, s:I, s:I, s:s, s:s, s:s, s:s}", "job", holder->job,
        "cluster", holder->cluster, "requeues", (json_int_t) holder->requeues, "launch",
        holder->launch, "restarts", (json_int_t) holder->restarts, "host", holder->host, "pid",
        (json_int_t) holder->pid, "started", (json_int_t) holder->started, "boot", holder->boot,
        "processes", holder->processes, "since", holder->since, "token", holder->token);
    *out = root != NULL ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    return *out != NULL ? HPCT_OK : hpct_fail_memory(0);
}

static void get_text(char *out, size_t size, const json_t *root, const char *key)
{
    const char *text = json_string_value(json_object_get(root, key));
    snprintf(out, size, "%s", text != NULL ? text : "");
}

void hpct_ckpt_holder_parse(hpct_ckpt_holder *out, const char *text, size_t length)
{
    json_t *root = json_loadb(text, length, 0, NULL);
    *out = (hpct_ckpt_holder){.pid = json_integer_value(json_object_get(root, "pid")),
                              .started = json_integer_value(json_object_get(root, "started")),
                              .requeues = json_integer_value(json_object_get(root, "requeues")),
                              .restarts = json_integer_value(json_object_get(root, "restarts"))};
    get_text(out->job, sizeof out->job, root, "job");
    get_text(out->cluster, sizeof out->cluster, root, "cluster");
    get_text(out->launch, sizeof out->launch, root, "launch");
    get_text(out->host, sizeof out->host, root, "host");
    get_text(out->boot, sizeof out->boot, root, "boot");
    get_text(out->processes, sizeof out->processes, root, "processes");
    get_text(out->since, sizeof out->since, root, "since");
    get_text(out->token, sizeof out->token, root, "token");
    json_decref(root);
}

/* ---- whether it lives ---- */

/* Whether it belongs to an earlier run of this job, or of this launch. */
static bool is_of_earlier_run(const hpct_ckpt_holder *holder)
{
    hpct_ckpt_holder self;
    name_run(&self);
    if (self.job[0] == '\0' || strcmp(self.job, holder->job) != 0 ||
        strcmp(self.cluster, holder->cluster) != 0)
        return false;
    return holder->requeues < self.requeues ||
           (self.launch[0] != '\0' && strcmp(self.launch, holder->launch) == 0 &&
            holder->restarts < self.restarts);
}

hpct_ckpt_holder_life hpct_ckpt_holder_look(const hpct_ckpt_holder *holder)
{
    char boot[64], processes[64];
    if (is_of_earlier_run(holder))
        return HPCT_CKPT_HOLDER_ENDED;
    read_machine(boot, processes);
    if (boot[0] == '\0' || processes[0] == '\0' || strcmp(boot, holder->boot) != 0 ||
        strcmp(processes, holder->processes) != 0 || holder->pid <= 0 || holder->pid > INT32_MAX ||
        holder->started <= 0)
        return HPCT_CKPT_HOLDER_UNKNOWN;
    if (kill((pid_t) holder->pid, 0) != 0 && errno == ESRCH)
        return HPCT_CKPT_HOLDER_ENDED;
    int64_t started = start_of(holder->pid);
    if (started >= 0)
        return started == holder->started ? HPCT_CKPT_HOLDER_LIVES : HPCT_CKPT_HOLDER_ENDED;
    return kill((pid_t) holder->pid, 0) != 0 && errno == ESRCH ? HPCT_CKPT_HOLDER_ENDED
                                                               : HPCT_CKPT_HOLDER_UNKNOWN;
}

void hpct_ckpt_holder_describe(const hpct_ckpt_holder *holder, char *text, size_t size)
{
    if (holder->host[0] == '\0') {
        snprintf(text, size, "a run that has left no name");
        return;
    }
    snprintf(text, size, "%s%.31s on host %.255s (process %" PRId64 ", since %.31s)",
             holder->job[0] != '\0' ? "job " : "a run outside of jobs", holder->job, holder->host,
             holder->pid, holder->since);
}
