/* The program says that it is alive through a pipe. */
#include <config.h>

#include "spank/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/cgroup.h"

#define KILL_SECONDS 5
#define MAX_LINES 40
#define MAX_REST 64 /* pieces of 4096 bytes */

/* Groups first, and looked at again. */
bool hpct_person_become(const hpct_person *person)
{
    uid_t uids[3];
    gid_t gids[3];
    return setgroups(person->num_groups, person->groups) == 0 &&
           setresgid(person->gid, person->gid, person->gid) == 0 &&
           setresuid(person->uid, person->uid, person->uid) == 0 &&
           getresuid(uids, uids + 1, uids + 2) == 0 && getresgid(gids, gids + 1, gids + 2) == 0 &&
           uids[0] == person->uid && uids[1] == person->uid && uids[2] == person->uid &&
           gids[0] == person->gid && gids[1] == person->gid && gids[2] == person->gid &&
           (person->uid == 0 || setuid(0) != 0);
}

static void give_up(const char *program, const char *why)
{
    dprintf(2, "hpc-train: %s cannot be started: %s\n", program, why);
    _exit(HPCT_ERR_INTERNAL);
}

/* In the forked child: nothing but the program's own three files and the pipe, no blocked or
 * ignored signals, an environment without the user's loader variables. */
static void become_program(const hpct_child *child, int progress, int errors, pid_t parent)
{
    static char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL};
    const char *program = child->arguments[0];
    sigset_t none;
    if (errors >= 0 && dup2(errors, 2) < 0)
        _exit(HPCT_ERR_INTERNAL);
    if (child->cgroup != NULL && hpct_cgroup_enter(child->cgroup) != HPCT_OK)
        give_up(program, hpct_last_error());
    if (child->as != NULL && !hpct_person_become(child->as))
        give_up(program, "it cannot be given to the job's user");
    int null = open("/dev/null", O_RDONLY), file = -1;
    if (child->file > 0 && (file = fcntl(child->file, F_DUPFD, HPCT_CHILD_FILE_FD)) < 0)
        _exit(HPCT_ERR_INTERNAL); /* it might have been in the way of the pipe */
    if (null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0 || dup2(progress, HPCT_PROGRESS_FD) < 0 ||
        /* dup2 leaves it as it is when it has that number */
        fcntl(HPCT_PROGRESS_FD, F_SETFD, 0) != 0 ||
        (file >= 0 && dup2(file, HPCT_CHILD_FILE_FD) < 0))
        _exit(HPCT_ERR_INTERNAL);
    if (close_range(file >= 0 ? HPCT_CHILD_FILE_FD + 1 : HPCT_PROGRESS_FD + 1, ~0u, 0) != 0)
        give_up(program, "its descriptors cannot be closed"); /* a kernel before 5.9 */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, child->end_signal); /* the change of user would have cleared it */
    if (getppid() != parent)                    /* it ended before prctl */
        _exit(HPCT_ERR_IO);
    execve(program, child->arguments, environment);
    dprintf(2, "hpc-train: %s cannot be started: %s; set helper= in plugstack.conf\n", program,
            strerror(errno));
    _exit(HPCT_ERR_CONFIG);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

typedef enum outcome { ENDED, LOST, STALLED, OUT_OF_TIME } outcome;

/* What the program writes to standard error, cut into lines. It may be under the hands of the user,
 * so what is not printable is replaced, and there is an end to it. */
typedef struct lines {
    const hpct_child *child;
    char text[1024];
    size_t size;
    int count;
} lines;

static void end_line(lines *l)
{
    l->text[l->size] = '\0';
    if (l->size > 0 && l->count++ < MAX_LINES)
        l->child->line(l->child->context, l->text);
    l->size = 0;
}

static void take_bytes(lines *l, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char) bytes[i];
        if (byte == '\n' || l->size == sizeof l->text - 1)
            end_line(l);
        if (byte != '\n')
            l->text[l->size++] = byte < ' ' || byte == 127 ? '?' : bytes[i];
    }
}

/* Reads what is there; false at its end. */
static bool take_input(struct pollfd *from, lines *l, const hpct_child *child)
{
    char bytes[4096];
    if (from->revents == 0)
        return true;
    ssize_t got = read(from->fd, bytes, sizeof bytes);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (l != NULL)
        take_bytes(l, bytes, (size_t) got);
    else if (got > 0 && child->alive != NULL)
        child->alive(child->context);
    return got > 0;
}

