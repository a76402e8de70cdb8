/* The process that holds a lock: job and launch (of `hpc-train launch`), how often they were
 * started before, host and process id. `started`, clock ticks after boot, tells apart processes
 * with the same id; `boot` and `processes`, the PID namespace, tell apart machines. */
#include "agent/checkpoint/holder.h"

#include "agent/checkpoint/disk.h"
#include "base/process.h"

#include <errno.h>
#include <inttypes.h>
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

static void read_machine(char boot[64], char processes[64])
{
    read_line(boot, 64, "/proc/sys/kernel/random/boot_id");
    ssize_t length = readlink("/proc/self/ns/pid", processes, 63);
    processes[length > 0 ? length : 0] = '\0';
}

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? text : "";
}

static json_int_t count_of(const char *name)
{
    return strtoll(variable(name), NULL, 10);
}

json_t *hpct_ckpt_holder_self(void)
{
    char host[256] = "unknown", boot[64], processes[64], since[32] = "";
    char token[HPCT_CKPT_DISK_TOKEN];
    time_t now = time(NULL);
    struct tm utc;
    gethostname(host, sizeof host - 1);
    read_machine(boot, processes);
    if (gmtime_r(&now, &utc) != NULL)
        strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &utc);
    hpct_ckpt_disk_token(token);
    return json_pack("{s:s, s:s, s:I, s:s, s:I, s:s, s:I, s:I, s:s, s:s, s:s, s:s}", "job",
                     variable("SLURM_JOB_ID"), "cluster", variable("SLURM_CLUSTER_NAME"),
                     "requeues", count_of("SLURM_RESTART_COUNT"), "launch",
                     variable("HPC_TRAIN_LAUNCH"), "restarts", count_of("HPC_TRAIN_RESTART"),
                     "host", host, "pid", (json_int_t) getpid(), "started",
                     (json_int_t) hpct_process_start(getpid()), "boot", boot, "processes",
                     processes, "since", since, "token", token);
}

/* ---- another one ---- */

static const char *text_of(const json_t *holder, const char *key)
{
    const char *text = json_string_value(json_object_get(holder, key));
    return text != NULL ? text : "";
}

static int64_t number_of(const json_t *holder, const char *key)
{
    return json_integer_value(json_object_get(holder, key));
}

static bool has(const json_t *holder, const char *key, const char *text)
{
    return strcmp(text_of(holder, key), text) == 0;
}

bool hpct_ckpt_holder_same(const json_t *a, const json_t *b)
{
    return has(a, "token", text_of(b, "token"));
}

/* Whether it belongs to an earlier run of this job, or of this launch. */
static bool is_of_earlier_run(const json_t *holder)
{
    const char *job = variable("SLURM_JOB_ID"), *launch = variable("HPC_TRAIN_LAUNCH");
    if (job[0] == '\0' || !has(holder, "job", job) ||
        !has(holder, "cluster", variable("SLURM_CLUSTER_NAME")))
        return false;
    return number_of(holder, "requeues") < count_of("SLURM_RESTART_COUNT") ||
           (launch[0] != '\0' && has(holder, "launch", launch) &&
            number_of(holder, "restarts") < count_of("HPC_TRAIN_RESTART"));
}

hpct_ckpt_holder_life hpct_ckpt_holder_look(const json_t *holder)
{
    char boot[64], processes[64];
    int64_t pid = number_of(holder, "pid"), started = number_of(holder, "started");
    if (is_of_earlier_run(holder))
        return HPCT_CKPT_HOLDER_ENDED;
    read_machine(boot, processes);
    if (boot[0] == '\0' || processes[0] == '\0' || !has(holder, "boot", boot) ||
        !has(holder, "processes", processes) || pid <= 0 || pid > INT32_MAX || started <= 0)
        return HPCT_CKPT_HOLDER_UNKNOWN;
    int64_t now = hpct_process_start((pid_t) pid);
    if (now >= 0)
        return now == started ? HPCT_CKPT_HOLDER_LIVES : HPCT_CKPT_HOLDER_ENDED;
    return kill((pid_t) pid, 0) != 0 && errno == ESRCH ? HPCT_CKPT_HOLDER_ENDED
                                                       : HPCT_CKPT_HOLDER_UNKNOWN;
}

void hpct_ckpt_holder_describe(const json_t *holder, char *text, size_t size)
{
    const char *job = text_of(holder, "job"), *host = text_of(holder, "host");
    if (host[0] == '\0')
        snprintf(text, size, "a run that has left no name");
    else
        snprintf(text, size, "%s%.31s on host %.255s (process %" PRId64 ", since %.31s)",
                 job[0] != '\0' ? "job " : "a run outside of jobs", job, host,
                 number_of(holder, "pid"), text_of(holder, "since"));
}
