/* Reads HDF5 files in a child process with limits: libhdf5 may crash, or go round in circles, on a
 * damaged or a hostile file. The answer comes through a pipe, and is checked as the file is. */
#include "nn/file/keras/weights_h5.h"

#include "base/process.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPU_SECONDS 10              /* and one for each CPU_BYTES of the file */
#define CPU_BYTES (16 << 20)        /* far below what a core reads in a second */
#define WALL_SECONDS 600            /* and one for each WALL_BYTES */
#define WALL_BYTES (1 << 20)        /* what a slow network file system reads in a second */
#define ROOM ((size_t) 512 << 20)   /* bytes that libhdf5 may need beside the file's */
#define MAX_TEXT ((size_t) 2 << 20) /* of a text in the answer */
#define SLICE_MS 200

typedef struct reading {
    const hpct_model *model; /* NULL: only the texts are wanted */
    const char *path;
    float **values;
    hpct_keras_h5_texts *texts;
    hpct_keras_skips *skips;
    size_t size; /* of the file */
} reading;

/* The beginning of the answer; the texts, with their NUL, and the values follow. */
typedef struct answer {
    int status, num_skipped, num_loaded;
    size_t message, class_names, trained_with, skipped; /* sizes; 0: NULL */
} answer;

static int num_params(const reading *r)
{
    return r->model != NULL ? r->model->num_params : 0;
}

static size_t bytes_of(const hpct_model *model, int param)
{
    return hpct_graph_shape_count(&model->params[param].shape) * sizeof(float);
}

/* ---- in the child ---- */

static void send_bytes(int fd, const void *bytes, size_t size)
{
    const char *from = bytes;
    while (size > 0) {
        ssize_t sent = write(fd, from, size);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            _exit(HPCT_ERR_IO);
        from += sent;
        size -= (size_t) sent;
    }
}

/* A lower limit of the user stays. */
static void set_limit(__rlimit_resource_t which, rlim_t most)
{
    struct rlimit limit;
    if (getrlimit(which, &limit) != 0)
        _exit(HPCT_ERR_INTERNAL);
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > most)
        limit.rlim_cur = most;
    if (setrlimit(which, &limit) != 0)
        _exit(HPCT_ERR_INTERNAL);
}

/* Address space in use. */
static size_t used_memory(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%llu", &pages) != 1)
        _exit(HPCT_ERR_INTERNAL);
    fclose(file);
    return (size_t) pages * (size_t) sysconf(_SC_PAGESIZE);
}

/* MPI's handlers of crashes would print, and so would libc. A signal to the job is its parent's. */
static void prepare_child(const reading *r)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGSYS};
    sigset_t set;
    size_t bytes = ROOM + r->size;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        signal(crashes[i], SIG_DFL);
        sigaddset(&set, crashes[i]);
    }
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        _exit(HPCT_ERR_INTERNAL);
    for (int i = 0; i < num_params(r); i++)
        bytes += bytes_of(r->model, i);
    set_limit(RLIMIT_AS, used_memory() + bytes);
    set_limit(RLIMIT_CPU, CPU_SECONDS + r->size / CPU_BYTES);
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_FSIZE, 0);
}