/* What it said last. Others may hold the pipe too, and fill it as fast as it is read. */
static void take_rest(lines *l, int errors)
{
    char bytes[4096];
    for (int i = 0; errors >= 0 && i < MAX_REST; i++) {
        ssize_t got = read(errors, bytes, sizeof bytes);
        if (got <= 0)
            break;
        take_bytes(l, bytes, (size_t) got);
    }
}

/* Until the program ends. Its pipes do not tell that: the user, whose process it is, can have them
 * kept open by another process, or closed. They only make it noticed at once. */
static outcome watch(pid_t pid, int *state, int progress, int errors, const hpct_child *child)
{
    struct pollfd from[2] = {{.fd = progress, .events = POLLIN}, {.fd = errors, .events = POLLIN}};
    lines l = {.child = child};
    double start = now(), heard = start, pause = 1;
    outcome how = ENDED;
    for (;;) {
        pid_t ended = waitpid(pid, state, WNOHANG);
        if (ended == pid)
            break;
        if (ended < 0 && errno != EINTR) {
            how = LOST;
            break;
        }
        double end = heard + child->stall_seconds;
        bool limited = child->limit_seconds > 0 && start + child->limit_seconds < end;
        if (limited)
            end = start + child->limit_seconds;
        double left = end - now();
        if (left <= 0) {
            how = limited ? OUT_OF_TIME : STALLED;
            break;
        }
        if (from[0].fd < 0 && pause < 0.05)
            pause *= 2;
        if (poll(from, 2, (int) ((left < pause ? left : pause) * 1000) + 1) <= 0)
            continue;
        if (from[0].revents != 0)
            heard = now();
        if (!take_input(&from[1], &l, child))
            from[1].fd = -1; /* poll passes over it from now on */
        if (!take_input(&from[0], NULL, child)) {
            from[0].fd = -1;
            pause = 0.001; /* it is ending, most likely */
        }
    }
    take_rest(&l, errors);
    if (child->line != NULL)
        end_line(&l);
    return how;
}

/* A process in the midst of a call to a file server that does not answer ends when that does, even
 * if it was killed. */
static void await_end(pid_t pid)
{
    for (int i = 0; i < KILL_SECONDS * 50; i++) {
        pid_t ended = waitpid(pid, NULL, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR))
            return;
        nanosleep(&(struct timespec){.tv_nsec = i < 50 ? 1000000 : 20000000}, NULL);
    }
}

/* Processes that its own parent left behind came to us. Their numbers are theirs until we have
 * waited for them; those that end hand theirs on to us, and the next round finds them. */
static void end_all(void)
{
    char path[64];
    double end = now() + KILL_SECONDS;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int) getpid());
    for (bool left = true; left && now() < end;) {
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
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void close_all(int fds[], int count)
{
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
}

hpct_status hpct_child_run(const hpct_child *child, const char *what)
{
    const char *program = child->arguments[0];
    int ends[4] = {-1, -1, -1, -1}, state = 0; /* of the pipes for progress and for errors */
    if (pipe2(ends, O_CLOEXEC) != 0 ||
        (child->line != NULL && (pipe2(ends + 2, O_CLOEXEC) != 0 ||
                                 fcntl(ends[2], F_SETFL, O_NONBLOCK) != 0))) { /* our end alone */
        close_all(ends, 4);
        return hpct_fail(HPCT_ERR_INTERNAL, "no pipe for %s: %s", program, strerror(errno));
    }
    if (child->alone)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        close_all(ends, 4);
        return hpct_fail(HPCT_ERR_INTERNAL, "%s cannot be started: %s", program, strerror(errno));
    }
    if (pid == 0)
        become_program(child, ends[1], ends[3], parent);
    close_all((int[]){ends[1], ends[3]}, 2);
    outcome how = watch(pid, &state, ends[0], ends[2], child);
    if (how == STALLED || how == OUT_OF_TIME) {
        kill(pid, SIGKILL);
        await_end(pid);
    }
    if (child->alone)
        end_all();
    close_all((int[]){ends[0], ends[2]}, 2);
    if (how == LOST)
        return hpct_fail(HPCT_ERR_IO, "%s: its status is lost", program);
    if (how == STALLED)
        return hpct_fail(HPCT_ERR_IO, "%s made no progress for %d seconds and was ended", program,
                         child->stall_seconds);
    if (how == OUT_OF_TIME)
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
