/* The helper says that it is alive through a pipe: a byte whenever something was copied. */
#include <config.h>

#include "spank/stage_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "spank/stage/entry.h"

#define PROGRESS_FD 3
#define KILL_SECONDS 5

/* In the forked child: nothing but the helper's own three files, no blocked or ignored signals, an
 * environment without the user's loader variables. */
static void become_helper(char **arguments, int progress, pid_t parent)
{
    static char *const environment[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", NULL};
    sigset_t none;
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0 || dup2(progress, PROGRESS_FD) < 0 ||
        fcntl(PROGRESS_FD, F_SETFD, 0) != 0) /* dup2 leaves it as it is when it has that number */
        _exit(HPCT_ERR_INTERNAL);
    close_range(PROGRESS_FD + 1, ~0u, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it ended before prctl */
        _exit(HPCT_ERR_IO);
    execve(arguments[0], arguments, environment);
    dprintf(2, "hpc-train: %s cannot be started: %s; set helper= in plugstack.conf\n", arguments[0],
            strerror(errno));
    _exit(HPCT_ERR_CONFIG);
}

/* Until the helper closes the pipe. False when nothing came for stall_seconds. */
static bool watch(int progress, int stall_seconds, hpct_share *share)
{
    struct pollfd wait = {.fd = progress, .events = POLLIN};
    for (;;) {
        char bytes[64];
        int ready = poll(&wait, 1, stall_seconds * 1000);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0)
            return false;
        ssize_t got = read(progress, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        hpct_share_progress(share);
    }
}

/* A process in the midst of a call to a file server that does not answer ends when that does, even
 * if it was killed. False when it did not within `seconds`, or cannot be waited for. */
static bool await_end(pid_t child, int *state, int seconds)
{
    for (int i = 0; i < seconds * 50; i++) {
        pid_t ended = waitpid(child, state, WNOHANG);
        if (ended == child)
            return true;
        if (ended < 0 && errno != EINTR)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = i < 50 ? 1000000 : 20000000}, NULL);
    }
    return false;
}

static hpct_status run(char **arguments, const hpct_stage_run *r, hpct_share *share)
{
    int ends[2], state = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return hpct_fail(HPCT_ERR_INTERNAL, "no pipe for %s: %s", arguments[0], strerror(errno));
    pid_t parent = getpid(), child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return hpct_fail(HPCT_ERR_INTERNAL, "%s cannot be started: %s", arguments[0],
                         strerror(errno));
    }
    if (child == 0)
        become_helper(arguments, ends[1], parent);
    close(ends[1]);
    bool alive = watch(ends[0], r->stall_seconds, share);
    if (!alive)
        kill(child, SIGKILL);
    bool ended = await_end(child, &state, alive ? r->stall_seconds : KILL_SECONDS);
    close(ends[0]);
    if (alive && !ended) {
        kill(child, SIGKILL);
        return hpct_fail(HPCT_ERR_IO, "%s did not end, or its status is lost", arguments[0]);
    }
    if (!alive)
        return hpct_fail(HPCT_ERR_IO, "%s made no progress for %d seconds and was ended",
                         arguments[0], r->stall_seconds);
    if (WIFSIGNALED(state))
        return hpct_fail(HPCT_ERR_IO, "%s was killed by signal %d", arguments[0], WTERMSIG(state));
    if (WEXITSTATUS(state) != 0)
        return hpct_fail((hpct_status) WEXITSTATUS(state),
                         "staging failed with status %d (see the message of hpc-train-stage)",
                         WEXITSTATUS(state));
    return HPCT_OK;
}

hpct_status hpct_stage_run_work(void *context, hpct_share *share)
{
    const hpct_stage_run *r = context;
    const hpct_settings *settings = r->settings;
    static char progress_option[] = "--progress-fd", verbose_option[] = "--verbose";
    static char max_option[] = "--max", allow_option[] = "--allow", to_option[] = "--to";
    static char list_option[] = "--list";
    char max[32], progress[16];
    size_t n = 0, room = (size_t) settings->num_stage_src * 2 + 12;
    char **arguments = calloc(room, sizeof *arguments);
    if (arguments == NULL)
        return hpct_fail_memory(0);
    arguments[n++] = settings->helper;
    snprintf(progress, sizeof progress, "%d", PROGRESS_FD);
    arguments[n++] = progress_option;
    arguments[n++] = progress;
    if (settings->verbose)
        arguments[n++] = verbose_option;
    if (settings->stage_max != 0) {
        snprintf(max, sizeof max, "%llu", (unsigned long long) settings->stage_max);
        arguments[n++] = max_option;
        arguments[n++] = max;
    }
    for (int i = 0; i < settings->num_stage_src; i++) {
        arguments[n++] = allow_option;
        arguments[n++] = settings->stage_src[i];
    }
    char *to = strdup(r->to), *list = strdup(r->list);
    arguments[n++] = to_option;
    arguments[n++] = to;
    arguments[n++] = list_option;
    arguments[n++] = list;
    hpct_status status =
        to == NULL || list == NULL ? hpct_fail_memory(0) : run(arguments, r, share);
    free(to);
    free(list);
    free(arguments);
    return status;
}
