/* The program writes to sealed memfds of fixed size. With a pipe, another process of the user could
 * take the data or hold the pipe's lock. */
#include <config.h>

#include "spank/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"
#include "spank/cgroup.h"

#define MAX_LINES 40
#define PROGRESS_BYTES 4096
#define ERROR_BYTES 65536

/* ---- command lines ---- */

/* execve does not change what it is given; its type is older than const. */
void hpct_spank_argv_add(hpct_spank_argv *argv, const char *word)
{
    union {
        const char *in;
        char *out;
    } both = {.in = word};
    if (argv->count < HPCT_SPANK_ARGV_WORDS)
        argv->words[argv->count++] = both.out;
}

void hpct_spank_argv_add_option(hpct_spank_argv *argv, const char *option, const char *value)
{
    if (value == NULL)
        return;
    hpct_spank_argv_add(argv, option);
    hpct_spank_argv_add(argv, value);
}

void hpct_spank_argv_add_printed(hpct_spank_argv *argv, const char *option, const char *format, ...)
{
    char *text = argv->text + argv->used;
    size_t room = sizeof argv->text - argv->used;
    va_list values;
    va_start(values, format);
    int size = vsnprintf(text, room, format, values);
    va_end(values);
    if (size < 0 || (size_t) size >= room)
        return;
    argv->used += (size_t) size + 1;
    hpct_spank_argv_add_option(argv, option, text);
}

/* ---- the child ---- */

static void give_up(const char *program, const char *why)
{
    dprintf(2, "hpc-train: %s cannot be started: %s\n", program, why);
    _exit(HPCT_ERR_INTERNAL);
}

/* In the forked child: closes all descriptors but the standard ones and the heartbeat's;
 * environment without the user's loader variables. */
static void become_program(const hpct_spank_child *child, int progress, int errors, pid_t parent)
{
    static char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL};
    const char *program = child->arguments[0];
    hpct_spank_forked_rename();
    if (errors >= 0 && dup2(errors, 2) < 0)
        _exit(HPCT_ERR_INTERNAL);
    if (child->cgroup != NULL && hpct_spank_cgroup_enter(child->cgroup) != HPCT_OK)
        give_up(program, hpct_last_error());
    if (child->as != NULL && !hpct_spank_person_become(child->as))
        give_up(program, "it cannot be given to the job's user");
    int null = open("/dev/null", O_RDONLY), file = -1;
    if (child->file > 0 && (file = fcntl(child->file, F_DUPFD, HPCT_SPANK_CHILD_FILE_FD)) < 0)
        _exit(HPCT_ERR_INTERNAL); /* copied, as its number may be HPCT_SPANK_PROGRESS_FD */
    if (null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0 ||
        dup2(progress, HPCT_SPANK_PROGRESS_FD) < 0 ||
        /* dup2 does nothing if the number is the same */
        fcntl(HPCT_SPANK_PROGRESS_FD, F_SETFD, 0) != 0 ||
        (file >= 0 && dup2(file, HPCT_SPANK_CHILD_FILE_FD) < 0))
        _exit(HPCT_ERR_INTERNAL);
    if (close_range(file >= 0 ? HPCT_SPANK_CHILD_FILE_FD + 1 : HPCT_SPANK_PROGRESS_FD + 1, ~0u,
                    0) != 0)
        give_up(program, "its descriptors cannot be closed"); /* kernel before 5.9 */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    hpct_spank_forked_begin(child->end_signal, parent);
    execve(program, child->arguments, environment);
    dprintf(2, "hpc-train: %s cannot be started: %s; set helper= in plugstack.conf\n", program,
            strerror(errno));
    _exit(HPCT_ERR_CONFIG);
}

/* A memfd sealed against resizing. */
static int make_file(const char *name, off_t size)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, size) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    hpct_fd_close(fd);
    return -1;
}

typedef struct watched {
    const hpct_spank_child *child;
    int progress;
    char seen[PROGRESS_BYTES];
} watched;

static bool shows_life(void *context)
{
    watched *w = context;
    char bytes[PROGRESS_BYTES];
    if (pread(w->progress, bytes, sizeof bytes, 0) != sizeof bytes ||
        memcmp(bytes, w->seen, sizeof bytes) == 0)
        return false;
    memcpy(w->seen, bytes, sizeof bytes);
    if (w->child->alive != NULL)
        w->child->alive(w->child->context);
    return true;
}

