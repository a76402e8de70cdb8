/* The program says that it is alive through a pipe, whose end also tells that it has ended. */
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

/* For good: real, effective and saved, groups first, and looked at again. */
static bool become(const hpct_person *person)
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
static void become_program(const hpct_child *child, int progress, pid_t parent)
{
    static char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL};
    const char *program = child->arguments[0];
    sigset_t none;
    if (child->cgroup != NULL && hpct_cgroup_enter(child->cgroup) != HPCT_OK)
        give_up(program, hpct_last_error());
    if (child->as != NULL && !become(child->as))
        give_up(program, "it cannot be given to the job's user");
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0 || dup2(progress, HPCT_PROGRESS_FD) < 0 ||
        /* dup2 leaves it as it is when it has that number */
        fcntl(HPCT_PROGRESS_FD, F_SETFD, 0) != 0)
        _exit(HPCT_ERR_INTERNAL);
    close_range(HPCT_PROGRESS_FD + 1, ~0u, 0);
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

typedef enum outcome { ENDED, STALLED, OUT_OF_TIME } outcome;

/* Until the program closes the pipe. */
static outcome watch(int progress, const hpct_child *child)
{
    struct pollfd wait = {.fd = progress, .events = POLLIN};
    double start = now(), heard = start;
    for (;;) {
        char bytes[64];
        double end = heard + child->stall_seconds;
        bool limited = child->limit_seconds > 0 && start + child->limit_seconds < end;
        if (limited)
            end = start + child->limit_seconds;
        double left = end - now();
        int ready = left <= 0 ? 0 : poll(&wait, 1, (int) (left * 1000) + 1);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0)
            return limited ? OUT_OF_TIME : STALLED;
        ssize_t got = read(progress, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ENDED;
        heard = now();
        if (child->alive != NULL)
            child->alive(child->context);
    }
}

/* A process in the midst of a call to a file server that does not answer ends when that does, even
 * if it was killed. False when it did not within `seconds`, or cannot be waited for. */
static bool await_end(pid_t pid, int *state, int seconds)
{
    for (int i = 0; i < seconds * 50; i++) {
        pid_t ended = waitpid(pid, state, WNOHANG);
        if (ended == pid)
            return true;
        if (ended < 0 && errno != EINTR)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = i < 50 ? 1000000 : 20000000}, NULL);
    }
    return false;
}

hpct_status hpct_child_run(const hpct_child *child, const char *what)
{
    const char *program = child->arguments[0];
    int ends[2], state = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "no pipe for %s: %s", program, strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return hpct_fail(HPCT_ERR_INTERNAL, "%s cannot be started: %s", program, strerror(errno));
    }
    if (pid == 0)
        become_program(child, ends[1], parent);
    close(ends[1]);
    outcome how = watch(ends[0], child);
    if (how != ENDED)
        kill(pid, SIGKILL);
    bool ended = await_end(pid, &state, how == ENDED ? child->stall_seconds : KILL_SECONDS);
    close(ends[0]);
    if (how == ENDED && !ended) {
        kill(pid, SIGKILL);
        return hpct_fail(HPCT_ERR_IO, "%s did not end, or its status is lost", program);
    }
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