static size_t size_of(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

static void send_values(const reading *r, int fd)
{
    for (int i = 0; i < num_params(r); i++) {
        char is_there = r->values[i] != NULL;
        send_bytes(fd, &is_there, 1);
        if (is_there)
            send_bytes(fd, r->values[i], bytes_of(r->model, i));
        free(r->values[i]);
    }
}

static hpct_status read_file(reading *r, hpct_keras_h5_texts *texts, hpct_keras_skips *skips)
{
    if (r->model == NULL)
        return hpct_keras_h5_load_texts(r->path, texts);
    return r->skips == NULL
               ? hpct_keras_h5_load(r->model, r->path, r->values, texts)
               : hpct_keras_h5_load_fitting(r->model, r->path, r->values, texts, skips);
}

static _Noreturn void run_child(reading *r, int fd)
{
    hpct_keras_h5_texts texts = {0};
    hpct_keras_skips skips = {0};
    prepare_child(r);
    hpct_status status = read_file(r, &texts, &skips);
    const char *message = status == HPCT_OK ? NULL : hpct_last_error();
    answer a = {.status = (int) status,
                .num_skipped = skips.count,
                .num_loaded = skips.loaded,
                .message = size_of(message),
                .class_names = size_of(texts.class_names),
                .trained_with = size_of(texts.trained_with),
                .skipped = size_of(skips.text)};
    send_bytes(fd, &a, sizeof a);
    send_bytes(fd, message, a.message);
    send_bytes(fd, texts.class_names, a.class_names);
    send_bytes(fd, texts.trained_with, a.trained_with);
    send_bytes(fd, skips.text, a.skipped);
    if (status == HPCT_OK)
        send_values(r, fd);
    _exit(0);
}

/* ---- in the parent ---- */

typedef struct child {
    pid_t pid;
    int fd;
    double until;
    bool is_late, is_short_of_memory;
} child;

/* False if it ended before, or is late. */
static bool receive_bytes(child *c, void *bytes, size_t size)
{
    char *to = bytes;
    while (size > 0) {
        struct pollfd one = {.fd = c->fd, .events = POLLIN};
        c->is_late = hpct_process_clock() > c->until;
        int ready = c->is_late ? -1 : poll(&one, 1, SLICE_MS);
        if (!c->is_late && (ready == 0 || (ready < 0 && errno == EINTR)))
            continue;
        ssize_t got = ready > 0 ? read(c->fd, to, size) : -1;
        if (got <= 0)
            return false;
        to += got;
        size -= (size_t) got;
    }
    return true;
}

static void *reserve(child *c, size_t size)
{
    void *memory = malloc(size);
    c->is_short_of_memory = memory == NULL;
    return memory;
}

static bool receive_text(child *c, char **text, size_t size)
{
    *text = NULL;
    if (size == 0)
        return true;
    if (size > MAX_TEXT || (*text = reserve(c, size)) == NULL)
        return false;
    bool whole = receive_bytes(c, *text, size);
    (*text)[size - 1] = '\0';
    return whole;
}

static bool receive_values(child *c, const reading *r)
{
    for (int i = 0; i < num_params(r); i++) {
        char is_there = 0;
        if (!receive_bytes(c, &is_there, 1) || (!is_there && r->skips == NULL))
            return false;
        if (!is_there)
            continue;
        r->values[i] = reserve(c, bytes_of(r->model, i));
        if (r->values[i] == NULL || !receive_bytes(c, r->values[i], bytes_of(r->model, i)))
            return false;
    }
    return true;
}

static bool is_error(int status)
{
    return status == HPCT_ERR_DATA || status == HPCT_ERR_NO_INPUT || status == HPCT_ERR_IO ||
           status == HPCT_ERR_INTERNAL || status == HPCT_ERR_CONFIG;
}

/* False if the child ended without an answer, or with an invalid one; else *status is what it
 * returned, with its message. */
static bool receive_answer(child *c, const reading *r, hpct_status *status)
{
    char *message = NULL;
    hpct_keras_skips skips = {0};
    answer a;
    if (!receive_bytes(c, &a, sizeof a))
        return false;
    bool good = receive_text(c, &message, a.message) &&
                receive_text(c, &r->texts->class_names, a.class_names) &&
                receive_text(c, &r->texts->trained_with, a.trained_with) &&
                receive_text(c, &skips.text, a.skipped);
    if (good && a.status == HPCT_OK)
        good = receive_values(c, r);
    else
        good = good && is_error(a.status) && message != NULL;
    if (good)
        *status = message == NULL ? HPCT_OK : hpct_fail((hpct_status) a.status, "%s", message);
    skips.count = a.num_skipped;
    skips.loaded = a.num_loaded;
    free(message);
    if (r->skips != NULL)
        *r->skips = skips;
    else
        free(skips.text);
    return good;
}

/* Where SIGCHLD is ignored, the system has waited; a file system that hangs may keep it. */
static int end_child(const child *c)
{
    int how = 0;
    close(c->fd);
    kill(c->pid, SIGKILL); /* has no effect on one that has crashed */
    for (int i = 0; i < 1000 && waitpid(c->pid, &how, WNOHANG) == 0; i++)
        usleep(2000);
    return how;
}

/* Says why the child did not answer. */
static hpct_status explain(const child *c, int how)
{
    int ended_by = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    if (c->is_short_of_memory)
        return hpct_fail_memory(0);
    if (c->is_late)
        return hpct_fail(HPCT_ERR_IO, "it was not read within %d s", WALL_SECONDS);
    if (ended_by == SIGKILL)
        return hpct_fail(HPCT_ERR_INTERNAL, "the process that reads it was killed: is the memory "
                                            "of the machine or job full?");
    if (ended_by == SIGXCPU)
        return hpct_fail(HPCT_ERR_DATA, "HDF5 does not come to its end: the file is damaged");
    return hpct_fail(HPCT_ERR_DATA, "HDF5 crashes when it reads it (%s): the file is damaged",
                     ended_by != 0 ? strsignal(ended_by) : "no answer");
}

/* The parent's handlers must not run in the child: its signals are blocked from before the fork. */
static hpct_status start_child(child *c, reading *r)
{
    int fds[2];
    sigset_t all, before;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "no pipe to read it: %s", strerror(errno));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    c->fd = fds[0];
    c->pid = fork();
    if (c->pid == 0)
        run_child(r, fds[1]);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(fds[1]);
    if (c->pid > 0)
        return HPCT_OK;
    close(fds[0]);
    return hpct_fail(HPCT_ERR_INTERNAL, "no process to read it: %s", strerror(error));
}

hpct_status hpct_keras_h5_read(const hpct_model *model, const char *path, float **values,
                               hpct_keras_h5_texts *texts, hpct_keras_skips *skips)
{
    struct stat about;
    reading r = {model, path, values, texts, skips, 0};
    if (stat(path, &about) != 0)
        return hpct_fail(HPCT_ERR_NO_INPUT, "%s", strerror(errno));
    r.size = (size_t) about.st_size;
    HPCT_TRY(hpct_keras_h5_available()); /* loaded once, not by each child */
    child c = {.until = hpct_process_clock() + WALL_SECONDS + (double) (r.size / WALL_BYTES)};
    HPCT_TRY(start_child(&c, &r));
    hpct_status status = HPCT_OK;
    bool answered = receive_answer(&c, &r, &status);
    int how = end_child(&c);
    return answered ? status : explain(&c, how);
}