/* Passes the program's standard error on as lines. The user may control it: non-printable
 * characters are replaced and the length is bounded. */
static void pass_lines(const hpct_spank_child *child, int errors)
{
    char line[1024], bytes[4096];
    size_t size = 0;
    ssize_t got;
    int count = 0;
    for (off_t at = 0; (got = pread(errors, bytes, sizeof bytes, at)) > 0; at += got) {
        for (ssize_t i = 0; i < got; i++) {
            unsigned char byte = (unsigned char) bytes[i]; /* zero: unused part of the file */
            bool ends = byte == '\n' || byte == '\0' || size == sizeof line - 1;
            line[size] = '\0';
            if (ends && size > 0 && count++ < MAX_LINES)
                child->line(child->context, line);
            if (byte == '\0')
                return;
            if (ends)
                size = 0;
            if (byte != '\n')
                line[size++] = byte < ' ' || byte == 127 ? '?' : bytes[i];
        }
    }
}

/* Kills descendants. Orphans are reparented to this process (subreaper), so their pids remain valid
 * until waitpid; their children are found in the next round. */
static void end_all(void)
{
    char path[64];
    double end = hpct_spank_forked_now() + HPCT_SPANK_KILL_SECONDS;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int) getpid());
    for (bool left = true; left && hpct_spank_forked_now() < end;) {
        pid_t pid = 0;
        FILE *children = fopen(path, "re");
        while (children != NULL && fscanf(children, "%d", &pid) == 1)
            kill(pid, SIGKILL);
        if (children != NULL)
            fclose(children);
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        left = pid == 0;
        if (left)
            hpct_pause_ms(1);
    }
}

hpct_status hpct_spank_child_run(const hpct_spank_child *child, const char *what)
{
    const char *program = child->arguments[0];
    int state = 0, progress = make_file("hpc-train-progress", PROGRESS_BYTES), errors = -1;
    if (progress < 0 ||
        (child->line != NULL && (errors = make_file("hpc-train-errors", ERROR_BYTES)) < 0)) {
        hpct_fd_close(progress);
        hpct_fd_close(errors);
        return hpct_fail(HPCT_ERR_INTERNAL, "no memory for %s: %s", program, strerror(errno));
    }
    if (child->alone)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    double start = hpct_spank_forked_now();
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        hpct_fd_close(progress);
        hpct_fd_close(errors);
        return hpct_fail(HPCT_ERR_INTERNAL, "%s cannot be started: %s", program, strerror(errno));
    }
    if (pid == 0)
        become_program(child, progress, errors, parent);
    watched w = {.child = child, .progress = progress};
    const hpct_spank_forked_limits limits = {.seconds = child->limit_seconds,
                                             .stall_seconds = child->stall_seconds,
                                             .alive = shows_life,
                                             .context = &w};
    hpct_spank_forked_end how = hpct_spank_forked_await(pid, start, &limits, &state);
    if (child->alone)
        end_all();
    if (child->line != NULL)
        pass_lines(child, errors);
    hpct_fd_close(progress);
    hpct_fd_close(errors);
    if (how == HPCT_SPANK_FORKED_LOST)
        return hpct_fail(HPCT_ERR_IO, "%s: its status is lost", program);
    if (how == HPCT_SPANK_FORKED_STALLED)
        return hpct_fail(HPCT_ERR_IO, "%s made no progress for %d seconds and was ended", program,
                         child->stall_seconds);
    if (how == HPCT_SPANK_FORKED_OUT_OF_TIME)
        return hpct_fail(HPCT_ERR_STOPPED, "%s had not ended after %d seconds and was ended",
                         program, child->limit_seconds);
    if (WIFSIGNALED(state))
        return hpct_fail(HPCT_ERR_IO, "%s was killed by signal %d", program, WTERMSIG(state));
    if (WEXITSTATUS(state) != 0)
        return hpct_fail((hpct_status) WEXITSTATUS(state),
                         "%s failed with status %d (see the message of hpc-train-stage)", what,
                         WEXITSTATUS(state));
    return HPCT_OK;
}
